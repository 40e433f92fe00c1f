// Backend over the interpreter: the "source" is the kernel's own text, the "binary" is empty.
#include "backends/reference/reference_backend.h"

#include "backends/cpu/machine/fitted.h"
#include "backends/reference/interpreter.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace tilewright::reference {

namespace {

using backends::Binary;
using backends::Candidate;
using backends::Source;

class InterpretedProgram final : public backends::Program {
 public:
  explicit InterpretedProgram(const tile::Kernel& kernel) : kernel_(kernel) {}

  Status launch(const backends::LaunchArgs& args) override {
    std::vector<ViewBinding> views;
    // The extents of the buffers are not known here; unchecked runs do not ask for them.
    views.reserve(kernel_.views.size());
    for (std::size_t i = 0; i < kernel_.views.size(); ++i) views.push_back({.data = args.views[i]});
    return run(kernel_, views,
               std::vector<std::int64_t>(args.scalars, args.scalars + kernel_.scalars.size()));
  }

 private:
  tile::Kernel kernel_;
};

class LoopReplay final : public backends::Replay {
 public:
  explicit LoopReplay(std::vector<backends::RecordedLaunch> launches) : launches_(std::move(launches)) {}
  Status run() override {
    for (const backends::RecordedLaunch& l : launches_) {
      backends::LaunchArgs args{l.views.data(), l.scalars.data(), {l.grid[0], l.grid[1], l.grid[2]}};
      if (auto done = l.program->launch(args); !done) return done;
    }
    return Unit{};
  }

 private:
  std::vector<backends::RecordedLaunch> launches_;
};

class ReferenceBackend final : public backends::Backend {
 public:
  ReferenceBackend() {
    target_.kind = tile::TargetKind::reference;
    target_.name = "float64 interpreter";
    target_.arch = "reference";
    target_.vector_bytes = 8;
    target_.memory_bytes_per_s = 1e9;
    target_.cache_bytes_per_s = 1e9;
    target_.flops_per_s = 1e8;
    cpu::fill_fitted(target_);  // so that what a core is given is interpreted, too
  }

  const tile::Target& target() const override { return target_; }
  std::string binary_key() const override { return "reference"; }

  std::vector<Candidate> candidates(const tile::Kernel&) const override { return {Candidate{}}; }
  Result<Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const override {
    return Source{tile::print(kernel), kernel.name, {}, schedule};
  }
  Result<Binary> compile(const tile::Kernel&, const Source&) const override { return Binary{}; }
  // The text is what runs: an edited one is parsed like any other.
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel&, const Source& source,
                                                  const Binary&) override {
    auto kernel = tile::parse(source.text);
    if (!kernel) return kernel.error();
    return std::unique_ptr<backends::Program>(std::make_unique<InterpretedProgram>(*kernel));
  }

  Result<void*> allocate(std::size_t bytes) override {
    constexpr std::size_t kAlign = 256;
    void* address = std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
    if (!address)
      return failure(Failure::Kind::out_of_memory,
                     fmt::format("out of host memory: {} bytes asked for", bytes));
    return address;
  }
  void release(void* address, std::size_t) override { std::free(address); }
  Status copy(void* to, const void* from, std::size_t bytes, backends::CopyKind) override {
    std::memmove(to, from, bytes);
    return Unit{};
  }
  Status fill(void* to, backends::FillPattern pattern, std::size_t bytes) override {
    backends::fill_on_host(to, pattern, bytes);
    return Unit{};
  }
  Status synchronize() override { return Unit{}; }

  Status timer_start() override {
    start_ = std::chrono::steady_clock::now();
    return Unit{};
  }
  Result<double> timer_stop_us() override {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }

  Result<std::unique_ptr<backends::Replay>> record(
      const std::vector<backends::RecordedLaunch>& launches) override {
    return std::unique_ptr<backends::Replay>(std::make_unique<LoopReplay>(launches));
  }

 private:
  tile::Target target_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

std::unique_ptr<backends::Backend> open_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace tilewright::reference
