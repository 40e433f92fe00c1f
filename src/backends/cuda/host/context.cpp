// Contexts, streams and events over the driver's table; see context.h.
#include "backends/cuda/host/context.h"

#include <fmt/format.h>

#include <utility>

namespace tilewright::cuda {
namespace {

// An attribute that this driver does not know reads 0: newer limits must not keep an older device from
// working.
int attribute(const Driver& driver, api::CUdevice device, api::DeviceAttribute which) {
  int value = 0;
  return driver.device_get_attribute(&value, which, device) == api::kSuccess ? value : 0;
}

Result<DeviceLimits> query_limits(const Driver& driver, api::CUdevice device) {
  DeviceLimits limits;
  char name[256] = {};
  if (auto status = check(driver, driver.device_get_name(name, sizeof name, device), "cuDeviceGetName");
      !status) {
    return status.error();
  }
  std::size_t bytes = 0;
  if (auto status = check(driver, driver.device_total_mem(&bytes, device), "cuDeviceTotalMem"); !status)
    return status.error();
  const auto get = [&](api::DeviceAttribute which) { return attribute(driver, device, which); };
  limits.name = name;
  limits.memory_bytes = static_cast<std::int64_t>(bytes);
  limits.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", get(api::kPciDomainId), get(api::kPciBusId),
                                  get(api::kPciDeviceId));
  limits.compute_major = get(api::kComputeCapabilityMajor);
  limits.compute_minor = get(api::kComputeCapabilityMinor);
  limits.multiprocessors = get(api::kMultiprocessorCount);
  limits.max_threads_per_block = get(api::kMaxThreadsPerBlock);
  limits.max_threads_per_multiprocessor = get(api::kMaxThreadsPerMultiprocessor);
  limits.max_blocks_per_multiprocessor = get(api::kMaxBlocksPerMultiprocessor);
  limits.registers_per_block = get(api::kMaxRegistersPerBlock);
  limits.registers_per_multiprocessor = get(api::kMaxRegistersPerMultiprocessor);
  limits.shared_bytes_per_block = get(api::kMaxSharedMemoryPerBlockOptin);
  limits.shared_bytes_per_multiprocessor = get(api::kMaxSharedMemoryPerMultiprocessor);
  limits.shared_bytes_reserved_per_block = get(api::kReservedSharedMemoryPerBlock);
  limits.l2_bytes = get(api::kL2CacheSize);
  limits.clock_khz = get(api::kClockRate);
  limits.memory_clock_khz = get(api::kMemoryClockRate);
  limits.memory_bus_bits = get(api::kGlobalMemoryBusWidth);
  limits.clusters = get(api::kClusterLaunch) != 0;
  return limits;
}

}  // namespace

Result<Context> Context::open(const Driver& driver, int ordinal) {
  int count = 0;
  if (auto status = check(driver, driver.device_get_count(&count), "cuDeviceGetCount"); !status)
    return status.error();
  if (ordinal < 0 || ordinal >= count) {
    return failure(Failure::Kind::not_found,
                   fmt::format("no CUDA device {}: this machine has {}", ordinal, count));
  }
  api::CUdevice device = 0;
  if (auto status = check(driver, driver.device_get(&device, ordinal), "cuDeviceGet"); !status)
    return status.error();
  auto limits = query_limits(driver, device);
  if (!limits) return limits.error();
  Context context(driver, device, ordinal);
  context.limits_ = std::move(*limits);
  const auto retained = driver.device_primary_ctx_retain(&context.context_, device);
  if (auto status = check(driver, retained, "cuDevicePrimaryCtxRetain"); !status) return status.error();
  return context;
}

Context::Context(Context&& other) noexcept
    : driver_(other.driver_),
      device_(other.device_),
      ordinal_(other.ordinal_),
      context_(std::exchange(other.context_, nullptr)),
      limits_(std::move(other.limits_)) {}

Context& Context::operator=(Context&& other) noexcept {
  if (this != &other) {
    release();
    driver_ = other.driver_;
    device_ = other.device_;
    ordinal_ = other.ordinal_;
    context_ = std::exchange(other.context_, nullptr);
    limits_ = std::move(other.limits_);
  }
  return *this;
}

Context::~Context() { release(); }

void Context::release() {
  if (context_ != nullptr) (void)driver_->device_primary_ctx_release(device_);
  context_ = nullptr;
}

Status Context::make_current() const {
  return check(*driver_, driver_->ctx_set_current(context_), "cuCtxSetCurrent");
}

Result<Entered> Entered::enter(const Context& context) {
  const Driver& driver = context.driver();
  api::CUcontext before = nullptr;
  if (auto status = check(driver, driver.ctx_get_current(&before), "cuCtxGetCurrent"); !status)
    return status.error();
  if (before == context.get()) return Entered(driver.ctx_set_current, nullptr);
  if (auto status = context.make_current(); !status) return status.error();
  return Entered(driver.ctx_set_current, before);
}

