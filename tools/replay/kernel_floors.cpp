// kernel_floors: of every kernel of a record (replay.py --record) the time that its backend's model predicts
// today, beside its floor: the later of its bytes at the memory's rate and its operations at the units'. What
// is far above its floor, or below it, is a mistake of the model or of the kernel.
#include <tilewright/base/error.h>
#include <tilewright/tile/cost.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "replay/machine.h"
#include "replay/text_file.h"

namespace tilewright::replay {

namespace {

struct Options {
  std::string folder, filter;
  std::vector<std::string> machines = machine_names();
  double above = 0, below = std::numeric_limits<double>::infinity();
};

double programs_of(const tile::Kernel& kernel) {
  double programs = 1;
  for (const Index n : tile::grid_extents(kernel, std::vector<std::int64_t>(kernel.scalars.size(), 4096)))
    programs *= static_cast<double>(n);
  return programs;
}

double floor_us(const perf::Cost& work, const tile::Target& target) {
  const perf::FlopsByType matrix = work.matrix_by_rate();
  // Products of f32 keep their bits, on the ordinary units, but for those that may be rounded.
  const double plain = target.matrix_flops_per_s > 0
                           ? work.matrix[DType::f32] - work.tf32 + work.matrix[DType::f64]
                           : work.matrix.total(),
               on_units = target.matrix_flops_per_s > 0 ? matrix.total() - plain : 0;
  return 1e6 * std::max({work.bytes() / target.memory_bytes_per_s,
                         on_units > 0 ? on_units / (2 * target.matrix_flops_per_s) : 0,
                         (work.vector.total() + plain) / target.flops_per_s});
}

int run(const Options& options) {
  const nlohmann::json index = nlohmann::json::parse(text_of(options.folder + "/index.json"));
  for (const std::string& name : options.machines) {
    const Machine machine = make_machine(name);
    std::set<std::string> seen;
    for (const nlohmann::json& program : index["programs"]) {
      const std::string title = program["name"];
      if (program["machine"] != name || title.find(options.filter) == std::string::npos) continue;
      for (const nlohmann::json& recorded : program["kernels"]) {
        const std::string hash = recorded["tile"];
        if (!seen.insert(hash).second) continue;
        const tile::Kernel kernel =
            tile::parse(text_of(options.folder + "/texts/" + hash.substr(0, 2) + "/" + hash + ".tile"))
                .value();
        const perf::Cost work = tile::cost(kernel, std::vector<std::int64_t>(kernel.scalars.size(), 4096));
        const double floor = floor_us(work, machine.target) + 1e6 * machine.target.launch_s,
                     predicted = machine.target.predicted_us(kernel, machine.target);
        if (predicted < options.above * floor || predicted > options.below * floor) continue;
        fmt::print("{} {:.2f} of {:.2f} us ({:.2f} times), {:.0f} programs, {:.2f} MB: {} of {}, {}\n", name,
                   predicted, floor, predicted / floor, programs_of(kernel), work.bytes() * 1e-6,
                   std::string(recorded["name"]), title, hash);
      }
    }
  }
  return 0;
}

}  // namespace

}  // namespace tilewright::replay

int main(int argc, char** argv) {
  tilewright::replay::Options options;
  CLI::App app("Predicted times of a record's kernels beside their floors, each kernel once.");
  app.add_option("record", options.folder, "a folder that replay.py --record wrote")->required();
  app.add_option("--targets", options.machines, "cpu, sm_80, sm_90a; all by default")->delimiter(',');
  app.add_option("--filter", options.filter, "only programs with this in their name");
  app.add_option("--above", options.above, "only kernels predicted above so many times their floor");
  app.add_option("--below", options.below, "only kernels predicted below so many times their floor");
  CLI11_PARSE(app, argc, argv);
  try {
    return tilewright::replay::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernel_floors: {}\n", error.what());
    return 2;
  }
}
