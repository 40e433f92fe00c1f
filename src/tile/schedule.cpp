// The printed form of a schedule.
#include <tilewright/tile/schedule.h>

#include <fmt/format.h>

#include <string_view>

namespace tilewright::tile {

std::string to_string(const Schedule& schedule) {
  const Schedule plain;
  std::string text;
  const auto add = [&](const char* name, auto value, auto default_value) {
    if (value != default_value) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  };
  add("threads", schedule.threads, plain.threads);
  add("threads_per_row", schedule.threads_per_row, plain.threads_per_row);
  add("vector_bytes", schedule.vector_bytes, plain.vector_bytes);
  add("unroll", schedule.unroll, plain.unroll);
  add("cluster", schedule.cluster, plain.cluster);
  add("stages", schedule.stages, plain.stages);
  add("programs_per_sm", schedule.programs_per_sm, plain.programs_per_sm);
  add("streaming_stores", schedule.streaming_stores, plain.streaming_stores);
  add("keep_in_registers", schedule.keep_in_registers, plain.keep_in_registers);
  add("persistent", schedule.persistent, plain.persistent);
  constexpr std::string_view kUnits[] = {"fma", "mma", "wgmma", "fma_blocks"};
  add("dot", kUnits[static_cast<std::size_t>(schedule.dot)], kUnits[0]);
  add("group_m", schedule.group_m, plain.group_m);
  add("intra_warpgroup_overlap", schedule.intra_warpgroup_overlap, plain.intra_warpgroup_overlap);
  add("fa3_pingpong", schedule.fa3_pingpong, plain.fa3_pingpong);
  add("longest_first", schedule.longest_first, plain.longest_first);
  add("cutlass_pingpong", schedule.cutlass_pingpong, plain.cutlass_pingpong);
  add("tma_store_stages", schedule.tma_store_stages, plain.tma_store_stages);
  return text.empty() ? "default" : text;
}

}  // namespace tilewright::tile
