// Gradients that a user gives for kernels of his own: against the same function written in operations.
#include <tilewright/tile/builder.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

constexpr Index kRows = 6, kColumns = 10;

// y = exp(x) · w, elementwise; the gradients g w y' and so on are operations on tensors here.
tile::Kernel scaled_exp() {
  tile::Builder k("scaled_exp");
  const auto x = k.view("x", DType::f32, {kRows, kColumns}), w = k.view("w", DType::f32, {kRows, kColumns});
  const auto y = k.view("y", DType::f32, {kRows, kColumns});
  const tile::Value row = k.program_id(0), by = k.scalar("by", DType::f32);
  const auto load = [&](const auto& view) { return k.load(view, {row, 0}, {.shape = {kColumns}}); };
  k.store(y, {row, 0}, exp(load(x)) * load(w) * by);
  return k.finish({{{kRows, 1}}});
}

class KernelGradients : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  Tensor x_ = ctx_.randn({kRows, kColumns}), w_ = ctx_.randn({kRows, kColumns});
  TileFunction kernel_{scaled_exp()};
  int asked_ = 0;
  std::string here_ = "(at kernel_gradient_test.cpp:";

  void SetUp() override {
    kernel_.set_gradient([this](const TileCall& call) {
      ++asked_;
      const Tensor& g = call.gradients.at(0);
      return std::vector{g * call.made.at(0), g * exp(call.read.at(0)) * call.scalars.at(0)};
    });
  }
  Tensor run(const Tensor& x, const Tensor& w, double by = 2) const {
    return kernel_({x, w, out({kRows, kColumns})}, {by}).at(0);
  }
  static Tensor meant(const Tensor& x, const Tensor& w, double by = 2) { return exp(x) * w * by; }

  // The gradients of a function of x and w that calls `scaled`, by kernel and by operations.
  using Scaled = std::function<Tensor(const Tensor&, const Tensor&)>;
  using Function = std::function<Tensor(const Scaled& scaled, const Tensor& x, const Tensor& w)>;
  void expect_gradients(const Function& f) {
    const auto by = [&](const Scaled& scaled) {
      return value_and_grad<0, 1>([=](const Tensor& x, const Tensor& w) { return f(scaled, x, w); });
    };
    const auto made = by([this](const Tensor& x, const Tensor& w) { return run(x, w); });
    const auto wanted = by([](const Tensor& x, const Tensor& w) { return meant(x, w); })(x_, w_);
    const auto near = [](const Tensor& a, const Tensor& b) {
      EXPECT_LT(max(abs(a - b)).item(), 2e-6 * (1 + max(abs(b)).item()));
    };
    const auto compiled = compile(made);
    for (const auto& got : {made(x_, w_), compiled(x_, w_), compiled(x_, w_)}) {
      near(got.first, wanted.first);
      near(std::get<0>(got.second), std::get<0>(wanted.second));
      near(std::get<1>(got.second), std::get<1>(wanted.second));
    }
  }
};

TEST_P(KernelGradients, OfOneKernel) {
  expect_gradients([](const auto& scaled, const Tensor& x, const Tensor& w) { return sum(scaled(x, w)); });
  EXPECT_EQ(asked_, 3);
}

TEST_P(KernelGradients, WithOperationsOnEverySide) {
  expect_gradients([](const auto& scaled, const Tensor& x, const Tensor& w) {
    const Tensor y = scaled(tanh(x), w * w);
    return mean(y * y + sin(x) * w) + sum(y) * max(w);
  });
}

TEST_P(KernelGradients, OfKernelsBehindEachOtherAndBesideEachOther) {
  expect_gradients([](const auto& scaled, const Tensor& x, const Tensor& w) {
    const Tensor first = scaled(x * 0.1f, w), beside = scaled(w * 0.1f, x);
    return mean(scaled(tanh(first) + beside * 0.1f, first * w) * beside);
  });
}

