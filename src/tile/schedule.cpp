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
  add("raster", schedule.raster, plain.raster);
  add("ahead", schedule.ahead, plain.ahead);
  add("take_turns", schedule.take_turns, plain.take_turns);
  add("descending", schedule.descending, plain.descending);
  add("ping_pong", schedule.ping_pong, plain.ping_pong);
  add("store_places", schedule.store_places, plain.store_places);
  return text.empty() ? "default" : text;
}

}  // namespace tilewright::tile
