// Matmuls of sizes that break tilings, alone and with what fuses into them, against the float64 oracle.
//   product_parity --device cuda:0 --count 500 --seed 1 [--lower-for sm_90a] [--shard i/n | --jobs n]
// --lower-for gives the kernels that a GPU would run to the device, whichever it is.
#include "ir/text.h"
#include "parity/product_check.h"
#include "support/product_graphs.h"

namespace tilewright::test {

// Empty when the device agrees.
std::string check(ProductRunner& products, std::uint64_t seed, const ProductOptions& options) {
  // Every fourth with rows apart in memory, which a kernel of its own writes: fused, it would be no memory.
  const bool apart = seed % 4 == 3;
  const ProductGraph product = apart ? random_product_of_rows_apart(seed) : random_product(seed);
  const ir::Graph graph = graph_of(product);
  if (options.print) fmt::print("{}: {}\n{}", seed, to_string(product), ir::print(graph));
  const std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
  std::string wrong;
  try {
    passes::Compiled compiled =
        passes::run_pipeline(graph, products.target, {.fuse = !apart, .variants = true});
    if (!compiled.taken_apart.empty()) throw Error("taken apart: " + compiled.taken_apart.front());
    // Every other seed: with other tiles, as a tuner may choose them.
    for (std::size_t i = 0; i < compiled.variants.size() && seed % 2 == 0; ++i)
      if (const std::vector<tile::Kernel>& of = compiled.variants[i]; !of.empty())
        compiled.plan.kernels[i] = of[seed / 2 % of.size()];
    wrong = products.problem_with(graph, compiled, inputs, seed);
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  return wrong.empty() ? "" : fmt::format("{}: {}", to_string(product), wrong);
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::ProductOptions options;
  CLI::App app("matmuls against the float64 oracle");
  return tilewright::test::try_products(app, argc, argv, options, [&](auto& products, std::uint64_t seed) {
    return check(products, seed, options);
  });
}
