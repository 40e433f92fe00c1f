// Opening a device or a compile-only target, and the parts of Backend that are not launches.
#include "backends/cuda/cuda_backend.h"

#include "backends/cuda/cuda_program.h"
#include "backends/cuda/host/graph.h"
#include "backends/cuda/library_program.h"
#include "backends/cuda/machine/target.h"
#include "backends/cuda/nvrtc/device_headers.h"
#include "backends/cuda/print/printer.h"
#include "backends/cuda/schedule/candidates.h"

#include <tilewright/base/hash.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cuda {

CudaBackend::CudaBackend(std::vector<std::string> library_paths) : library_paths_(std::move(library_paths)) {}
CudaBackend::~CudaBackend() {
  const auto entered = enter();
  if (!entered) return;
  (void)device_->stream.synchronize();
  libraries_.reset();
  device_.reset();
}

Result<std::unique_ptr<backends::Backend>> CudaBackend::open(const backends::BackendOptions& options) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options.library_paths));
  backend->library_host_.allocate = [kept = backend.get()](std::size_t bytes) {
    return kept->allocate(bytes);
  };
  if (!options.compile_only.empty()) {
    const auto arch = Arch::parse(options.compile_only);
    if (!arch) return failure(arch.error().kind, "compile_only: " + arch.error().message);
    const DeviceLimits limits = usual_limits(*arch);
    backend->arch_ = *arch;
    backend->target_ = target_of(limits, *arch);
    backend->target_.predicted_us = predictor(backend->arch_);
    backend->shared_bytes_ = limits.shared_bytes_per_block;
    return std::unique_ptr<backends::Backend>(std::move(backend));
  }
  auto device = open_device(options);
  if (!device) return device.error();
  backend->device_ = std::move(*device);
  const DeviceLimits& limits = backend->device_->context.limits();
  if (limits.compute_major < 8)
    return failure(
        Failure::Kind::unsupported,
        fmt::format("{} is {}; kernels are written for sm_80 and later", limits.name, limits.arch().text()));
  backend->arch_ = limits.arch();
  backend->target_ = target_of(limits, backend->arch_);
  backend->target_.predicted_us = predictor(backend->arch_);
  backend->shared_bytes_ = limits.shared_bytes_per_block;
  return std::unique_ptr<backends::Backend>(std::move(backend));
}

Result<std::unique_ptr<CudaBackend::Device>> CudaBackend::open_device(
    const backends::BackendOptions& options) {
  auto driver = open_driver();
  if (!driver) return driver.error();
  auto kept = std::make_unique<Driver>(*driver);
  auto context = Context::open(*kept, options.ordinal);
  if (!context) return context.error();
  auto device = std::make_unique<Device>(std::move(kept), std::move(*context));
  const auto entered = Entered::enter(device->context);
  if (!entered) return entered.error();
  auto stream = options.stream
                    ? Stream::borrow(device->context, reinterpret_cast<api::CUstream>(*options.stream))
                    : Stream::create(device->context);
  if (!stream) return stream.error();
  device->stream = std::move(*stream);
  auto staging = Staging::create(device->context);
  if (!staging) return staging.error();
  device->staging = std::move(*staging);
  for (Event* event : {&device->timer_begin, &device->timer_end}) {
    auto made = Event::create(device->context, Event::Timing::on);
    if (!made) return made.error();
    *event = std::move(*made);
  }
  return device;
}

Failure CudaBackend::no_device() const {
  return failure(Failure::Kind::device,
                 fmt::format("{} was opened to compile only: there is no device to run on", target_.arch));
}

Result<Entered> CudaBackend::enter() {
  if (!device_) return no_device();
  return Entered::enter(device_->context);
}

