// Goal: a reader who does not read holds up neither the caller nor the end, and nothing is lost in
// silence. Method: a pipe that is full before the first line.
#include "background_writer.hpp"

#include <array>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "capture_console.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

class FullPipe {
 public:
  FullPipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
    ::fcntl(write(), F_SETFL, O_NONBLOCK);
    const std::string some(4096, '.');
    while (::write(write(), some.data(), some.size()) > 0) filled_ += some.size();
    ::fcntl(write(), F_SETFL, 0);
  }
  int write() const { return write_.get(); }

  /// What was written after the filling, up to `count` bytes.
  std::string read(std::size_t count) {
    std::string all(filled_ + count, '\0');
    for (std::size_t got = 0; got < all.size();) {
      const auto part = ::read(read_.get(), all.data() + got, all.size() - got);
      if (part <= 0) break;
      got += static_cast<std::size_t>(part);
    }
    return all.substr(filled_);
  }

 private:
  Descriptor read_;
  Descriptor write_;
  std::size_t filled_ = 0;
};

TEST(BackgroundWriter, KeepsTheOrderForAReaderWhoComesLate) {
  FullPipe pipe;
  BackgroundWriter writer;
  writer.write(pipe.write(), "first ", false);
  writer.write(pipe.write(), "second", true);
  EXPECT_FALSE(writer.flush(std::chrono::milliseconds(1)));
  EXPECT_EQ(pipe.read(12), "first second");
  EXPECT_TRUE(writer.flush(std::chrono::seconds(30)));
  EXPECT_EQ(writer.dropped(), 0U);
}

TEST(BackgroundWriter, DropsProgressFirstAndCountsWhatItDrops) {
  FullPipe pipe;
  BackgroundWriter writer({.droppable_bytes = 4, .bytes = 8});
  writer.write(pipe.write(), "1234", true);
  writer.write(pipe.write(), "5", true);
  writer.write(pipe.write(), "6789", false);
  EXPECT_EQ(writer.dropped(), 1U);
  writer.write(pipe.write(), "0", false);
  EXPECT_EQ(writer.dropped(), 2U);
  EXPECT_EQ(pipe.read(8), "12346789");
  EXPECT_TRUE(writer.flush(std::chrono::seconds(30)));
}

TEST(BackgroundWriter, AConsoleThatNobodyReadsStillLogsAndEnds) {
  FullPipe pipe;
  const TemporaryFolder folder;
  const Descriptor error(
      ::open((folder.path() / "error").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  Console console({pipe.write(), error.get()});
  console.write_in_background({.droppable_bytes = 8, .bytes = 1000});
  console.print("a result");
  console.print_progress("a step");
  console.log("a log line");
  console.finish(std::chrono::milliseconds(100));
  const std::string said = read_file(folder.path() / "error");
  EXPECT_THAT(said, HasSubstr("a log line\n"));
  EXPECT_THAT(said, HasSubstr("nobody reads stdout"));
  EXPECT_THAT(said, HasSubstr("1 lines were left out"));
  EXPECT_EQ(pipe.read(9), "a result\n");  // lets the writer end before its descriptor goes
}

}  // namespace
}  // namespace holmes::launcher
