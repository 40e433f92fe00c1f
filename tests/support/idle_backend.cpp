#include "support/idle_backend.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>

namespace tilewright::test {

namespace {

class IdleProgram final : public backends::Program {
 public:
  Status launch(const backends::LaunchArgs&) override { return Unit{}; }
};

}  // namespace

Result<std::unique_ptr<backends::Program>> IdleBackend::load(const tile::Kernel&, const backends::Source&,
                                                             const backends::Binary&) {
  return std::unique_ptr<backends::Program>(new IdleProgram);
}

Result<void*> IdleBackend::allocate(std::size_t bytes) {
  void* at = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return failure(Failure::Kind::out_of_memory, fmt::format("no {} bytes to map", bytes));
  return at;
}

void IdleBackend::release(void* address, std::size_t bytes) {
  munmap(address, std::max<std::size_t>(bytes, 1));
}

}  // namespace tilewright::test
