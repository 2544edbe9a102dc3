// Goal: nothing that a user, a file name or a peer sends reaches a terminal as a command, breaks a
// line, or is lost. Method: texts and what is printed of them.
#include "printable.hpp"

#include <gtest/gtest.h>

namespace holmes::launcher {
namespace {

TEST(Printable, KeepsTextOfAllLanguages) {
  for (const char* text : {"", "plain", "spaces  'quotes' \\ back", "ünï çødé", "日本語", "😀"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // U+009B begins a sequence, as ESC [ does
}

TEST(Printable, WritesBytesThatAreNoUtf8Out) {
  EXPECT_EQ(printable("a\xff"), "a\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x82x"), "\\xe2\\x82x");
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadItOtherwise) {
  EXPECT_EQ(shell_word("run.folder=runs/a-b_1.2"), "run.folder=runs/a-b_1.2");
  EXPECT_EQ(shell_word("run.name=two words"), "'run.name=two words'");
  EXPECT_EQ(shell_word("run.name=$HOME;ls*~"), "'run.name=$HOME;ls*~'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace holmes::launcher