const Result<Nvrtc>& CudaBackend::nvrtc() const {
  const std::lock_guard lock(nvrtc_mutex_);
  if (!nvrtc_) {
    LibrarySearch search = nvrtc_search_from_environment();
    search.paths.insert(search.paths.begin(), library_paths_.begin(), library_paths_.end());
    nvrtc_.emplace(Nvrtc::open(search));
  }
  return *nvrtc_;
}

std::string CudaBackend::binary_key() const {
  const Result<Nvrtc>& compiler = nvrtc();
  Hasher headers;
  for (const DeviceHeader& h : device_headers()) headers.add(h.name).add(h.text);
  const auto flags = nvrtc_flags({.arch = arch_});
  return fmt::format("cuda {} nvrtc {} headers {} flags {}", target_.arch,
                     compiler ? compiler->version() : "none", to_hex(headers.digest()),
                     fmt::join(flags, " "));
}

std::vector<backends::DeviceFact> CudaBackend::facts() const {
  std::vector<backends::DeviceFact> facts = {{"processor", 0, target_.name},
                                             {"architecture", 0, target_.arch}};
  const auto add = [&](const char* key, double value, std::string text) {
    facts.push_back({key, value, std::move(text)});
  };
  const auto kib = [&](const char* key, double bytes) {
    add(key, bytes, fmt::format("{:g} KiB", bytes / 1024));
  };
  if (device_) {
    const DeviceLimits& l = device_->context.limits();
    add("pci_bus", 0, l.pci_bus_id);
    add("multiprocessors", l.multiprocessors, fmt::format("{}", l.multiprocessors));
    kib("shared_bytes_per_multiprocessor", l.shared_bytes_per_multiprocessor);
    kib("shared_bytes_per_block", l.shared_bytes_per_block);
    add("registers_per_multiprocessor", l.registers_per_multiprocessor,
        fmt::format("{}", l.registers_per_multiprocessor));
    add("threads_per_multiprocessor", l.max_threads_per_multiprocessor,
        fmt::format("{}", l.max_threads_per_multiprocessor));
    kib("l2_bytes", l.l2_bytes);
    const auto memory = static_cast<double>(l.memory_bytes);
    add("memory_bytes", memory, fmt::format("{:.1f} GiB", memory / (1 << 30)));
    if (l.clock_khz > 0)
      add("clock_hz", l.clock_khz * 1e3, fmt::format("{:.0f} MHz at most", l.clock_khz / 1e3));
    if (l.memory_clock_khz > 0)
      add("memory_clock_hz", l.memory_clock_khz * 1e3,
          fmt::format("{:.0f} MHz, {} bits: {:.0f} GB/s at the pins", l.memory_clock_khz / 1e3,
                      l.memory_bus_bits, l.peak_memory_bytes_per_second() * 1e-9));
    if (const auto version = driver_version(device_->driver()); version) add("driver", 0, "CUDA " + *version);
  }
  const Result<Nvrtc>& compiler = nvrtc();
  add("compiler", 0,
      compiler ? fmt::format("NVRTC {} ({})", compiler->version(), compiler->library_path()) : "none");
  for (const auto& library : libraries().all())
    add(library->name().c_str(), 0, fmt::format("{} ({})", library->version(), library->path()));
  if (!libraries().unusable().empty())
    add("unusable", 0, libraries().unusable());
  else if (libraries().all().empty())
    add("libraries", 0, "none");
  return facts;
}

const LibrarySet& CudaBackend::libraries() const {
  const std::lock_guard lock(libraries_mutex_);
  if (!libraries_) libraries_.emplace(open_libraries(library_paths_, library_host_));
  return *libraries_;
}

std::vector<backends::Candidate> CudaBackend::library_candidates(const tile::Kernel& kernel) {
  const auto entered = enter();
  return entered ? libraries().candidates(kernel) : std::vector<backends::Candidate>();
}

std::vector<backends::Candidate> CudaBackend::candidates(const tile::Kernel& kernel) const {
  return list_candidates(kernel, target_, {.arch = arch_, .max_shared_bytes = shared_bytes_});
}

