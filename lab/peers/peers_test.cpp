// The pipe to another process and what is said when there is nobody at its other end.
#include "peers/peers.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
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

TEST(PeerProcess, StandsStillBetweenLines) {
  const PeerFolder folder;
  const std::string written = folder.path() + "/written";
  Script script("read line; echo begun; for i in $(seq 20000); do echo $i >> " + written + "; done\n");
  auto process = script.start();
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*process->ask("?"), "begun");
  const auto lines = [&] {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(written, none);
    return none ? std::uintmax_t{0} : bytes;
  };
  usleep(20'000);
  const auto before = lines();
  usleep(50'000);
  EXPECT_EQ(lines(), before);
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

// An instance over 100 numbers x in [-2, 2.15), and what a peer is told of it; the outputs, the reference and
// the program are the test's.
struct Numbers {
  std::shared_ptr<std::vector<float>> x = std::make_shared<std::vector<float>>(100);
  std::shared_ptr<std::vector<std::function<Status()>>> listeners =
      std::make_shared<std::vector<std::function<Status()>>>();
  PairInstance instance{.target = "elu", .device = "cpu", .shape = "100", .dtype = "f32"};
  PeerWorkload workload{.target = "elu", .inputs = {{DType::f32, Shape{100}, 1}}};

  Numbers() {
    instance.refresh_inputs = [x = x, listeners = listeners](std::uint64_t seed) -> Status {
      for (std::size_t i = 0; i < x->size(); ++i)
        (*x)[i] = static_cast<float>((i * 37 + seed * 11) % 83) / 20.0f - 2.0f;
      for (const auto& heard : *listeners) {
        if (Status status = heard(); !status) return status;
      }
      return Unit{};
    };
    instance.input_digest = [x = x]() -> Result<std::uint64_t> { return digest(x->data(), 400); };
    workload.read_input = [x = x](std::size_t, std::int64_t, void* to) -> Status {
      std::memcpy(to, x->data(), 400);
      return Unit{};
    };
    workload.on_refresh = [listeners = listeners](std::function<Status()> heard) {
      listeners->push_back(std::move(heard));
    };
    EXPECT_TRUE(instance.refresh_inputs(0).ok());
  }
  std::vector<Verification> verified_with(Peers& peers) {
    workload.outputs = instance.outputs;
    instance.contenders = peers.contenders(workload);
    EXPECT_EQ(instance.contenders[0].unavailable, "");
    return verify(instance, 1);
  }
};

// The peers of this machine, opened once: importing PyTorch takes seconds.
class OpenedPeers : public testing::Test {
 protected:
  static void SetUpTestSuite() { peers_ = open_peers({}); }
  static void TearDownTestSuite() { peers_.reset(); }
  static std::shared_ptr<Peers> peers_;
};
std::shared_ptr<Peers> OpenedPeers::peers_;

TEST_F(OpenedPeers, WhatNoPeerCanDoIsUnavailableWithItsReason) {
  const auto contenders = peers_->contenders({.target = "dropout", .unavailable = "for a reason"});
  ASSERT_EQ(contenders.size(), 1u);
  EXPECT_FALSE(contenders[0].unavailable.empty());
}

// y = where(x > 0, x, exp(x) - 1) by PyTorch, through files and back.
TEST_F(OpenedPeers, PyTorchIsVerifiedLikeEveryContender) {
  Numbers numbers;
  numbers.instance.outputs = {{"y", DType::f32, Shape{100}, {.operations = 5}}};
  numbers.instance.reference = [x = numbers.x](std::int64_t) {
    Reference y;
    for (float v : *x) {
      y.values.push_back(v > 0 ? v : std::expm1(static_cast<double>(v)));
      y.magnitude.push_back(v > 0 ? v : std::exp(static_cast<double>(v)) + 1);
    }
    return std::vector{y};
  };
  for (const Verification& v : numbers.verified_with(*peers_)) EXPECT_TRUE(v.verified) << v.reason;
}

// The loss Σ x² and its gradient 2x, by a program that the workload brings as a text.
TEST_F(OpenedPeers, AProgramMayComeAsATextWithItsGradients) {
  Numbers numbers;
  numbers.workload.target = "no work of this name";
  numbers.workload.source = "def program(x):\n    return F.relu(x * x).sum()\ngradients_of = [0]\n";
  numbers.instance.outputs = {{"loss", DType::f32, Shape{}, {.reduction = 100, .operations = 3}},
                              {"dx", DType::f32, Shape{100}, {.operations = 3}}};
  numbers.instance.reference = [x = numbers.x](std::int64_t) {
    Reference loss{.values = {0}}, gradient;
    for (double v : *x) {
      loss.values[0] += v * v;
      gradient.values.push_back(2 * v);
    }
    return std::vector{loss, gradient};
  };
  for (const Verification& v : numbers.verified_with(*peers_)) EXPECT_TRUE(v.verified) << v.reason;
}

TEST_F(OpenedPeers, ATextThatIsNoProgramIsItsRowsReason) {
  Numbers numbers;
  numbers.workload.source = "def progam(x):\n    return x\n";
  numbers.workload.outputs = {{"y", DType::f32, Shape{100}, {}}};
  const auto contenders = peers_->contenders(numbers.workload);
  EXPECT_NE(contenders.at(0).unavailable.find("program"), std::string::npos) << contenders.at(0).unavailable;
}

// Contenders of one process: the one that ends it is told so, now and later; the other goes on in a new
// process, with its inputs and the outputs of its last call.
TEST_F(OpenedPeers, OneThatEndsTheProcessCostsTheOthersNothing) {
  Numbers good, bad;
  good.workload.source = "def program(x):\n    return x + 1\n";
  bad.workload.source = "import os\ndef program(x):\n    os._exit(7)\n";
  good.workload.outputs = bad.workload.outputs = {{"y", DType::f32, Shape{100}, {}}};
  const auto lives = peers_->contenders(good.workload), dies = peers_->contenders(bad.workload);
  ASSERT_TRUE(lives[0].batch_us(0, 3).ok());
  for (int call = 0; call < 2; ++call) {
    const auto us = dies[0].batch_us(0, 1);
    ASSERT_FALSE(us.ok());
    EXPECT_NE(us.error().message.find("the peer's process has ended with exit status 7"), std::string::npos)
        << us.error().message;
  }
  const auto again = read_doubles(lives[0].outputs[0]);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FLOAT_EQ(static_cast<float>((*again)[5]), (*good.x)[5] + 1);
  ASSERT_TRUE(good.instance.refresh_inputs(5).ok()) << "refreshing inputs asks nobody";
  ASSERT_TRUE(lives[0].batch_us(0, 1).ok());
  EXPECT_FLOAT_EQ(static_cast<float>((*read_doubles(lives[0].outputs[0]))[5]), (*good.x)[5] + 1);
}

TEST_F(OpenedPeers, BothTimesAreOfTheWorkThatWasAskedFor) {
  Numbers numbers;
  numbers.workload.source = "import time\ndef program(x):\n    time.sleep(0.01)\n    return x.clone()\n";
  numbers.workload.outputs = {{"y", DType::f32, Shape{100}, {}}};
  const auto contenders = peers_->contenders(numbers.workload);
  for (const auto& us : {contenders.at(0).batch_us(0, 3), contenders.at(0).device_us(0, 3)}) {
    ASSERT_TRUE(us.ok()) << us.error().message;
    EXPECT_GE(*us, 30e3);  // a sleep is never shorter
  }
}

TEST_F(OpenedPeers, WaysToRunTheSameProgramAreOneFamily) {
  Numbers numbers;
  numbers.workload.outputs = {{"y", DType::f32, Shape{100}, {}}};
  for (const Contender& contender : peers_->contenders(numbers.workload)) {
    EXPECT_EQ(contender.unavailable, "");
    EXPECT_EQ(contender.family, "torch") << contender.name;
  }
}

TEST_F(OpenedPeers, WhoIsNotWantedIsNotThere) {
  Numbers numbers;
  numbers.workload.outputs = {{"y", DType::f32, Shape{100}, {}}};
  const auto all = peers_->contenders(numbers.workload);
  const auto others = open_peers({.without = {"torch"}})->contenders(numbers.workload);
  ASSERT_EQ(others.size() + 1, all.size());
  for (const Contender& contender : others) EXPECT_NE(contender.name, "torch");
}

}  // namespace
}  // namespace tilewright::lab
