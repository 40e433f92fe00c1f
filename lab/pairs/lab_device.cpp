// Devices for the lab.
#include "pairs/lab_device.h"

#include "pairs/device_trace.h"
#include "runtime/device_name.h"
#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

// The device's own clock: events around what is enqueued in between.
class DeviceTimer final : public Timer {
 public:
  explicit DeviceTimer(backends::Backend& backend) : backend_(backend) {}
  std::string_view name() const override { return "device events"; }
  Status start() override { return backend_.timer_start(); }
  Result<double> stop_us() override { return backend_.timer_stop_us(); }
  bool waits() const override { return true; }

 private:
  backends::Backend& backend_;
};

std::shared_ptr<Timer> device_timer(backends::Backend& backend, DeviceTime by) {
  if (by == DeviceTime::off) return nullptr;
  if (by == DeviceTime::trace) {
    if (auto trace = open_device_trace([&backend] { return backend.synchronize(); })) return *trace;
  }
  return std::make_shared<DeviceTimer>(backend);
}

}  // namespace

OpenDevice open_lab_device(const ContextOptions& options, DeviceTime device_time) {
  OpenDevice open;
  open.context = std::make_unique<Context>(options);
  const runtime::DeviceName name = runtime::parse_device_name(options.device).value();
  open.device.name = name.full();
  open.device.kind = name.is_host() ? DeviceKind::cpu : DeviceKind::cuda;
  open.device.context = open.context.get();
  if (!name.is_host())
    open.device.device_timer = device_timer(detail::backend_of(*open.context, open.device.name), device_time);
  return open;
}

double cache_bytes(const LabDevice& device) {
  return static_cast<double>(detail::backend_of(*device.context, device.name).target().cache_bytes);
}

}  // namespace tilewright::lab
