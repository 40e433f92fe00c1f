// The fields of schedules, each with the value that kinds without it stand for.
#include "backends/cuda/analysis/schedule_fields.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Schedule;

namespace {

// What `get` says of the kind, or `otherwise` of a kind without that field.
template <typename Get, typename T>
T field_or(const Schedule& schedule, Get get, T otherwise) {
  return std::visit(
      [&]<typename Kind>(const Kind& kind) {
        if constexpr (std::is_invocable_v<Get, const Kind&>) return get(kind);
        return otherwise;
      },
      schedule.kind);
}

}  // namespace

int threads_per_row(const Schedule& schedule) {
  constexpr int kLanesOfRow = 4;  // of an accumulator
  return field_or(
      schedule, [](const auto& kind) -> decltype(kind.threads_per_row) { return kind.threads_per_row; },
      kLanesOfRow);
}
int stages(const Schedule& schedule) {
  return field_or(schedule, [](const auto& kind) -> decltype(kind.stages) { return kind.stages; }, 1);
}
int group_m(const Schedule& schedule) {
  return field_or(schedule, [](const auto& kind) -> decltype(kind.group_m) { return kind.group_m; }, 0);
}
bool is_longest_first(const Schedule& schedule) {
  return field_or(
      schedule, [](const auto& kind) -> decltype(kind.longest_first) { return kind.longest_first; }, false);
}
int store_stages(const Schedule& schedule) {
  return field_or(
      schedule, [](const auto& kind) -> decltype(kind.store_stages) { return kind.store_stages; }, 0);
}

int row_cluster(const Schedule& schedule) {
  const auto* elements = std::get_if<tile::ElementLoops>(&schedule.kind);
  return elements ? elements->cluster : 1;
}

int launched_cluster(const Schedule& schedule) {
  const auto* scaled = std::get_if<tile::WgmmaScaled>(&schedule.kind);
  return scaled ? scaled->cluster : row_cluster(schedule);
}

int side_by_side(const Schedule& schedule) {
  const auto* elements = std::get_if<tile::ElementLoops>(&schedule.kind);
  return elements ? std::max(1, elements->programs) : 1;
}

bool is_pingpong(const Schedule& schedule) {
  return std::holds_alternative<tile::WgmmaPingpong>(schedule.kind);
}

tile::Rounds rounds(const Schedule& schedule) {
  const auto* b2b = std::get_if<tile::WgmmaB2b>(&schedule.kind);
  return b2b ? b2b->rounds : tile::Rounds::apart;
}

bool is_for_chains(const Schedule& schedule) {
  return std::holds_alternative<tile::MmaB2b>(schedule.kind) ||
         std::holds_alternative<tile::WgmmaB2b>(schedule.kind) ||
         std::holds_alternative<tile::WgmmaScaled>(schedule.kind);
}

bool walks_programs(const Schedule& schedule) {
  const auto* elements = std::get_if<tile::ElementLoops>(&schedule.kind);
  return elements ? elements->stages > 1 : is_wgmma(schedule);
}

}  // namespace tilewright::cuda