Result<backends::Source> CudaBackend::print(const tile::Kernel& kernel,
                                            const tile::Schedule& schedule) const {
  if (const auto* call = std::get_if<tile::LibraryCall>(&schedule.kind))
    return libraries().print(kernel, *call);
  const auto plan = plan_kernel(kernel, schedule, {.arch = arch_, .max_shared_bytes = shared_bytes_});
  if (!plan) return plan.error();
  return print_kernel(kernel, *plan);
}

Result<backends::Binary> CudaBackend::compile(const tile::Kernel& kernel,
                                              const backends::Source& source) const {
  if (const auto* call = std::get_if<tile::LibraryCall>(&source.schedule.kind))
    return libraries().compile(kernel, *call, source);
  const Result<Nvrtc>& compiler = nvrtc();
  if (!compiler) return compiler.error();
  auto binary = compiler->compile(source.text, {.arch = arch_, .file_name = kernel.name + ".cu"});
  if (!binary) return binary.error();
  return backends::Binary{std::move(binary->cubin), std::move(binary->log), binary->compile_ms};
}

Result<std::unique_ptr<backends::Program>> CudaBackend::load(const tile::Kernel& kernel,
                                                             const backends::Source& source,
                                                             const backends::Binary& binary) {
  const auto entered = enter();
  if (!entered) return entered.error();
  if (const auto* call = std::get_if<tile::LibraryCall>(&source.schedule.kind)) {
    auto prepared = libraries().prepare(kernel, *call);
    if (!prepared) return prepared.error();
    return std::unique_ptr<backends::Program>(new LibraryProgram(*this, std::move(*prepared)));
  }
  return CudaProgram::load(*this, kernel, source, binary);
}

Result<void*> CudaBackend::allocate(std::size_t bytes) {
  const auto entered = enter();
  if (!entered) return entered.error();
  drop_leaving();
  auto buffer = device_->pool.allocate(std::max<std::size_t>(bytes, 1), stream());
  if (!buffer) return buffer.error();
  void* address = reinterpret_cast<void*>(buffer->address());
  const std::lock_guard lock(mutex_);
  device_->buffers[address] = std::move(*buffer);
  return address;
}

void CudaBackend::release(void* address, std::size_t) {
  const auto entered = enter();
  if (!entered) return;
  const std::lock_guard lock(mutex_);
  device_->buffers.erase(address);  // the pool hands it to later work of the same stream
}

Status CudaBackend::copy(void* to, const void* from, std::size_t bytes, backends::CopyKind kind) {
  const auto entered = enter();
  if (!entered) return entered.error();
  if (bytes == 0) return Unit{};
  const auto device_to = reinterpret_cast<api::CUdeviceptr>(to);
  const auto device_from = reinterpret_cast<api::CUdeviceptr>(from);
  if (kind == backends::CopyKind::device_to_device)
    return copy_on_device(device_->driver(), device_to, device_from, bytes, stream());
  const std::lock_guard lock(mutex_);
  if (kind == backends::CopyKind::host_to_device)
    return device_->staging.upload(device_to, from, bytes, device_->stream);
  return device_->staging.download(to, device_from, bytes, device_->stream);
}

Status CudaBackend::fill(void* to, backends::FillPattern pattern, std::size_t bytes) {
  const auto entered = enter();
  if (!entered) return entered.error();
  return cuda::fill(device_->driver(), reinterpret_cast<api::CUdeviceptr>(to), pattern, bytes, stream());
}

Status CudaBackend::synchronize() {
  const auto entered = enter();
  if (!entered) return entered.error();
  if (Status s = device_->stream.synchronize(); !s) return s;
  drop_leaving();
  return Unit{};
}

