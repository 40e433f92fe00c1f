// The pipe to another process and what is said when there is nobody at its other end.
#include "peers/peers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "harness/run/verify.h"
#include "peers/peer_files.h"
#include "peers/peer_process.h"

namespace tilewright::lab {
namespace {

class Script {
 public:
  explicit Script(const std::string& text) : path_(folder_.path() + "/script") {
    std::ofstream(path_) << text;
  }
  Result<PeerProcess> start(const std::vector<std::string>& variables = {}) {
    return PeerProcess::start("sh", path_, variables);
  }

 private:
  PeerFolder folder_;
  std::string path_;
};

TEST(PeerProcess, AnswersEachLineWithOne) {
  Script script("while read line; do echo \"<$line>\"; done\n");
  auto process = script.start();
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*process->ask("one"), "<one>");
  EXPECT_EQ(*process->ask("two"), "<two>");
}

TEST(PeerProcess, VariablesReachIt) {
  Script script("read line; echo \"$TW_PEER_TEST\"\n");
  auto process = script.start({"TW_PEER_TEST=17"});
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*process->ask("?"), "17");
}

TEST(PeerProcess, ItsEndIsAFailureNowAndLater) {
  Script script("read line; exit 1\n");
  auto process = script.start();
  ASSERT_TRUE(process.ok());
  EXPECT_FALSE(process->ask("one").ok());
  const auto again = process->ask("two");
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("ended"), std::string::npos);
}

TEST(Peers, WithoutAnInterpreterTheRowSaysSo) {
  const auto peers = open_peers({.python = "/no/such/python"});
  const auto contenders = peers->contenders({.target = "elu"});
  ASSERT_EQ(contenders.size(), 1u);
  EXPECT_NE(contenders[0].unavailable.find("/no/such/python"), std::string::npos);
}

TEST(Peers, WhatNoPeerCanDoIsUnavailableWithItsReason) {
  const auto peers = open_peers({});
  const auto contenders = peers->contenders({.target = "dropout", .unavailable = "for a reason"});
  ASSERT_EQ(contenders.size(), 1u);
  EXPECT_FALSE(contenders[0].unavailable.empty());
}

// y = where(x > 0, x, exp(x) - 1) by PyTorch, through files and back.
TEST(Peers, PyTorchIsVerifiedLikeEveryContender) {
  const auto peers = open_peers({});
  auto x = std::make_shared<std::vector<float>>(100);
  auto listeners = std::make_shared<std::vector<std::function<Status()>>>();
  PairInstance instance{.target = "elu", .device = "cpu", .shape = "100", .dtype = "f32"};
  instance.outputs = {{"y", DType::f32, Shape{100}, {.operations = 5}}};
  instance.refresh_inputs = [=](std::uint64_t seed) -> Status {
    for (std::size_t i = 0; i < x->size(); ++i)
      (*x)[i] = static_cast<float>((i * 37 + seed * 11) % 83) / 20.0f - 2.0f;
    for (const auto& heard : *listeners) {
      if (Status status = heard(); !status) return status;
    }
    return Unit{};
  };
  instance.input_digest = [x]() -> Result<std::uint64_t> { return digest(x->data(), 400); };
  instance.reference = [x](std::int64_t) {
    Reference y;
    for (float v : *x) {
      y.values.push_back(v > 0 ? v : std::expm1(static_cast<double>(v)));
      y.magnitude.push_back(v > 0 ? v : std::exp(static_cast<double>(v)) + 1);
    }
    return std::vector{y};
  };
  PeerWorkload workload{.target = "elu", .inputs = {{DType::f32, Shape{100}, 1}}};
  workload.read_input = [x](std::size_t, std::int64_t, void* to) -> Status {
    std::memcpy(to, x->data(), 400);
    return Unit{};
  };
  workload.on_refresh = [listeners](std::function<Status()> heard) {
    listeners->push_back(std::move(heard));
  };
  workload.outputs = instance.outputs;
  ASSERT_TRUE(instance.refresh_inputs(0).ok());
  instance.contenders = peers->contenders(workload);
  ASSERT_EQ(instance.contenders[0].unavailable, "");
  for (const Verification& v : verify(instance, 1)) EXPECT_TRUE(v.verified) << v.reason;
}

}  // namespace
}  // namespace tilewright::lab
