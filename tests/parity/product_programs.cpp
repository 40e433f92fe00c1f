// Random programs around batched products, their gradients and second derivatives, against the float64 oracle
// of what was written, and that against differences.
//   product_programs --device cpu --count 500 --seed 1 [--lower-for sm_90a] [--shard i/n | --jobs n]
//   [--print]
// --lower-for gives the kernels that a GPU would run to the device, whichever it is.
#include "support/product_programs.h"
#include "ir/text.h"
#include "parity/product_check.h"
#include "support/shrink.h"

namespace tilewright::test {

struct ProgramOptions : ProductOptions {
  bool no_shrink = false, slopes = true, only_lower = false;
};

struct Check {
  ProductRunner& products;
  const ProgramOptions& options;

  // Empty when the device agrees.
  std::string operator()(const ProductProgram& program, std::uint64_t seed) const {
    const std::vector<ir::HostTensor> inputs = program_inputs(program.graph, seed);
    try {
      if (options.slopes)
        if (std::string wrong = difference_from_slopes(program, seed); !wrong.empty()) return wrong;
      const Recompute recompute = seed % 8 == 0 ? Recompute::always : Recompute::by_cost;
      const passes::Compiled compiled = passes::run_pipeline(
          program.graph, products.target, {.fuse = seed % 16 != 1, .recompute = recompute});
      if (!compiled.taken_apart.empty()) return "taken apart: " + compiled.taken_apart.front();
      if (options.only_lower) return "";
      return products.problem_with(program.graph, compiled, inputs, seed);
    } catch (const std::exception& e) {
      return e.what();
    }
  }
};

// The same with the simplest answers that still fail.
std::string smallest(const Check& check, Numbers numbers, std::string wrong, std::uint64_t seed) {
  const std::string kind = wrong.substr(0, wrong.find(':'));
  for (bool simpler = true; simpler;) {
    simpler = false;
    SimplerNumbers others(numbers);
    while (const std::optional<Numbers> next = others.next()) {
      ListedChoices listed(*next);
      RecordedChoices recorded(listed);
      const std::string problem = check(random_product_program(recorded), seed);
      if (problem.substr(0, problem.find(':')) != kind || !is_simpler(recorded.numbers(), numbers)) continue;
      numbers = recorded.numbers();
      wrong = problem;
      simpler = true;
      break;
    }
  }
  ListedChoices listed(numbers);
  return fmt::format("the smallest of its kind that was found: {}\n{}", wrong,
                     ir::print(random_product_program(listed).graph));
}

std::string problem_of(const Check& check, std::uint64_t seed) {
  Random random(seed);
  RecordedChoices recorded(random);
  const ProductProgram program = random_product_program(recorded);
  if (check.options.print) fmt::print("{}: {}", seed, ir::print(program.graph));
  std::string problem = check(program, seed);
  if (problem.empty() || check.options.no_shrink) return problem;
  return problem + "\n" + smallest(check, recorded.numbers(), problem, seed);
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::ProgramOptions options;
  CLI::App app("programs of products against the float64 oracle");
  app.add_flag("--no-shrink", options.no_shrink, "print what differs as it was drawn");
  app.add_flag("--slopes,!--no-slopes", options.slopes, "compare derivatives with differences (default)");
  app.add_flag("--only-lower", options.only_lower, "no kernel is run");
  return tilewright::test::try_products(app, argc, argv, options, [&](auto& products, std::uint64_t seed) {
    return tilewright::test::problem_of({products, options}, seed);
  });
}
