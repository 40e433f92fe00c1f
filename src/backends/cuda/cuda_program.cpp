// Loading, launching and describing kernels.
#include "backends/cuda/cuda_program.h"

#include "backends/cuda/analysis/machine_code.h"
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/plan/grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::cuda {

namespace {
constexpr Index kMaxBlocks = (Index{1} << 31) - 1;  // grid x
constexpr Index kSharedWithoutOptIn = 48 * 1024;
}  // namespace

Result<std::unique_ptr<backends::Program>> CudaProgram::load(CudaBackend& backend, const tile::Kernel& kernel,
                                                             const backends::Source& source,
                                                             const backends::Binary& binary) {
  auto module = Module::load(backend.context(), binary.bytes);
  if (!module) return module.error();
  auto function = module->function(source.entry);
  if (!function) return function.error();
  std::unique_ptr<CudaProgram> program(new CudaProgram(backend, std::move(*module), *function));
  auto attributes = program->function_.attributes();
  if (!attributes) return attributes.error();
  program->attributes_ = *attributes;
  program->shape_ = source.launch;
  if (source.launch.threads > attributes->max_threads)
    return failure(Failure::Kind::unsupported,
                   fmt::format("{}: {} threads a block, its {} registers allow {}", source.entry,
                               source.launch.threads, attributes->registers, attributes->max_threads));
  if (source.launch.shared_bytes + attributes->static_shared_bytes > kSharedWithoutOptIn)
    if (auto s = program->function_.allow_shared_bytes(static_cast<int>(source.launch.shared_bytes)); !s)
      return s.error();
  if (source.launch.cluster > 8)
    if (auto s = program->function_.allow_large_clusters(); !s) return s.error();
  program->views_ = kernel.views.size();
  for (const tile::ScalarParam& s : kernel.scalars) program->scalar_bytes_.push_back(size_bytes(s.dtype));
  program->grid_axes_ = grid_parameters(kernel);
  program->persistent_ = walks_programs(source.schedule);
  auto resident = program->function_.blocks_per_multiprocessor(
      source.launch.threads, static_cast<std::size_t>(source.launch.shared_bytes));
  if (!resident) return resident.error();
  program->resident_blocks_ = Index{*resident} * backend.context().limits().multiprocessors;
  program->maps_ = TensorMaps(kernel, source.schedule);
  if (source.launch.together > 1) {
    program->table_ = LaunchTable(kernel, program->grid_axes_, source.launch.together);
    program->parameters_ = {program->table_.data()};
  } else {
    program->parameters_.resize(program->views_ + kernel.scalars.size() + program->grid_axes_.size() +
                                program->maps_.count());
    for (std::size_t i = 0; i < program->grid_axes_.size(); ++i)
      program->parameters_[program->views_ + kernel.scalars.size() + i] = &program->grid_values_[i];
  }
  if (source.launch.cluster > 1) {
    api::LaunchAttribute cluster{};
    cluster.id = api::kLaunchClusterDimension;
    cluster.value.cluster_dim = {static_cast<unsigned>(source.launch.cluster), 1, 1};
    program->attributes_of_launch_.push_back(cluster);
  }
  program->overlaps_ = waits_for_previous(source.text) && access_before_wait(binary.bytes).empty();
  if (program->overlaps_) {
    api::LaunchAttribute overlap{};
    overlap.id = api::kLaunchProgrammaticStreamSerialization;
    overlap.value.programmatic_stream_serialization_allowed = 1;
    program->attributes_of_launch_.push_back(overlap);
  }
  api::LaunchConfig& c = program->config_;
  c.grid_x = c.grid_y = c.grid_z = 1;
  c.block_x = static_cast<unsigned>(source.launch.threads);
  c.block_y = c.block_z = 1;
  c.shared_bytes = static_cast<unsigned>(source.launch.shared_bytes);
  c.stream = backend.stream();
  c.attributes = program->attributes_of_launch_.data();
  c.attribute_count = static_cast<unsigned>(program->attributes_of_launch_.size());
  if (program->persistent_ && source.launch.cluster > 1)
    if (auto s = program->count_clusters(backend.context().driver()); !s) return s.error();
  return std::unique_ptr<backends::Program>(std::move(program));
}

// Clusters need free blocks on neighbouring multiprocessors: fewer run at once than blocks alone would.
Status CudaProgram::count_clusters(const Driver& driver) {
  int clusters = 0;
  config_.grid_x = static_cast<unsigned>(shape_.cluster);
  const auto result = driver.occupancy_max_active_clusters(&clusters, function_.get(), &config_);
  if (auto s = check(driver, result, "cuOccupancyMaxActiveClusters"); !s) return s;
  resident_blocks_ = Index{clusters} * shape_.cluster;
  return Unit{};
}

Result<unsigned> CudaProgram::blocks_for(const Index* grid) const {
  Index programs = 1;
  for (int i = 0; i < tile::kMaxGridAxes; ++i)
    if (grid[i] < 0 || __builtin_mul_overflow(programs, grid[i], &programs) || programs > kMaxBlocks)
      return failure(
          Failure::Kind::invalid,
          fmt::format("grid [{},{},{}]: a launch has at most 2^31 - 1 programs", grid[0], grid[1], grid[2]));
  Index blocks = ceil_div(programs, shape_.programs_per_block) * shape_.cluster;
  if (persistent_)
    blocks = std::min(blocks, std::max<Index>(resident_blocks_ / shape_.cluster, 1) * shape_.cluster);
  if (blocks > kMaxBlocks)
    return failure(Failure::Kind::invalid, fmt::format("{} blocks: a launch has at most 2^31 - 1", blocks));
  return static_cast<unsigned>(blocks);
}

Status CudaProgram::launch(const backends::LaunchArgs& args) {
  const auto blocks = blocks_for(args.grid);
  if (!blocks) return blocks.error();
  if (*blocks == 0) return Unit{};
  const auto entered = backend_.enter();
  if (!entered) return entered.error();
  const Driver& driver = function_.driver();
  if (table_.size() > 0)
    table_.fill(args.views, args.scalars, args.grid, args.count);
  else if (Status s = set_parameters(args); !s)
    return s;
  config_.grid_x = *blocks;
  config_.grid_y = static_cast<unsigned>(args.count);
  const auto result = driver.launch_kernel_ex(&config_, function_.get(), parameters_.data(), nullptr);
  if (result == api::kSuccess) return Unit{};
  return driver_failure(driver, result,
                        fmt::format("launch of {} blocks of {} threads", *blocks, shape_.threads));
}

Status CudaProgram::set_parameters(const backends::LaunchArgs& args) {
  for (std::size_t i = 0; i < views_; ++i)
    parameters_[i] = static_cast<void*>(const_cast<void**>(args.views + i));
  for (std::size_t i = 0; i < scalar_bytes_.size(); ++i)
    parameters_[views_ + i] = const_cast<std::int64_t*>(args.scalars + i);
  for (std::size_t i = 0; i < grid_axes_.size(); ++i)
    grid_values_[i] = static_cast<std::int32_t>(args.grid[grid_axes_[i]]);
  for (std::size_t i = 0; i < maps_.count(); ++i) {
    const auto map = maps_.get(function_.driver(), i, args.views, args.scalars);
    if (!map) return map.error();
    parameters_[parameters_.size() - maps_.count() + i] = const_cast<api::TensorMap*>(*map);
  }
  return Unit{};
}

Result<RecordedWork> CudaProgram::record(const backends::RecordedLaunch& recorded) {
  const auto blocks = blocks_for(recorded.grid);
  if (!blocks) return blocks.error();
  if (*blocks == 0) return RecordedWork();
  Arguments arguments;
  if (table_.size() > 0) {
    table_.fill(recorded.views.data(), recorded.scalars.data(), recorded.grid, recorded.count);
    arguments.add_bytes(table_.data(), table_.size(), alignof(std::uint64_t));
  } else {
    for (void* view : recorded.views) arguments.add(view);
    for (std::size_t i = 0; i < scalar_bytes_.size(); ++i)
      arguments.add_bytes(&recorded.scalars[i], scalar_bytes_[i], scalar_bytes_[i]);
    for (int axis : grid_axes_) arguments.add(static_cast<std::int32_t>(recorded.grid[axis]));
  }
  for (std::size_t i = 0; i < maps_.count(); ++i) {
    const auto map = maps_.get(function_.driver(), i, recorded.views.data(), recorded.scalars.data());
    if (!map) return map.error();
    arguments.add(**map);
  }
  LaunchShape shape;
  shape.grid[0] = *blocks;
  shape.grid[1] = static_cast<unsigned>(recorded.count);
  shape.block[0] = static_cast<unsigned>(shape_.threads);
  shape.cluster[0] = static_cast<unsigned>(shape_.cluster);
  shape.shared_bytes = static_cast<unsigned>(shape_.shared_bytes);
  shape.overlap_previous = overlaps_;
  auto prepared = PreparedLaunch::make(function_, shape, std::move(arguments));
  if (!prepared) return prepared.error();
  auto kept = std::make_shared<PreparedLaunch>(std::move(*prepared));
  return RecordedWork([kept](api::CUstream stream) { return kept->launch(stream); });
}

std::string CudaProgram::describe() const {
  std::string text = fmt::format("{} registers a thread, {} threads a block, {} blocks an SM",
                                 attributes_.registers, shape_.threads,
                                 resident_blocks_ / std::max(1, backend_.context().limits().multiprocessors));
  if (attributes_.local_bytes > 0)
    text += fmt::format(", {} bytes of local memory a thread", attributes_.local_bytes);
  const Index shared = attributes_.static_shared_bytes + shape_.shared_bytes;
  if (shared > 0) text += fmt::format(", {} bytes of shared memory", shared);
  if (shape_.cluster > 1) text += fmt::format(", clusters of {}", shape_.cluster);
  if (overlaps_) text += ", may start before the kernel before has ended";
  return text;
}

}  // namespace tilewright::cuda
