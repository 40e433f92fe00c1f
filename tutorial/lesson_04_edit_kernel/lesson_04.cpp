// Lesson 4: editing a generated kernel.
//
// The kernels the compiler writes are kernels you could have written: print one, change it, run yours
// instead, prove it, time it. This one is exp(x) - 1 for negative x, which loses digits near 0; the edit
// calls expm1. From the shell the same is `tw kernel edit elu`, an editor, and `tw kernel run`.
#include <fmt/core.h>

#include <tilewright/tilewright.hpp>

#include <cmath>
#include <cstdlib>
#include <regex>

namespace tw = tilewright;

// The largest relative error against float64, where x is negative.
double worst_error(const std::vector<float>& x, const std::vector<float>& y) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::expm1(static_cast<double>(x[i]));
    if (x[i] < 0) worst = std::max(worst, std::abs(y[i] - want) / std::abs(want));
  }
  return worst;
}

int main() {
  tw::Context ctx;
  auto elu = tw::compile([](const tw::Tensor& x) { return tw::where(x > 0.f, x, tw::exp(x) - 1.f); });
  const tw::Tensor x = ctx.randn({1 << 16}) * 0.01f;
  const std::vector<float> xs = x.to_vector<float>();

  // Print: the text that was compiled.
  const double before = worst_error(xs, elu(x).to_vector<float>());
  elu.measure({x});
  const tw::KernelReport generated = elu.report().at(0).kernels.at(0);
  fmt::print("{}\n", generated.source);

  // Edit: any text editor would do.
  std::string text = std::regex_replace(generated.source, std::regex(R"(exp\((\w+)\) - 1\.f)"), "expm1($1)");
  text = std::regex_replace(text, std::regex("#include \"tw_cpu/exp.h\""), "#include \"tw_cpu/expm1.h\"");
  if (text == generated.source) return EXIT_FAILURE;

  // An edit that does not compile leaves things as they were, and says where it is wrong.
  try {
    elu.edit(0, text + "oops\n", {x});
    return EXIT_FAILURE;
  } catch (const tw::Error& error) {
    fmt::print("refused: {}\n", error.what());
  }

  // Run, prove, time: the calls after this one run the edited kernel.
  elu.edit(0, text, {x});
  const double after = worst_error(xs, elu(x).to_vector<float>());
  elu.measure({x});
  const tw::KernelReport edited = elu.report().at(0).kernels.at(0);
  fmt::print(
      "generated: error {:.1e}, {:.2f} us\nedited:    error {:.1e}, {:.2f} us\nfloor:     {:.2f} us ({})\n",
      before, generated.measured_us, after, edited.measured_us, edited.floor_us, edited.bound);
  const bool proved = after < 5e-7 && before > 10 * after;  // expm1 is within 2 ulp; exp(x) - 1 is not
  return proved && edited.source == text ? EXIT_SUCCESS : EXIT_FAILURE;
}
