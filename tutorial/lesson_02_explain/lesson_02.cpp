// Lesson 2: what became of the function, and how fast it could be.
//
// explain() lists the kernels a call runs, what each must move and compute, the least time that takes on this
// machine (its floor), and why neighbours stayed apart. A second shape is a second specialisation, with the
// reason for the recompile.
#include <fmt/core.h>

#include <tilewright/tilewright.hpp>

#include <cstdlib>

namespace tw = tilewright;

int main() {
  tw::Context ctx;
  auto normalise = tw::compile([](const tw::Tensor& x, const tw::Tensor& gamma, const tw::Tensor& beta) {
    return tw::gelu_tanh(tw::layer_norm(x, gamma, beta));
  });
  const tw::Index columns = 1024;
  tw::Tensor gamma = ctx.ones({columns}), beta = ctx.zeros({columns});
  normalise(ctx.randn({512, columns}), gamma, beta);
  normalise(ctx.randn({64, columns}), gamma, beta);
  fmt::print("{}", normalise.explain());

  // Two reductions and a dozen pointwise operations are one kernel: it reads x, gamma and beta once and
  // writes y once.
  const std::vector<tw::SpecialisationReport> reports = normalise.report();
  if (reports.size() != 2) return EXIT_FAILURE;
  const tw::KernelReport& kernel = reports[1].kernels.at(0);  // of the first call
  const double bytes = 4.0 * (2 * 512 * columns + 2 * columns);
  fmt::print("one kernel moves {} bytes; a floor of {:.1f} us\n", kernel.bytes, kernel.floor_us);
  return reports[1].kernels.size() == 1 && kernel.bytes == bytes ? EXIT_SUCCESS : EXIT_FAILURE;
}
