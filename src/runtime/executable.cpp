// Binding addresses and walking the plan.
#include "runtime/executable.h"

#include <tilewright/base/clock.h>
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tilewright::runtime {

using tile::PlanBuffer;
using tile::PlanStep;

Result<std::unique_ptr<Executable>> Executable::create(const tile::Plan& plan, KernelStore& store) {
  auto kernels = store.build(plan.kernels);
  if (!kernels) return kernels.error();
  return create(plan, store, *std::move(kernels));
}

Result<std::unique_ptr<Executable>> Executable::create(const tile::Plan& plan, KernelStore& store,
                                                       BuiltKernels built) {
  TW_CHECK(built.kernels.size() == plan.kernels.size(), "a kernel of the plan is not among those loaded");
  std::unique_ptr<Executable> out(new Executable(plan));
  out->device_ = store.device();
  out->kernels_ = std::move(built.kernels);
  out->build_times_ = built.times;
  if (Status made = out->make_arena(static_cast<std::size_t>(plan.arena_bytes)); !made) return made.error();
  out->prepare();
  return out;
}

Status Executable::make_arena(std::size_t bytes) {
  if (bytes == 0) return Unit{};
  auto arena = Buffer::allocate(device_, bytes);
  if (!arena) return arena.error();
  arena_ = std::move(*arena);
  return Unit{};
}

Status Executable::resize(const tile::Plan& plan) {
  const auto needed = static_cast<std::size_t>(plan.arena_bytes);
  // Sizes that grow step by step take new memory a few times, where there is some to spare.
  if (needed > (arena_ ? arena_->bytes() : 0) && !(arena_ && make_arena(needed + needed / 4)))
    if (Status made = make_arena(needed); !made) return made;
  plan_.buffers = plan.buffers;
  plan_.steps = plan.steps;
  plan_.arena_bytes = plan.arena_bytes;
  recordings_.clear();
  prepare();
  return Unit{};
}

void Executable::replace(std::size_t kernel, std::shared_ptr<LoadedKernel> with) {
  kernels_[kernel] = std::move(with);
  for (Launch& l : launches_)
    if (l.kernel == kernel && l.program) l.program = kernels_[kernel]->program.get();
  bundle();
  recordings_.clear();
}

void Executable::replace(std::size_t kernel, const tile::Kernel& of, std::shared_ptr<LoadedKernel> with) {
  plan_.kernels[kernel] = of;
  for (Launch& l : launches_)
    if (l.kernel == kernel && l.program) set_grid(l, of);
  replace(kernel, std::move(with));
}

void Executable::set_grid(Launch& launch, const tile::Kernel& kernel) {
  const std::vector<Index> grid = tile::grid_extents(kernel, launch.scalars);
  launch.empty = std::count(grid.begin(), grid.end(), 0) > 0;
  std::fill(std::begin(launch.grid), std::end(launch.grid), 1);
  std::copy(grid.begin(), grid.end(), std::begin(launch.grid));
}

void Executable::prepare() {
  addresses_.assign(plan_.buffers.size(), nullptr);
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
    if (plan_.buffers[b].role == PlanBuffer::Role::temporary && plan_.buffers[b].arena_offset >= 0)
      addresses_[b] = static_cast<char*>(arena_->data()) + plan_.buffers[b].arena_offset;
  launches_.resize(plan_.steps.size());
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const PlanStep& step = plan_.steps[s];
    if (step.kind != PlanStep::Kind::launch) continue;
    Launch& l = launches_[s];
    l.kernel = static_cast<std::size_t>(step.kernel);
    l.program = kernels_[l.kernel]->program.get();
    l.scalars = step.scalars;
    l.patches.clear();
    set_grid(l, plan_.kernels[l.kernel]);
    l.views.assign(step.views.size(), nullptr);
    for (std::size_t v = 0; v < step.views.size(); ++v) {
      const auto b = static_cast<std::size_t>(step.views[v].buffer);
      const std::ptrdiff_t offset =
          step.views[v].offset * static_cast<std::ptrdiff_t>(size_bytes(plan_.buffers[b].dtype));
      if (plan_.buffers[b].role == PlanBuffer::Role::temporary)
        l.views[v] = static_cast<char*>(addresses_[b]) + offset;
      else
        l.patches.push_back({v, b, offset});
    }
  }
  bundle();
}

void Executable::bundle() {
  bundles_.clear();
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const auto fits = [&](const Bundle& b) {
      return b.end - b.first < static_cast<std::size_t>(launches_[s].program->most_together());
    };
    if (!bundles_.empty() && runs_beside(s) && fits(bundles_.back()))
      bundles_.back().end = s + 1;
    else
      bundles_.push_back({s, s + 1, {}, {}});
  }
  for (Bundle& b : bundles_)
    if (b.end - b.first > 1)
      for (std::size_t s = b.first; s < b.end; ++s)
        b.scalars.insert(b.scalars.end(), launches_[s].scalars.begin(), launches_[s].scalars.end());
}

// Whether a launch may run with the one before it: a tuned or an edited kernel may be a program of its own.
bool Executable::runs_beside(std::size_t step) const {
  if (!plan_.steps[step].beside_previous) return false;
  const Launch &before = launches_[step - 1], &l = launches_[step];
  return before.program == l.program && !l.empty && std::equal(l.grid, std::end(l.grid), before.grid);
}

const std::vector<void*>& Executable::views_of(Bundle& b) const {
  if (b.end - b.first == 1) return launches_[b.first].views;
  b.views.clear();
  for (std::size_t s = b.first; s < b.end; ++s)
    b.views.insert(b.views.end(), launches_[s].views.begin(), launches_[s].views.end());
  return b.views;
}

