// Random graphs, compiled for a device, against the float64 oracle. Prints the seed of each that differs, and
// the smallest graph found that differs as well.
//   graph_fuzz --device cpu --count 5000 --seed 1 [--shard i/n] [--no-fuse] [--no-shrink]
//   graph_fuzz --device cuda:0 --family tiny --count 10000 --jobs 16
//   graph_fuzz --device emulated:sm_90a --family tiny    what a GPU would run, on the host (open_device.h)
//   graph_fuzz --device cpu --graph FILE --seed 17       this graph, with the inputs of seed 17
//   graph_fuzz --device cpu --count 60 --runs 100        each so often, deterministic: the same bits
#include "ir/text.h"
#include "ops/ops.h"
#include "parity/family.h"
#include "parity/shards.h"
#include "support/graph_check.h"
#include "support/readable_errors.h"

#include <fstream>
#include <sstream>

namespace tilewright::test {

struct FuzzOptions {
  GraphCheckOptions check;
  GraphFamily family = GraphFamily::mixed;
  int ops = 12;
  bool no_shrink = false, print = false;
  std::string file;
};

// What is wrong with a seed's graph, and the smallest that is still wrong.
std::string problem_with(std::uint64_t seed, GraphCheck& check, const FuzzOptions& options,
                         const std::string& command) {
  RandomGraphOptions drawn = graph_of_seed(seed, options.family);
  drawn.ops = options.ops;
  GraphCase graph = graph_case(drawn);
  if (options.print) fmt::print("{}", ir::print(graph.graph));
  AskedOnce problem([&](const GraphCase& c) { return check.problem_with(c.graph, seed); });
  const std::string first = problem(graph);
  if (first.empty()) return "";
  if (options.no_shrink) return first + "\n" + describe(graph, command);
  graph = shrink(std::move(graph), problem);
  return fmt::format("{}\nthe smallest of its kind that was found: {}\n{}", first, problem(graph),
                     describe(graph, command));
}

int check_file(const std::string& path, std::uint64_t seed, GraphCheck& check) {
  std::ostringstream text;
  std::ifstream file(path);
  if (!file || !(text << file.rdbuf())) return fmt::print("{} cannot be read\n", path), 1;
  const auto graph = ir::parse(text.str(), ops::all_ops());
  if (!graph) return fmt::print("{}\n", graph.error().message), 1;
  const std::string problem = check.problem_with(*graph, seed);
  fmt::print("{}\n", problem.empty() ? "passed" : problem);
  return problem.empty() ? 0 : 1;
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::FuzzOptions options;
  tilewright::test::Seeds seeds;
  CLI::App app("random graphs against the float64 oracle");
  app.add_option("--device", options.check.device);
  app.add_option("--isa", options.check.isa);
  add_options(app, seeds);
  app.add_option("--runs", options.check.runs, "of each graph, bit-equal (default 1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--ops", options.ops);
  add_family(app, options.family);
  app.add_flag("--fuse,!--no-fuse", options.check.fuse);
  app.add_flag("--no-shrink", options.no_shrink, "print what differs as it was drawn");
  app.add_flag("--print", options.print);
  app.add_option("--graph", options.file, "the graph in this file, with the inputs of --seed");
  CLI11_PARSE(app, argc, argv);
  if (const auto status = share_out(seeds)) return *status;
  return tilewright::test::with_readable_errors("graph_fuzz", [&] {
    tilewright::test::GraphCheck check(options.check);
    if (!options.file.empty()) return check_file(options.file, seeds.first, check);
    std::string command = "graph_fuzz --device " + options.check.device;
    if (!options.check.isa.empty()) command += " --isa " + options.check.isa;
    if (!options.check.fuse) command += " --no-fuse";
    command += tilewright::test::family_option(options.family);
    return try_seeds(
        seeds, [&](std::uint64_t seed) { return problem_with(seed, check, options, command); },
        [&] {
          return check.decided() == 0 ? "" : fmt::format(", {} decided by a rounding", check.decided());
        });
  });
}
