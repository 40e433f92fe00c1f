// What the first call of a network of equal layers costs with an empty cache on two threads of the CPU:
// matmul of width 256, gelu, layer_norm, a residual, and the gradient of all parameters. A measurement, no
// test: docs/notes/2026-11-23-lowering-time.md. `layers_first_call [layers...]`, 4 16 48 unless given.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace tilewright;

namespace {

void show_first_call(int layers) {
  constexpr Index kRows = 64, kWidth = 256;
  Context ctx({.cache_directory = "", .threads = 2});
  std::vector<Tensor> arguments = {ctx.randn({kRows, kWidth})};
  for (int l = 0; l < layers; ++l) {
    arguments.push_back(ctx.randn({kWidth, kWidth}));
    arguments.push_back(ctx.ones({kWidth}));
    arguments.push_back(ctx.zeros({kWidth}));
  }
  std::vector<int> parameters(arguments.size() - 1);
  std::iota(parameters.begin(), parameters.end(), 1);
  const auto step = compile(value_and_grad(
      [layers](const std::vector<Tensor>& a) {
        Tensor x = a[0];
        for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l)
          x = x + layer_norm(gelu(matmul(x, a[1 + 3 * l])), a[2 + 3 * l], a[3 + 3 * l]);
        return sum(x * x);
      },
      parameters));
  step(arguments);
  const SpecialisationReport report = step.report().front();
  std::set<std::string> different;
  for (const KernelReport& kernel : report.kernels) different.insert(kernel.name);
  fmt::print(
      "{:>3} layers: {:.0f} ms, of which passes {:.0f}, compiler {:.0f}; {} launches of {} different "
      "kernels\n",
      layers, report.compile_ms, report.times.passes_ms, report.times.compiler_ms, report.kernels.size(),
      different.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> layers;
  for (int i = 1; i < argc; ++i) layers.push_back(std::atoi(argv[i]));
  if (layers.empty()) layers = {4, 16, 48};
  for (const int each : layers) show_first_call(each);
}