Status Executable::run_bundle(Bundle& b) {
  if (b.end - b.first == 1) return run_step(b.first);
  const Launch& l = launches_[b.first];
  return l.program->launch({views_of(b).data(),
                            b.scalars.data(),
                            {l.grid[0], l.grid[1], l.grid[2]},
                            static_cast<int>(b.end - b.first)});
}

Status Executable::bind(std::span<const std::shared_ptr<Buffer>> inputs,
                        std::span<const std::shared_ptr<Buffer>> outputs) {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    if (buffer.role == PlanBuffer::Role::temporary) continue;
    const auto& from = buffer.role == PlanBuffer::Role::input ? inputs : outputs;
    const Buffer& given = *from[static_cast<std::size_t>(buffer.position)];
    const auto needed = static_cast<std::size_t>(buffer.elements) * size_bytes(buffer.dtype);
    TW_CHECK(given.bytes() >= needed, "a buffer is smaller than the plan says");
    addresses_[b] = given.data();
  }
  for (Launch& l : launches_)
    for (const Patch& p : l.patches)
      l.views[p.view] = static_cast<char*>(addresses_[p.buffer]) + p.offset_bytes;
  return Unit{};
}

Status Executable::run_step(std::size_t s) {
  const PlanStep& step = plan_.steps[s];
  const auto bytes = [&](int b) {
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(b)];
    return static_cast<std::size_t>(buffer.elements) * size_bytes(buffer.dtype);
  };
  if (step.kind == PlanStep::Kind::launch) {
    Launch& l = launches_[s];
    if (l.empty) return Unit{};
    backends::LaunchArgs args{l.views.data(), l.scalars.data(), {l.grid[0], l.grid[1], l.grid[2]}};
    return l.program->launch(args);
  }
  void* to = addresses_[static_cast<std::size_t>(step.buffer)];
  if (bytes(step.buffer) == 0) return Unit{};
  if (step.kind == PlanStep::Kind::zero) return device_->backend().fill(to, {}, bytes(step.buffer));
  return device_->backend().copy(to, addresses_[static_cast<std::size_t>(step.from)], bytes(step.buffer),
                                 backends::CopyKind::device_to_device);
}

Executable::StepLaunch Executable::launch_of(std::size_t step) const {
  const Launch& l = launches_[step];
  if (plan_.steps[step].kind != PlanStep::Kind::launch || l.empty) return {};
  return {l.kernel, l.views, l.scalars, {l.grid[0], l.grid[1], l.grid[2]}};
}

Status Executable::run(std::span<const std::shared_ptr<Buffer>> inputs,
                       std::span<const std::shared_ptr<Buffer>> outputs) {
  if (auto bound = bind(inputs, outputs); !bound) return bound;
  for (Bundle& b : bundles_)
    if (auto done = run_bundle(b); !done) return done;
  return Unit{};
}

bool Executable::can_replay() const {
  const bool only_launches = std::all_of(plan_.steps.begin(), plan_.steps.end(),
                                         [](const PlanStep& s) { return s.kind == PlanStep::Kind::launch; });
  return only_launches && !device_->is_host() &&
         std::count_if(launches_.begin(), launches_.end(), [](const Launch& l) { return !l.empty; }) > 1;
}

Status Executable::replay(std::span<const std::shared_ptr<Buffer>> inputs,
                          std::span<const std::shared_ptr<Buffer>> outputs) {
  constexpr std::size_t kMostRecordings = 8;
  if (!can_replay()) return run(inputs, outputs);
  if (auto bound = bind(inputs, outputs); !bound) return bound;
  auto at = std::find_if(recordings_.begin(), recordings_.end(),
                         [&](const Recording& r) { return r.addresses == addresses_; });
  if (at == recordings_.end()) {
    std::vector<backends::RecordedLaunch> launches;
    for (Bundle& b : bundles_) {
      const Launch& l = launches_[b.first];
      const auto count = static_cast<int>(b.end - b.first);
      if (!l.empty)
        launches.push_back({l.program,
                            views_of(b),
                            count == 1 ? l.scalars : b.scalars,
                            {l.grid[0], l.grid[1], l.grid[2]},
                            count});
    }
    auto recorded = device_->backend().record(launches);
    if (!recorded) return recorded.error();
    if (recordings_.size() == kMostRecordings) recordings_.pop_back();
    recordings_.push_back({addresses_, std::move(*recorded)});
    at = recordings_.end() - 1;
  }
  std::rotate(recordings_.begin(), at, at + 1);
  const std::unique_ptr<backends::Replay>& replay = recordings_.front().replay;
  return replay ? replay->run() : run(inputs, outputs);
}

Result<double> Executable::time_kernel(std::size_t kernel, const tile::Kernel& of, backends::Program& program,
                                       int launches) {
  const auto launch = std::find_if(launches_.begin(), launches_.end(),
                                   [&](const Launch& l) { return l.program && l.kernel == kernel; });
  if (launch == launches_.end() || launch->empty) return 0.0;
  Launch timed = *launch;
  set_grid(timed, of);
  const backends::LaunchArgs args{
      timed.views.data(), timed.scalars.data(), {timed.grid[0], timed.grid[1], timed.grid[2]}};
  backends::Backend& backend = device_->backend();
  if (Status started = backend.timer_start(); !started) return started.error();
  for (int i = 0; i < launches; ++i)
    if (Status ran = program.launch(args); !ran) return ran.error();
  auto us = backend.timer_stop_us();
  if (!us) return us;
  return *us / launches;
}

}  // namespace tilewright::runtime
