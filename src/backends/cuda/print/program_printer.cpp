// Where a thread stands, and which programs its block runs.
#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/plan/grid.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::IndexText;

IndexText ProgramPrinter::grid(int axis) const {
  const std::optional<Index> programs = programs_along(kernel_, axis);
  return programs ? IndexText(*programs) : IndexText(fmt::format("grid_{}", axis));
}

// All programs.
std::string ProgramPrinter::programs_text() const {
  IndexText all = 1;
  for (int i = 0; i < static_cast<int>(kernel_.grid.size()); ++i) all = all * grid(i);
  return all.str();
}

// Where this thread stands, and which program it runs. The first grid axis counts fastest, as CUDA's own
// does.
void ProgramPrinter::print_thread_coordinates(Text& head) {
  for (const std::string& line : thread_lines_) head.write(line);
  const int axes = static_cast<int>(kernel_.grid.size());
  const int packed = layouts_.programs_per_block;
  if (layouts_.is_packed()) {
    head.line("const i32 program = i32(blockIdx.x) * {} + i32(threadIdx.x) / {};", packed,
              schedule_.threads / packed);
    head.line("if (program >= {}) return;", programs_text());
  } else if (!walks_programs(schedule_) && !axes_.empty()) {
    if (axes > 1 || row_cluster(schedule_) > 1)
      head.line("const i32 program = i32(blockIdx.x){};",
                row_cluster(schedule_) > 1 ? fmt::format(" / {}", row_cluster(schedule_)) : "");
  }
  if (!walks_programs(schedule_) && group_m(schedule_) > 0) {
    need("tile_swizzle");
    head.line("const GridPoint point = tile_swizzle<{}>(i32(blockIdx.x), {}, {});", group_m(schedule_),
              grid(0).str(), grid(1).str());
  }
  if (!walks_programs(schedule_))
    for (int axis : axes_) head.write(fmt::format("const i32 program_{} = {};", axis, program_id(axis)));
  if (stepped_)
    head.write(
        "int step = 0;  // counts the exchanges that are repeated: neighbours in time use different scratch");
  if (row_cluster(schedule_) > 1 && cluster_waited_)
    head.write(
        "cluster_arrive();  // every block of the cluster has started: waited for before the first exchange");
}

std::string ProgramPrinter::axis_name(int axis) {
  axes_.insert(axis);
  return fmt::format("program_{}", axis);
}

std::string ProgramPrinter::program_id(int axis) {
  const int axes = static_cast<int>(kernel_.grid.size());
  const bool plain =
      axes == 1 && row_cluster(schedule_) == 1 && !layouts_.is_packed() && !walks_programs(schedule_);
  if (group_m(schedule_) > 0 && axis < 2) return axis == 0 ? "point.x" : "point.y";
  if (is_longest_first(schedule_)) return longest_first_id(axis);
  IndexText below = 1, above = 1;
  for (int i = 0; i < axis; ++i) below = below * grid(i);
  for (int i = axis + 1; i < axes; ++i) above = above * grid(i);
  IndexText id = IndexText(plain ? "i32(blockIdx.x)" : "program") / below;
  if (!above.is(1)) id = id % grid(axis);
  return id.str();
}

// The second axis counts slowest, from its end unless a back-to-back matmul's loops begin later there.
std::string ProgramPrinter::longest_first_id(int axis) const {
  const auto axes = static_cast<int>(kernel_.grid.size());
  const IndexText program = "program", others = axes > 2 ? grid(0) * grid(2) : grid(0);
  if (axis == 0) return (program % grid(0)).str();
  if (axis == 2) return (program / grid(0) % grid(2)).str();
  const IndexText counted = program / others;
  return (b2b_ && begins_by_row(*b2b_, kernel_) ? counted : grid(1) - 1 - counted).str();
}

void ProgramPrinter::print_tile_swizzle() {
  if (group_m(schedule_) == 0) return;
  need("tile_swizzle");
  out_.line("const GridPoint point = tile_swizzle<{}>(program, {}, {});", group_m(schedule_), grid(0).str(),
            grid(1).str());
}

void ProgramPrinter::print_program_ids() {
  print_tile_swizzle();
  for (int axis : axes_) out_.line("const i32 program_{} = {};", axis, program_id(axis));
}

ThreadNames ProgramPrinter::thread(const TileFrame& frame) {
  const auto key =
      std::make_pair(frame.threads_per_row, frame.map == RowMap::mma ? 0 : frame.cluster * frame.row_blocks);
  auto it = threads_.find(key);
  if (it != threads_.end()) return it->second;
  ThreadNames names{threads_.empty() ? "t" : names_.unique(fmt::format("t{}", frame.threads_per_row)),
                    threads_.empty() ? "g" : names_.unique(fmt::format("g{}", frame.threads_per_row))};
  const bool whole = frame.threads_per_row == program_threads(schedule_);
  // Among those of its program.
  const std::string self =
      is_pingpong(schedule_) ? fmt::format("int(threadIdx.x) % {}", kWarpgroup) : "int(threadIdx.x)";
  std::string t = whole ? self : fmt::format("int(threadIdx.x) % {}", frame.threads_per_row);
  if (frame.cluster > 1) {
    need("cluster_exchange");
    t = fmt::format("int(cluster_rank()) * {} + {}", frame.threads_per_row, t);
  }
  if (frame.map == RowMap::mma) {
    const int across = frame.threads_per_row / 4;
    const std::string warp_column =
        across > 1 ? fmt::format("int(threadIdx.x) / 32 % {} * 4 + ", across) : "";
    thread_lines_.push_back(fmt::format("const int {} = {}int(threadIdx.x) % 4;", names.t, warp_column));
    thread_lines_.push_back(
        fmt::format("const int {} = {} / {} * 16 + int(threadIdx.x) % 32 / 4;", names.g, self, 32 * across));
    return threads_[key] = names;
  }
  thread_lines_.push_back(fmt::format("const int {} = {};", names.t, t));
  std::string g = fmt::format("{} / {}", self, frame.threads_per_row);
  if (frame.row_blocks > 1) {
    need("cluster_exchange");
    g = fmt::format("int(cluster_rank()) * {} + {}", frame.groups, g);
  }
  if ((whole && frame.row_blocks == 1) || layouts_.is_packed())
    names.g = "0", names.one_group = true;
  else
    thread_lines_.push_back(fmt::format("const int {} = {};", names.g, g));
  return threads_[key] = names;
}

// Before the first exchange, and before code that runs many times or not at all and exchanges.
void ProgramPrinter::wait_for_cluster() {
  if (row_cluster(schedule_) == 1 || cluster_waited_) return;
  out_.write("cluster_wait();");
  cluster_waited_ = true;
}

}  // namespace tilewright::cuda
