// Candidate schedules and their predicted time.
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tilewright::cuda {

std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PrintOptions& options) {
  (void)target;
  (void)options;
  const auto plan = printer::plan_loops(kernel, {.keep_loads = true});
  const auto ranges = printer::value_ranges(kernel);
  const MainShape main = main_shape(kernel, plan, ranges);
  std::vector<backends::Candidate> out;
  const Index vectors = ceil_div(main.cols, main.vector);
  backends::Candidate c;
  const Index threads =
      std::clamp<Index>(std::bit_ceil(static_cast<std::uint64_t>(ceil_div(vectors, 4))), 32, 1024);
  c.schedule = {
      .threads = static_cast<int>(threads), .threads_per_row = static_cast<int>(threads), .vector_bytes = 16};
  out.push_back(c);
  return out;
}

}  // namespace tilewright::cuda