Status Context::synchronize() const {
  return check(*driver_, driver_->ctx_synchronize(), "cuCtxSynchronize");
}

Result<MemoryInfo> Context::memory_info() const {
  MemoryInfo info;
  const auto got = driver_->mem_get_info(&info.free_bytes, &info.total_bytes);
  if (auto status = check(*driver_, got, "cuMemGetInfo"); !status) return status.error();
  return info;
}

Result<Event> Event::create(const Context& context, Timing timing) {
  api::CUevent event = nullptr;
  const Driver& driver = context.driver();
  const auto flags = timing == Timing::on ? api::kEventDefault : api::kEventDisableTiming;
  if (auto status = check(driver, driver.event_create(&event, flags), "cuEventCreate"); !status)
    return status.error();
  Event made;
  made.event_ = {driver, event};
  return made;
}

Status Event::record(api::CUstream stream) const {
  return check(event_.driver(), event_.driver().event_record(event_.get(), stream), "cuEventRecord");
}

Result<bool> Event::done() const {
  const auto result = event_.driver().event_query(event_.get());
  if (result == api::kErrorNotReady) return false;
  if (auto status = check(event_.driver(), result, "cuEventQuery"); !status) return status.error();
  return true;
}

Status Event::synchronize() const {
  return check(event_.driver(), event_.driver().event_synchronize(event_.get()), "cuEventSynchronize");
}

Result<float> Event::elapsed_ms_since(const Event& start) const {
  float ms = 0;
  const auto result = event_.driver().event_elapsed_time(&ms, start.get(), event_.get());
  if (auto status = check(event_.driver(), result, "cuEventElapsedTime"); !status) return status.error();
  return ms;
}

Result<Stream> Stream::create(const Context& context, const Options& options) {
  api::CUstream stream = nullptr;
  const Driver& driver = context.driver();
  const auto result = driver.stream_create_with_priority(&stream, api::kStreamNonBlocking, options.priority);
  if (auto status = check(driver, result, "cuStreamCreateWithPriority"); !status) return status.error();
  Stream made;
  made.driver_ = &driver;
  made.stream_ = stream;
  made.owned_ = {driver, stream};
  return made;
}

Result<Stream> Stream::borrow(const Context& context, api::CUstream stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number == api::kPerThreadDefaultStream)
    return failure(
        Failure::Kind::invalid,
        "stream 2 is the calling thread's default stream, another one on each thread: give a stream of "
        "your own, or 1, the legacy default stream");
  const Driver& driver = context.driver();
  if (number > api::kPerThreadDefaultStream) {
    api::CUcontext of = nullptr;
    if (auto status = check(driver, driver.stream_get_ctx(stream, &of), "cuStreamGetCtx"); !status)
      return status.error();
    if (of != context.get())
      return failure(Failure::Kind::invalid,
                     fmt::format("stream {:#x} is not of the primary context of cuda:{}: "
                                 "make it while that device is current",
                                 number, context.ordinal()));
  }
  Stream made;
  made.driver_ = &driver;
  made.stream_ = stream;
  return made;
}

Status Stream::synchronize() const {
  return check(driver(), driver().stream_synchronize(stream_), "cuStreamSynchronize");
}

// An event that is destroyed while a stream waits for it is kept by the driver until it has come.
Status order(const Context& context, api::CUstream before, api::CUstream after) {
  const auto event = Event::create(context);
  if (!event) return event.error();
  if (Status recorded = event->record(before); !recorded) return recorded;
  const Driver& driver = context.driver();
  return check(driver, driver.stream_wait_event(after, event->get(), 0), "cuStreamWaitEvent");
}

Status check_on_device(const Context& context, api::CUdeviceptr address) {
  const Driver& driver = context.driver();
  unsigned type = 0;
  int ordinal = -1;
  const auto known = driver.pointer_get_attribute(&type, api::kPointerMemoryType, address);
  if (known == api::kErrorInvalidValue)
    return failure(Failure::Kind::invalid, fmt::format("{:#x} is no memory that CUDA knows", address));
  if (Status s = check(driver, known, "cuPointerGetAttribute"); !s) return s;
  if (type != static_cast<unsigned>(api::kMemoryTypeDevice))
    return failure(Failure::Kind::invalid, fmt::format("{:#x} is memory of the host", address));
  const auto asked = driver.pointer_get_attribute(&ordinal, api::kPointerDeviceOrdinal, address);
  if (Status s = check(driver, asked, "cuPointerGetAttribute"); !s) return s;
  if (ordinal == context.ordinal()) return Unit{};
  return failure(Failure::Kind::invalid, fmt::format("{:#x} is memory of cuda:{}", address, ordinal));
}

}  // namespace tilewright::cuda
