// Launching: small grids on the calling thread, large ones in one contiguous part per worker.
#include "backends/cpu/jit/program.h"

#include "backends/cpu/machine/fitted.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace tilewright::cpu {

namespace {

// Huge pages from this size on: pages of 4 KiB lie in the caches by chance, and rows that should stay there
// together may push each other out.
constexpr Index kHugeUnit = Index{2} << 20, kHugeFrom = Index{64} << 10;

char* allocate_scratch(Index bytes) {
  const Index unit = bytes >= kHugeFrom ? kHugeUnit : 4096, size = round_up(bytes, unit);
  auto* memory =
      static_cast<char*>(std::aligned_alloc(static_cast<std::size_t>(unit), static_cast<std::size_t>(size)));
  if (!memory) throw std::bad_alloc();
  if (unit == kHugeUnit)
    madvise(memory, static_cast<std::size_t>(size), MADV_HUGEPAGE);  // a refusal costs speed, not correctness
  return memory;
}

}  // namespace

CpuProgram::CpuProgram(Parts parts) : parts_(std::move(parts)) {
  scratch_.resize(static_cast<std::size_t>(parts_.pool->size()));
}

char* CpuProgram::scratch(int worker) {
  if (parts_.scratch_bytes == 0) return nullptr;
  Memory& memory = scratch_[static_cast<std::size_t>(worker)];
  if (!memory) memory.reset(allocate_scratch(parts_.scratch_bytes));
  return memory.get();
}

void CpuProgram::run_here(const backends::LaunchArgs& args, Index programs) {
  if (parts_.scratch_bytes == 0) return parts_.function(args.views, args.scalars, 0, programs, nullptr);
  // Another thread may be launching this program too.
  if (own_scratch_busy_.test_and_set(std::memory_order_acquire)) {
    const Memory memory(allocate_scratch(parts_.scratch_bytes));
    return parts_.function(args.views, args.scalars, 0, programs, memory.get());
  }
  parts_.function(args.views, args.scalars, 0, programs, scratch(0));
  own_scratch_busy_.clear(std::memory_order_release);
}

Status CpuProgram::launch(const backends::LaunchArgs& args) {
  Index programs = 1;
  for (const Index n : args.grid) programs *= n;
  if (programs <= 0) return Unit{};
  try {
    if (parts_.pool->size() == 1 || runs_on_caller(static_cast<double>(programs), parts_.program_us)) {
      run_here(args, programs);
      return Unit{};
    }
    // Whole shares of at least `programs_at_least` programs.
    const Index share = parts_.programs_at_least;
    const auto body = [&](Index begin, Index end, int worker) {
      parts_.function(args.views, args.scalars, begin * share, std::min(end * share, programs),
                      scratch(worker));
    };
    parts_.pool->parallel_for(ceil_div(programs, share), body);
    return Unit{};
  } catch (const std::bad_alloc&) {
    return failure(Failure::Kind::out_of_memory,
                   fmt::format("cpu: no memory for {} bytes of scratch per thread", parts_.scratch_bytes));
  }
}

std::string CpuProgram::describe() const {
  return fmt::format("{} threads, {} bytes of scratch each, about {:.3g} us per program", parts_.pool->size(),
                     parts_.scratch_bytes, parts_.program_us);
}

}  // namespace tilewright::cpu
