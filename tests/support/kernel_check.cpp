// The launch between the copies.
#include "support/kernel_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::testing {

namespace {

// Device copies of the views' buffers, given back at the end.
class DeviceViews {
 public:
  explicit DeviceViews(backends::Backend& backend) : backend_(backend) {}
  ~DeviceViews() {
    for (auto [address, bytes] : memory_) backend_.release(address, bytes);
  }
  Status add(const HostView& view) {
    auto memory = backend_.allocate(static_cast<std::size_t>(view.bytes));
    if (!memory) return memory.error();
    memory_.push_back({*memory, static_cast<std::size_t>(view.bytes)});
    origins_.push_back(static_cast<char*>(*memory) + view.origin_bytes);
    return backend_.copy(*memory, view.data, static_cast<std::size_t>(view.bytes), backends::CopyKind::host_to_device);
  }
  Status copy_back(const std::vector<HostView>& views) {
    for (std::size_t i = 0; i < views.size(); ++i)
      if (auto s = backend_.copy(views[i].data, memory_[i].first, memory_[i].second, backends::CopyKind::device_to_host); !s)
        return s;
    return Unit{};
  }
  void* const* origins() const { return origins_.data(); }

 private:
  backends::Backend& backend_;
  std::vector<std::pair<void*, std::size_t>> memory_;
  std::vector<void*> origins_;
};

}  // namespace

KernelCheck check_kernel(backends::Backend& backend, const tile::Kernel& kernel, const tile::Schedule& schedule,
                         const ParityOptions& options) {
  KernelCheck result;
  const auto source = backend.print(kernel, schedule);
  if (!source) {
    result.refused = source.error().message;
    return result;
  }
  const auto report = check_parity(
      kernel, options,
      [&](const tile::Kernel&, const std::vector<HostView>& views, const std::vector<std::int64_t>& scalars) -> Status {
        const auto binary = backend.compile(kernel, *source);
        if (!binary) return binary.error();
        const auto program = backend.load(kernel, *source, *binary);
        if (!program) return program.error();
        DeviceViews device(backend);
        for (const HostView& v : views)
          if (auto s = device.add(v); !s) return s;
        backends::LaunchArgs args{.views = device.origins(), .scalars = scalars.data()};
        const std::vector<Index> grid = tile::grid_extents(kernel, scalars);
        std::copy(grid.begin(), grid.end(), args.grid);
        if (auto s = (*program)->launch(args); !s) return s;
        if (auto s = backend.synchronize(); !s) return s;
        return device.copy_back(views);
      });
  if (!report.ok())
    result.problem = fmt::format("{} [{}]: {}\n{}", kernel.name, to_string(schedule), report.message, source->text);
  return result;
}

}  // namespace tilewright::testing
