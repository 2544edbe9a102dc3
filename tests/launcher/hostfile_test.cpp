// Goal: hostfiles as Open MPI and DeepSpeed write them are understood, and what is none is refused
// with file and line. Method: texts against the hosts they name.
#include "hostfile.hpp"

#include <gmock/gmock.h>

#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

std::string text_of(const Result<std::vector<actors::HostChoice>>& hosts) {
  if (!hosts) return hosts.error().message();
  std::string text;
  for (const auto& host : *hosts)
    text += (text.empty() ? "" : " ") + host.name + "*" + std::to_string(host.slots);
  return text;
}

TEST(Hostfile, NamesHostsAndSlots) {
  EXPECT_EQ(
      text_of(parse_hostfile("# two clusters\n\na0 slots=8\n  a1\tslots=4 max_slots=8 # old\r\n"
                             "b0:2\nb1\n10.1.2.3 slots=1\nfd00::7\n",
                             "hosts")),
      "a0*8 a1*4 b0*2 b1*0 10.1.2.3*1 fd00::7*0");
}

TEST(Hostfile, RefusalsSayWhere) {
  const auto refusal = [](std::string_view text) { return text_of(parse_hostfile(text, "hosts")); };
  EXPECT_EQ(refusal("a0\na1 slots=0\n"),
            "hosts:2: slots must be a whole number, 1 .. 65536, not '0'");
  EXPECT_THAT(refusal("a0 slots=99999999999"), HasSubstr("hosts:1: slots must be"));
  EXPECT_THAT(refusal("a0 slots="), HasSubstr("not ''"));
  EXPECT_THAT(refusal("a0 cpus=3"), HasSubstr("hosts:1: 'cpus=3' is not known here"));
  EXPECT_THAT(refusal(":4"), HasSubstr("hosts:1: ':4' names no host"));
  EXPECT_EQ(refusal("# nobody\n\n"), "hosts: names no host");
}

TEST(Hostfile, ListsAreReadLikeFiles) {
  EXPECT_EQ(text_of(parse_host_list("a0,a1:4,b0")), "a0*0 a1*4 b0*0");
  EXPECT_THAT(text_of(parse_host_list("a0,,b0")), HasSubstr("'' names no host"));
  EXPECT_THAT(text_of(parse_host_list("")), HasSubstr("names no host"));
}

TEST(Hostfile, AFileGoesBeforeAList) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  write_file(file, "a0 slots=2\n");
  EXPECT_EQ(text_of(read_hosts(file.string())), "a0*2");
  EXPECT_EQ(text_of(read_hosts("a0,b0")), "a0*0 b0*0");
  EXPECT_THAT(text_of(read_hosts((folder.path() / "none").string())),
              HasSubstr("there is no file"));
}

TEST(Hostfile, IncludeAndExcludeChoose) {
  const auto all = *parse_host_list("a0:2,a1,b0,b1");
  EXPECT_EQ(text_of(select_hosts(all, "", "")), "a0*2 a1*0 b0*0 b1*0");
  EXPECT_EQ(text_of(select_hosts(all, "b0,a0", "")), "a0*2 b0*0");
  EXPECT_EQ(text_of(select_hosts(all, "", "a1,b1")), "a0*2 b0*0");
  EXPECT_EQ(text_of(select_hosts(all, "a0,a1", "a1")), "a0*2");
  EXPECT_THAT(text_of(select_hosts(all, "a2", "")),
              HasSubstr("--include: there is no host 'a2'; did you mean"));
  EXPECT_THAT(text_of(select_hosts(all, "", "a0:1")), HasSubstr("no slots"));
  EXPECT_THAT(text_of(select_hosts(all, "a0", "a0")), HasSubstr("leave no host"));
}

}  // namespace
}  // namespace holmes::launcher
