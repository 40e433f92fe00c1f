// Each field with its value in the kinds that have none.
#include "backends/cuda/analysis/schedule_fields.h"

namespace tilewright::cuda {

using tile::Schedule;

int threads_per_row(const Schedule& schedule) {
  constexpr int kLanesOfRow = 4;  // of an accumulator
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.threads_per_row; }) return kind.threads_per_row;
        return kLanesOfRow;
      },
      schedule.kind);
}

int stages(const Schedule& schedule) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.stages; }) return kind.stages;
        return 1;
      },
      schedule.kind);
}

int group_m(const Schedule& schedule) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.group_m; }) return kind.group_m;
        return 0;
      },
      schedule.kind);
}

bool is_descending(const Schedule& schedule) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.longest_first; }) return kind.longest_first;
        return false;
      },
      schedule.kind);
}

int tma_store_stages(const Schedule& schedule) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.tma_store_stages; }) return kind.tma_store_stages;
        return 0;
      },
      schedule.kind);
}

int row_cluster(const Schedule& schedule) {
  const auto* elements = std::get_if<tile::ElementLoops>(&schedule.kind);
  return elements ? elements->cluster : 1;
}

int launched_cluster(const Schedule& schedule) {
  const auto* scaled = std::get_if<tile::WgmmaScaled>(&schedule.kind);
  return scaled ? scaled->cluster : row_cluster(schedule);
}

bool is_ping_pong(const Schedule& schedule) {
  return std::holds_alternative<tile::WgmmaPingPong>(schedule.kind);
}

tile::Rounds rounds(const Schedule& schedule) {
  const auto* b2b = std::get_if<tile::WgmmaB2b>(&schedule.kind);
  return b2b ? b2b->rounds : tile::Rounds::apart;
}

bool is_for_chains(const Schedule& schedule) {
  return std::holds_alternative<tile::MmaChain>(schedule.kind) ||
         std::holds_alternative<tile::WgmmaB2b>(schedule.kind) ||
         std::holds_alternative<tile::WgmmaScaled>(schedule.kind);
}

bool walks_programs(const Schedule& schedule) {
  const auto* elements = std::get_if<tile::ElementLoops>(&schedule.kind);
  return elements ? elements->stages > 1 : is_wgmma(schedule);
}

}  // namespace tilewright::cuda
