// check_launch accepts the kernel itself and rejects programs that are wrong in one place.
#include "runtime/kernel_check.h"

#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>

#include <cstring>

namespace tilewright::runtime {
namespace {

constexpr Index kElements = 64;

// y = x + 1
tile::Kernel add_one() {
  tile::Builder k("add_one");
  const auto x = k.view("x", DType::f32, {kElements}), y = k.view("y", DType::f32, {kElements});
  k.store(y, {0}, k.load(x, {0}, {.shape = {kElements}}) + 1.0);
  return k.finish({{{kElements, kElements}}});
}

// Adds one, but for element `skipped`, which gets `wrong` or nothing.
class Faulty final : public backends::Program {
 public:
  Faulty(Index place, float by, bool writes) : place_(place), by_(by), writes_(writes) {}
  Status launch(const backends::LaunchArgs& args) override {
    const auto* x = static_cast<const float*>(args.views[0]);
    auto* y = static_cast<float*>(args.views[1]);
    for (Index i = 0; i < kElements; ++i) {
      if (i != place_)
        y[i] = x[i] + 1;
      else if (writes_)
        y[i] = x[i] + 1 + by_;
    }
    return Unit{};
  }

 private:
  Index place_;
  float by_;
  bool writes_;
};

class CheckLaunch : public testing::Test {
 protected:
  CheckLaunch() {
    device_ = Device::open("reference").value();
    for (int i = 0; i < 2; ++i)
      buffers_.push_back(Buffer::allocate(device_, kElements * sizeof(float)).value());
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i);
    (void)buffers_[0]->write(values.data(), kElements * sizeof(float)).value();
    launch_ = {0, {buffers_[0]->data(), buffers_[1]->data()}, {}, {1, 1, 1}};
  }
  KernelCheck check(backends::Program& program) {
    return check_launch(*device_, kernel_, program, launch_).value();
  }

  tile::Kernel kernel_ = add_one();
  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  Executable::StepLaunch launch_;
};

TEST_F(CheckLaunch, AcceptsTheRightResult) {
  Faulty right(-1, 0, true);
  const KernelCheck report = check(right);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.compared, kElements);
  EXPECT_EQ(report.wrong, 0);
}

TEST_F(CheckLaunch, NamesTheElementThatIsOff) {
  Faulty off(17, 0.001f, true);
  const KernelCheck report = check(off);
  EXPECT_EQ(report.wrong, 1);
  EXPECT_NE(report.problem.find("view %y, element 17: got 5.25099"), std::string::npos) << report.problem;
}

TEST_F(CheckLaunch, SeesWhatWasNotWrittenEvenAfterARightRun) {
  Faulty right(-1, 0, true), silent(63, 0, false);
  EXPECT_EQ(check(right).wrong, 0);
  const KernelCheck report = check(silent);
  EXPECT_EQ(report.wrong, 1);
  EXPECT_NE(report.problem.find("nan, the interpreter has 16.75"), std::string::npos) << report.problem;
}

TEST_F(CheckLaunch, RefusesAnOutputInsideItsInput) {
  Faulty right(-1, 0, true);
  launch_.views[1] = launch_.views[0];
  const auto report = check_launch(*device_, kernel_, right, launch_);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("overlap"), std::string::npos);
}

// y = x from element n on, where the verifier knows nothing of n.
tile::Kernel copy_from() {
  tile::Builder k("copy_from");
  const tile::Value n = k.scalar("n");
  const auto x = k.view("x", DType::f32, {kElements}), y = k.view("y", DType::f32, {kElements});
  k.store(y, {0}, k.load(x, {n}, {.shape = {kElements}}));
  return k.finish({{{kElements, kElements}}});
}

TEST_F(CheckLaunch, DoesNotRunAKernelThatLeavesItsViews) {
  struct Untouched final : backends::Program {
    Status launch(const backends::LaunchArgs&) override {
      ADD_FAILURE() << "it was run";
      return Unit{};
    }
  } program;
  const tile::Kernel kernel = copy_from();
  launch_.scalars = {-1'000'000'000};
  const auto report = check_launch(*device_, kernel, program, launch_);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("dim 0 goes from -1000000000 to"), std::string::npos)
      << report.error().message;
  EXPECT_FALSE(check_reach(*device_, kernel, launch_));
  launch_.scalars = {0};
  EXPECT_TRUE(check_reach(*device_, kernel, launch_));
}

}  // namespace
}  // namespace tilewright::runtime
