// Goal: what is run on another host is what was meant, whatever letters it has. Method: /bin/sh
// plays both ends: a "ssh" that runs its last word in a shell, as sshd does.
#include "ssh.hpp"

#include <array>
#include <cstdio>
#include <memory>

#include <gmock/gmock.h>

#include "place.hpp"
#include "shell.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What a program prints.
std::string output_of(const std::vector<std::string>& words) {
  std::string command = "/bin/sh";
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + shell_quoted(words[i]);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  std::array<char, 256> block{};
  while (std::fgets(block.data(), block.size(), pipe.get()) != nullptr) output += block.data();
  return output;
}

const std::vector<std::string> kAgent{"holmes", "agent", "--host", "it's $HOME; a \"b\" \\c\n`d`"};

TEST(Ssh, WordsArriveAsTheyWere) {
  // "ssh OPTIONS -- TARGET COMMAND": the command is the last word, as one text for a shell.
  const SshOptions options{
      "sh -c 'until [ \"$1\" = -- ]; do shift; done; echo \"to $2\"; exec sh -c \"$3\"' ssh",
      "printf",
      {}};
  const auto words = start_words(options, "b0", {"holmes", "%s|", "agent", kAgent[3]});
  EXPECT_EQ(output_of(words), "to b0\nagent|" + kAgent[3] + "|");
}

TEST(Ssh, HereNoSshIsRun) {
  SshOptions options{"false", "printf", {}};
  EXPECT_EQ(output_of(start_words(options, "", {"holmes", "%s|", kAgent[3]})), kAgent[3] + "|");
}

TEST(Ssh, TheEnvironmentIsHandedOn) {
  const SshOptions options{"false", "printenv", {"HOLMES_A=x y'z", "HOLMES_B="}};
  EXPECT_EQ(output_of(start_words(options, "", {"holmes", "HOLMES_A", "HOLMES_B"})), "x y'z\n\n");
}

TEST(Ssh, ATargetIsNeverAnOption) {
  const auto words = start_words({}, "-oProxyCommand=touch x", {"holmes"});
  EXPECT_EQ(words[words.size() - 3], "--");
  EXPECT_EQ(words[words.size() - 2], "-oProxyCommand=touch x");
}

TEST(Ssh, ThisMachineIsReachedWithoutIt) {
  const auto here = reach({"false", "", {}}, "127.0.0.1");
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->target, "");
  EXPECT_EQ(here->address, "127.0.0.1");
  EXPECT_EQ(here->own, "127.0.0.1");
}

TEST(Ssh, AnAliasIsWhatTheConfigurationSays) {
  const SshOptions options{"sh -c 'echo \"user u\"; echo \"hostname 127.0.0.1\"' ssh", "", {}};
  const auto reached = reach(options, "b0");
  ASSERT_TRUE(reached) << reached.error().message();
  EXPECT_EQ(reached->address, "127.0.0.1");
}

TEST(Ssh, BehindAnotherPortOrAProxyIsAnotherMachineWhateverItsAddress) {
  for (const char* setting : {"port 2222", "proxyjump gate", "proxycommand nc %h %p"}) {
    const std::string config =
        "sh -c 'echo \"hostname 127.0.0.1\"; echo \"" + std::string(setting) + "\"' ssh";
    const auto reached = reach({config, "", {}}, "b0");
    ASSERT_TRUE(reached) << reached.error().message();
    EXPECT_EQ(reached->target, "b0") << setting;
  }
}

TEST(Ssh, NamesThatNobodyKnowsAreSaid) {
  const auto reached = reach({"false", "", {}}, "nowhere.invalid");
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error().message(), StartsWith("'nowhere.invalid' cannot be looked up"));
}

TEST(Ssh, EndpointsAreLookedUp) {
  EXPECT_EQ(*look_up_endpoint("127.0.0.1:80"), "127.0.0.1:80");
  EXPECT_EQ(*look_up_endpoint("[::1]:80"), "[::1]:80");
  for (const char* text : {"", ":80", "127.0.0.1", "127.0.0.1:"}) {
    const auto endpoint = look_up_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_THAT(endpoint.error().message(), HasSubstr("is no ADDRESS:PORT"));
  }
}

}  // namespace
}  // namespace holmes::launcher
