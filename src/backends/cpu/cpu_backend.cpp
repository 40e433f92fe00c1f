// The backend's methods, each a few lines around the part that does the work.
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/candidates.h"
#include "backends/cpu/host/host.h"
#include "backends/cpu/jit/device_headers.h"
#include "backends/cpu/jit/program.h"
#include "backends/cpu/print/printer.h"

#include <tilewright/base/clock.h>
#include <tilewright/base/hash.h>

#include <fmt/format.h>

#include <cstring>

namespace tilewright::cpu {

using backends::Binary;
using backends::Source;
using tile::Kernel;

namespace {

// Freed tensors that are kept for the next ones: up to a quarter of the machine's memory. Five temporaries of
// an eager cross-entropy over 2048 x 50304 take 2 GiB; clearing their pages anew took longer than computing
// them.
std::size_t kept_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::size_t{2} << 30;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) / 4;
}
// A copy is shared among the threads from this size on: below, one thread's caches and the dispatch decide.
constexpr std::size_t kParallelBytes = std::size_t{1} << 20;

// The launches one after another: nothing is gained over launching them, but the caller needs only one way.
class LaunchList : public backends::Replay {
 public:
  explicit LaunchList(std::vector<backends::RecordedLaunch> launches) : launches_(std::move(launches)) {}
  Status run() override {
    for (const backends::RecordedLaunch& l : launches_) {
      backends::LaunchArgs args{.views = l.views.data(), .scalars = l.scalars.data()};
      std::copy(std::begin(l.grid), std::end(l.grid), std::begin(args.grid));
      if (Status status = l.program->launch(args); !status) return status;
    }
    return Unit{};
  }

 private:
  std::vector<backends::RecordedLaunch> launches_;
};

}  // namespace

CpuBackend::CpuBackend(Isa isa, int threads, std::unique_ptr<Jit> jit)
    : isa_(isa),
      cpu_(host_target(isa)),
      compiler_(kernel_compiler(cpu_)),
      pool_(std::make_shared<ThreadPool>(threads)),
      target_(host_tile_target(isa, pool_->size())),
      jit_(std::move(jit)),
      memory_(kept_bytes()) {
  target_.predicted_us = predicted_us;
  target_.buffer_align = 1;  // vectors are read and written unaligned, past the caches where a test allows
}

Result<std::unique_ptr<backends::Backend>> CpuBackend::open(const backends::BackendOptions& options) {
  Isa isa = host_isa();
  if (!options.isa.empty()) {
    bool known = false;
    for (const Isa each : kAllIsas)
      if (name(each) == options.isa) {
        isa = each;
        known = true;
      }
    if (!known)
      return failure(Failure::Kind::invalid,
                     fmt::format("cpu: isa \"{}\" is not one of amx, avx512, avx2, baseline", options.isa));
    if (!host_runs(isa))
      return failure(Failure::Kind::unsupported,
                     fmt::format("cpu: this machine does not run {}", options.isa));
  }
  auto jit = Jit::create();
  if (!jit) return jit.error();
  try {
    return std::unique_ptr<backends::Backend>(new CpuBackend(isa, options.threads, std::move(jit).value()));
  } catch (const Error& error) {  // of the pool: more threads than can be started
    return failure(Failure::Kind::invalid, fmt::format("cpu: {}", error.what()));
  }
}

std::string CpuBackend::binary_key() const {
  Hasher headers;
  headers.add(kernel_passes());
  for (const DeviceHeader& h : device_headers()) headers.add(h.name).add(h.text);
  return fmt::format("cpu {} {} headers {}", compiler_version(), to_string(cpu_), to_hex(headers.digest()));
}

std::vector<backends::DeviceFact> CpuBackend::facts() const {
  std::vector<backends::DeviceFact> facts = host_facts(cpu_, pool_->size());
  facts.push_back({"compiler", 0, compiler_version()});
  return facts;
}

std::vector<backends::Candidate> CpuBackend::candidates(const Kernel& kernel) const {
  return list_candidates(kernel, target_);
}

Result<Source> CpuBackend::print(const Kernel& kernel, const tile::Schedule& schedule) const {
  return print_kernel(kernel, schedule, cpu_.vector_bytes / 4);
}

Result<Binary> CpuBackend::compile(const Kernel&, const Source& source) const {
  const auto start = std::chrono::steady_clock::now();
  auto bytes = compiler_.compile(source.text);
  if (!bytes) return bytes.error();
  return Binary{.bytes = std::move(bytes).value(), .log = "", .compile_ms = ms_since(start)};
}

Result<std::unique_ptr<backends::Program>> CpuBackend::load(const Kernel& kernel, const Source& source,
                                                            const Binary& binary) {
  auto object = jit_->load(binary.bytes);
  if (!object) return object.error();
  const auto function = reinterpret_cast<KernelFunction>(object.value().symbol(source.entry));
  if (!function)
    return failure(Failure::Kind::compile, fmt::format("cpu: the text does not define {}", source.entry));
  return std::unique_ptr<backends::Program>(
      new CpuProgram({.object = std::move(object).value(),
                      .function = function,
                      .pool = pool_,
                      .scratch_bytes = source.launch.shared_bytes,
                      .program_us = predict_program_us(kernel, target_),
                      .programs_at_least = source.launch.programs_per_block}));
}

void CpuBackend::in_parts(std::size_t bytes, const std::function<void(std::size_t, std::size_t)>& work) {
  if (bytes < kParallelBytes) return work(0, bytes);
  constexpr std::size_t kUnit = 4096;
  const auto part = [&](Index begin, Index end, int) {
    work(static_cast<std::size_t>(begin) * kUnit, std::min(static_cast<std::size_t>(end) * kUnit, bytes));
  };
  pool_->parallel_for(static_cast<Index>((bytes + kUnit - 1) / kUnit), part);
}

Status CpuBackend::copy(void* to, const void* from, std::size_t bytes, backends::CopyKind) {
  in_parts(bytes, [&](std::size_t begin, std::size_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
  });
  return Unit{};
}

Status CpuBackend::fill(void* to, backends::FillPattern pattern, std::size_t bytes) {
  in_parts(bytes, [&](std::size_t begin, std::size_t end) {
    backends::fill_on_host(static_cast<char*>(to) + begin, pattern, end - begin);
  });
  return Unit{};
}

Status CpuBackend::timer_start() {
  timer_start_ = std::chrono::steady_clock::now();
  return Unit{};
}
Result<double> CpuBackend::timer_stop_us() { return 1e3 * ms_since(timer_start_); }

Result<std::unique_ptr<backends::Replay>> CpuBackend::record(
    const std::vector<backends::RecordedLaunch>& launches) {
  return std::unique_ptr<backends::Replay>(new LaunchList(launches));
}

}  // namespace tilewright::cpu
