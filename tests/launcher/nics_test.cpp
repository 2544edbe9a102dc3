// Goal: `holmes nics` shows what is used, with --all what is left out and why, and NCCL's variables
// override. Method: recorded machines, through the command itself.
#include "nics.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"
#include "transport/recorded_machine.hpp"

namespace holmes::launcher {
namespace {

using holmes::testing::RecordedMachine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shown {
  int code = 0;
  std::string out;
  std::string error;

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const auto json = nlohmann::json::parse(out);
    for (const auto& nic : json["nics"]) names.push_back(nic["name"]);
    return names;
  }
};

Shown show(const std::string& machine, NicsCommand command) {
  const RecordedMachine recorded(machine);
  command.root = recorded.path();
  CaptureConsole console;
  const int code = show_nics(command, console.console());
  return {code, console.out(), console.error()};
}

Shown show_json(const std::string& machine, const partition::NcclOverrides& nccl) {
  NicsCommand command;
  command.json = true;
  command.nccl = nccl;
  return show(machine, command);
}

TEST(NicsCommand, TablesShowWhatIsUsedAndWithAllTheRest) {
  const auto used = show("four-infiniband", {});
  EXPECT_EQ(used.code, 0);
  EXPECT_THAT(used.out, HasSubstr("PIX NODE SYS SYS"));
  EXPECT_THAT(used.out, Not(HasSubstr("docker0")));
  NicsCommand all;
  all.all = true;
  EXPECT_THAT(show("four-infiniband", all).out,
              HasSubstr("left out: bridge without a physical port"));
}

TEST(NicsCommand, JsonHasTheFacts) {
  const auto shown = show_json("roce-bond", {});
  const auto json = nlohmann::json::parse(shown.out);
  ASSERT_EQ(json["nics"].size(), 1u);
  const auto& nic = json["nics"][0];
  EXPECT_EQ(nic["kind"], "roce");
  EXPECT_EQ(nic["gid"]["index"], 3);
  EXPECT_EQ(nic["members"], nlohmann::json({"ens1f0np0", "ens1f1np1"}));
  EXPECT_EQ(nic["addresses"], nlohmann::json({"10.20.0.11/24"}));
}

TEST(NicsCommand, NcclsVariablesOverride) {
  EXPECT_THAT(show_json("four-infiniband", {{}, "mlx5_1,mlx5_2", {}}).names(),
              ElementsAre("ib0", "mlx5_1", "mlx5_2", "eno1"))
      << "ib0 remains as what it is without RDMA, the port without an address does not";
  EXPECT_THAT(show_json("four-infiniband", {"eno", {}, "1"}).names(), ElementsAre("eno1"));
  EXPECT_THAT(show_json("four-infiniband", {"^eno1", {}, "0"}).names(),
              ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"));
  EXPECT_THAT(show_json("two-port-adapter", {{}, "=mlx4_0:1", {}}).names(),
              ElementsAre("ens3d1", "br0", "ens3d1.100"));
}

TEST(NicsCommand, AnInterfaceThatIsNamedIsUsed) {
  EXPECT_THAT(show_json("two-port-adapter", {"tun0", {}, {}}).names(),
              ElementsAre("mlx4_0-p2", "tun0"));
  EXPECT_THAT(show_json("two-port-adapter", {"virbr0", {}, {}}).names(), ElementsAre("mlx4_0-p2"))
      << "without a carrier no wish helps";
}

TEST(NicsCommand, OnlyWhatWasLeftOutIsSaidToBeBroughtBack) {
  EXPECT_THAT(show_json("two-port-adapter", {"tun0", {}, {}}).out,
              HasSubstr("used because NCCL_SOCKET_IFNAME names it, else left out: virtual "
                        "interface (containers or guests of this host)"));
  for (const auto* machine : {"no-rdma", "container"}) {
    const auto named = show_json(machine, {"eth0", {}, {}});
    EXPECT_THAT(named.names(), ::testing::Contains("eth0"));
    EXPECT_THAT(named.out, Not(HasSubstr("remark\""))) << "it is used without being named too";
  }
}

TEST(NicsCommand, BadVariablesAndFoldersExit2) {
  EXPECT_EQ(show_json("no-rdma", {{}, {}, "maybe"}).code, 2);
  EXPECT_EQ(show_json("roce-bond", {{}, {}, "maybe"}).code, 2);
  NicsCommand command;
  command.gid_index = "third";
  const auto shown = show("roce-bond", command);
  EXPECT_EQ(shown.code, 2);
  EXPECT_THAT(shown.error, HasSubstr("NCCL_IB_GID_INDEX=third"));
}

}  // namespace
}  // namespace holmes::launcher
