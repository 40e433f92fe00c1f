// Compiling for an architecture.
#include "cuda_compile/compiling_backend.h"

#include "backends/cuda/analysis/machine_code.h"
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/cuda_backend.h"
#include "harness/run/record.h"
#include "support/idle_backend.h"

#include <tilewright/base/hash.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::test {

namespace {
// Four registers of a thread, each read back in two places at most: what ptxas spills by itself so that one
// more block fits a multiprocessor. A schedule that asks for too many spills hundreds of bytes.
constexpr int kFewBytes = 16, kPlaces = 2;
}  // namespace

using backends::Backend;
using backends::Binary;
using backends::Candidate;
using backends::Source;

KernelCompiler::KernelCompiler(std::string architecture, std::string keep)
    : architecture_(std::move(architecture)),
      keep_(std::move(keep)),
      printer_(cuda::CudaBackend::open({.compile_only = architecture_}).value()) {}

Status KernelCompiler::compile(const tile::Kernel& kernel) {
  const std::vector<Candidate> candidates = printer_->candidates(kernel);
  if (candidates.empty() || !candidates.front().refusal.empty())
    return failure(Failure::Kind::unsupported,
                   fmt::format("no schedule: {}", candidates.empty() ? "none" : candidates.front().refusal));
  auto source = printer_->print(kernel, candidates.front().schedule);
  if (!source) return source.error();
  return compile(kernel, *source);
}

Status KernelCompiler::compile(const tile::Kernel& kernel, const Source& source) {
  ++asked_;
  // The same kernel under another name is the same kernel.
  std::string text = source.text;
  for (std::size_t at = 0; (at = text.find(source.entry, at)) != std::string::npos; at += 6)
    text.replace(at, source.entry.size(), "kernel");
  if (!seen_.insert(to_hex(hash_bytes(text))).second) return Unit{};
  auto binary = printer_->compile(kernel, source);
  if (!binary) return binary.error();
  if (!keep_.empty()) {
    if (const Status kept = keep(source, *binary); !kept) return kept.error();
  }
  const cuda::CompileLog log = cuda::parse_compile_log(binary->log);
  const auto complain = [&](const std::string& what) {
    complaints_.push_back(
        fmt::format("{} [{}]: {}\n{}", kernel.name, to_string(source.schedule), what, source.text));
  };
  if (cuda::waits_for_previous(source.text)) {
    ++waiting_;
    if (const std::string early = cuda::access_before_wait(binary->bytes); !early.empty()) {
      ++in_order_;
      notes_.push_back(fmt::format("{} [{}]: {}", kernel.name, to_string(source.schedule), early));
    }
    // A few kernels lose the overlap; more would say that texts or their compiler have changed.
    if (waiting_ > 100 && in_order_ > waiting_ / 50)
      complain("too many kernels have accesses before their wait");
  }
  for (const cuda::PerformanceWarning& w : log.warnings) complain(w.code + " " + w.text);
  if (log.kernels.empty()) complain("the log names no kernel: its spills are unknown");
  for (const cuda::KernelResources& k : log.kernels) {
    const int spilled = std::max(k.spill_store_bytes, k.spill_load_bytes / kPlaces);
    const std::string what = fmt::format("{} registers, {} bytes of spill stores, {} of loads", k.registers,
                                         k.spill_store_bytes, k.spill_load_bytes);
    if (spilled > kFewBytes)
      complain(what);
    else if (spilled > 0)
      notes_.push_back(fmt::format("{} [{}]: {}", kernel.name, to_string(source.schedule), what));
  }
  return Unit{};
}

Status KernelCompiler::keep(const Source& source, const Binary& binary) const {
  const std::string base = fmt::format("{}/{:03}-{}", keep_, compiled(), source.entry);
  if (const Status s = lab::write_file(base + ".cu", source.text); !s) return s.error();
  return lab::write_file(base + ".cubin", binary.bytes);
}

namespace {

class CompilingBackend final : public IdleBackend {
 public:
  explicit CompilingBackend(KernelCompiler& compiler) : compiler_(compiler) {}

  const tile::Target& target() const override { return compiler_.printer().target(); }
  std::string binary_key() const override { return "compile only " + compiler_.architecture(); }
  std::vector<Candidate> candidates(const tile::Kernel& k) const override {
    return compiler_.printer().candidates(k);
  }
  Result<Source> print(const tile::Kernel& k, const tile::Schedule& s) const override {
    return compiler_.printer().print(k, s);
  }
  Result<Binary> compile(const tile::Kernel& kernel, const Source& source) const override {
    if (Status s = compiler_.compile(kernel, source); !s) return s.error();
    return Binary{};
  }

 private:
  KernelCompiler& compiler_;
};

// A library that is opened by name can be handed nothing else.
KernelCompiler* contexts_compiler = nullptr;

}  // namespace

std::unique_ptr<Backend> open_compiling_backend(KernelCompiler& compiler) {
  return std::make_unique<CompilingBackend>(compiler);
}

void use_for_contexts(KernelCompiler& compiler) { contexts_compiler = &compiler; }

}  // namespace tilewright::test

extern "C" tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tw_open_compiling_backend(
    const tilewright::backends::BackendOptions&) {
  return tilewright::test::open_compiling_backend(*tilewright::test::contexts_compiler);
}
