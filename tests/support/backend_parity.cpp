// One launch of one kernel, with memory of the device for each view.
#include "support/backend_parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilewright::test {

namespace {

// Device copies of the host views, freed on every way out.
class DeviceViews {
 public:
  DeviceViews(backends::Backend& backend, const std::vector<HostView>& host)
      : backend_(backend), host_(host) {}
  DeviceViews(const DeviceViews&) = delete;
  DeviceViews& operator=(const DeviceViews&) = delete;
  ~DeviceViews() {
    for (std::size_t v = 0; v < memory_.size(); ++v) backend_.release(memory_[v], bytes(v));
  }

  Status copy_in() {
    for (const HostView& view : host_) {
      auto memory = backend_.allocate(static_cast<std::size_t>(view.bytes));
      if (!memory) return memory.error();
      memory_.push_back(*memory);
      origins_.push_back(static_cast<char*>(*memory) + view.origin_bytes);
      Status s =
          backend_.copy(*memory, view.data, bytes(memory_.size() - 1), backends::CopyKind::host_to_device);
      if (!s) return s;
    }
    return Unit{};
  }
  Status copy_out() {
    for (std::size_t v = 0; v < memory_.size(); ++v) {
      Status s = backend_.copy(host_[v].data, memory_[v], bytes(v), backends::CopyKind::device_to_host);
      if (!s) return s;
    }
    return Unit{};
  }
  // The host's copies, one after another.
  std::string host_bytes() const {
    std::string all;
    for (const HostView& view : host_) all.append(view.data, static_cast<std::size_t>(view.bytes));
    return all;
  }
  void* const* origins() const { return origins_.data(); }

 private:
  std::size_t bytes(std::size_t v) const { return static_cast<std::size_t>(host_[v].bytes); }
  backends::Backend& backend_;
  const std::vector<HostView>& host_;
  std::vector<void*> memory_, origins_;
};

}  // namespace

RunOnBackend on_backend(backends::Backend& backend, const tile::Schedule& schedule, std::string& source,
                        int launches) {
  return [&backend, schedule, &source, launches](const tile::Kernel& kernel,
                                                 const std::vector<HostView>& views,
                                                 const std::vector<std::int64_t>& scalars) -> Status {
    auto printed = backend.print(kernel, schedule);
    if (!printed) return failure(Failure::Kind::unsupported, printed.error().message);
    source = printed->text;
    auto binary = backend.compile(kernel, *printed);
    if (!binary) return binary.error();
    auto program = backend.load(kernel, *printed, *binary);
    if (!program) return program.error();
    DeviceViews device(backend, views);
    if (Status s = device.copy_in(); !s) return s;
    backends::LaunchArgs args{.views = device.origins(), .scalars = scalars.data()};
    const std::vector<Index> grid = grid_extents(kernel, scalars);
    std::copy(grid.begin(), grid.end(), args.grid);
    std::string first;
    for (int i = 0; i < launches; ++i) {
      if (Status s = (*program)->launch(args); !s) return s;
      if (Status s = backend.synchronize(); !s) return s;
      if (Status s = device.copy_out(); !s) return s;
      if (launches == 1) break;
      std::string bytes = device.host_bytes();
      if (i == 0)
        first = std::move(bytes);
      else if (bytes != first)
        return failure(Failure::Kind::invalid, fmt::format("launch {} left other bytes than the first", i));
    }
    return Unit{};
  };
}

}  // namespace tilewright::test