// The first and the last byte are asked about: what lies between them may be several allocations side by
// side.
Status CudaBackend::check_foreign(const void* address, std::size_t bytes) {
  const auto entered = enter();
  if (!entered) return entered.error();
  const auto begin = reinterpret_cast<api::CUdeviceptr>(address);
  for (const api::CUdeviceptr at : {begin, begin + bytes - 1})
    if (Status s = check_on_device(device_->context, at); !s) return s;
  return Unit{};
}

void CudaBackend::let_go(std::shared_ptr<void> owner) {
  if (!owner) return;
  const auto entered = enter();
  if (!entered) return;  // without a context there is no work either
  drop_leaving();
  const std::lock_guard lock(mutex_);
  device_->leaving.add(std::move(owner), device_->context, device_->stream);
}

// Owners run code of others, who may call back: no mutex is held then.
void CudaBackend::drop_leaving() {
  std::vector<std::shared_ptr<void>> done;
  const std::lock_guard lock(mutex_);
  done = device_->leaving.take_done();
}

Status CudaBackend::wait_for(backends::StreamHandle stream) {
  const auto entered = enter();
  if (!entered) return entered.error();
  return order(device_->context, reinterpret_cast<api::CUstream>(stream), this->stream());
}

Status CudaBackend::make_wait(backends::StreamHandle stream) {
  const auto entered = enter();
  if (!entered) return entered.error();
  return order(device_->context, this->stream(), reinterpret_cast<api::CUstream>(stream));
}

Status CudaBackend::timer_start() {
  const auto entered = enter();
  if (!entered) return entered.error();
  return device_->timer_begin.record(stream());
}

Result<double> CudaBackend::timer_stop_us() {
  const auto entered = enter();
  if (!entered) return entered.error();
  if (Status s = device_->timer_end.record(stream()); !s) return s.error();
  if (Status s = device_->timer_end.synchronize(); !s) return s.error();
  const auto ms = device_->timer_end.elapsed_ms_since(device_->timer_begin);
  if (!ms) return ms.error();
  return double{*ms} * 1e3;
}

namespace {

class CudaReplay final : public backends::Replay {
 public:
  CudaReplay(CudaBackend& backend, CudaGraph graph, GraphExec exec)
      : backend_(backend), graph_(std::move(graph)), exec_(std::move(exec)) {}
  Status run() override {
    const auto entered = backend_.enter();
    if (!entered) return entered.error();
    return exec_.launch(backend_.stream());
  }

 private:
  CudaBackend& backend_;
  CudaGraph graph_;
  GraphExec exec_;
};

}  // namespace

// A chain: each launch after the one before, as on a stream. Captured, since only that keeps which of them
// overlap; on a stream of its own, since others may launch on the device's meanwhile.
Result<std::unique_ptr<backends::Replay>> CudaBackend::record(
    const std::vector<backends::RecordedLaunch>& launches) {
  const auto entered = enter();
  if (!entered) return entered.error();
  std::vector<RecordedWork> prepared;
  bool records_always = true;
  for (const backends::RecordedLaunch& recorded : launches) {
    auto* program = static_cast<RecordableProgram*>(recorded.program);
    auto work = program->record(recorded);
    if (!work) return work.error();
    if (*work) prepared.push_back(std::move(*work));
    records_always = records_always && program->records_always();
  }
  auto captured = Stream::create(device_->context);
  if (!captured) return captured.error();
  auto graph = CudaGraph::capture(device_->context, *captured, [&]() -> Status {
    for (const RecordedWork& work : prepared)
      if (Status s = work(captured->get()); !s) return s;
    return Unit{};
  });
  if (!graph && !records_always) return std::unique_ptr<backends::Replay>();
  if (!graph) return graph.error();
  auto exec = graph->instantiate();
  if (!exec) return exec.error();
  if (Status s = exec->upload(stream()); !s) return s.error();
  return std::unique_ptr<backends::Replay>(new CudaReplay(*this, std::move(*graph), std::move(*exec)));
}

}  // namespace tilewright::cuda