// The kernel's gradient may be a kernel as well, and what it captures is no argument.
TEST_P(KernelGradients, ByKernels) {
  const TileFunction other(scaled_exp());
  const auto captured = [&](const Tensor& x) { return sum(run(x, w_) * w_); };
  const Tensor wanted = grad([&](const Tensor& x) { return sum(meant(x, w_) * w_); })(x_);
  kernel_.set_gradient([&](const TileCall& call) {
    // exp(x) · w · by once more, and g times it
    const Tensor y = other({call.read.at(0), call.read.at(1), out({kRows, kColumns})}, call.scalars).at(0);
    return std::vector{call.gradients.at(0) * y, Tensor()};
  });
  for (const Tensor& got : {grad(captured)(x_), compile(grad(captured))(x_)})
    EXPECT_LT(max(abs(got - wanted)).item(), 2e-6 * (1 + max(abs(wanted)).item()));
}

TEST_P(KernelGradients, MayBeLeftOut) {
  kernel_.set_gradient([](const TileCall&) { return std::vector{Tensor(), Tensor()}; });
  const auto f = [&](const Tensor& x) { return sum(run(x, w_)) + sum(x); };
  EXPECT_EQ(grad(f)(x_).to_vector<float>(), std::vector<float>(kRows * kColumns, 1));
}

TEST_P(KernelGradients, AreGraphBreaksOfCompiledFunctions) {
  const auto f = compile(
      [&](const Tensor& x) { return grad([&](const Tensor& t) { return sum(run(t * 2.f, w_)); })(x + 1.f); });
  f(x_);
  EXPECT_NE(f.report().front().breaks.at(0).find("kernel scaled_exp"), std::string::npos);
  const auto whole =
      compile([&](const Tensor& x) { return grad([&](const Tensor& t) { return sum(run(t, w_)); })(x); },
              {.fullgraph = true});
  test::expect_says([&] { whole(x_); }, {"kernel scaled_exp", "fullgraph", here_});
}

TEST_P(KernelGradients, SayWhatIsWrong) {
  const auto slope = [&] { grad([&](const Tensor& x) { return sum(run(x, w_)); })(x_); };
  const auto gives = [&](const std::vector<Tensor>& gradients, const std::string& why) {
    kernel_.set_gradient([=](const TileCall&) { return gradients; });
    test::expect_says(slope, {"the gradient of kernel scaled_exp: ", why, here_});
  };
  gives({x_}, "1 were returned, one for each of the 2 tensors that it read is wanted");
  gives({x_, ctx_.ones({3})}, "1 is f32[3] on");
  gives({cast(x_, DType::f64), x_}, "0 is f64[6,10] on");
  test::expect_says([&] { kernel_.set_gradient({}); }, {"set_gradient of kernel scaled_exp", "empty", here_});
  const TileFunction without(scaled_exp());
  const auto none = [&](const Tensor& x) { return sum(without({x, w_, out({kRows, kColumns})}, {1}).at(0)); };
  test::expect_says([&] { grad(none)(x_); },
                    {"kernel scaled_exp inside a function that is differentiated has no gradient",
                     "set_gradient()", here_});
  SetUp();
  const auto twice = [&](const Tensor& x) {
    return sum(grad([&](const Tensor& t) { return sum(run(t, w_)); })(x));
  };
  test::expect_says([&] { grad(twice)(x_); }, {"kernel scaled_exp has no second derivative", here_});
  const Tensor place = ctx_.empty({kRows, kColumns});
  const auto writes = [&](const Tensor& x) {
    kernel_({x, w_, into(place)}, {1});
    return sum(x);
  };
  test::expect_says([&] { grad(writes)(x_); }, {"writes into a tensor", "out()", here_});
}

INSTANTIATE_TEST_SUITE_P(On, KernelGradients, ::testing::Values("cpu", "reference"));

}  // namespace
}  // namespace tilewright
