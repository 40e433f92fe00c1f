// Runs a kernel through a Library on the host, as check_parity (tests/support/parity.h) wants it.
#pragma once

#include "backends/cuda/library/library.h"
#include "support/parity.h"

namespace tilewright::cuda {

// Empty where the library's call gives what the reference interpreter gives of the kernel, and writes nothing
// else; infinities and NaN are among the inputs.
inline std::string problem_with_call(Library& library, const tile::Kernel& kernel, std::uint64_t seed) {
  const auto call = library.prepare(kernel, 0);
  if (!call) return call.error().message;
  const auto report =
      test::check_parity(kernel, {.seed = seed, .undecided_limit = 1},
                         [&](const tile::Kernel&, const std::vector<test::HostView>& views, const auto&) {
                           std::vector<void*> addresses;
                           addresses.reserve(views.size());
                           for (const test::HostView& view : views)
                             addresses.push_back(view.data + view.origin_bytes);
                           return (*call)->enqueue(addresses.data(), nullptr);
                         });
  return report.message;
}

}  // namespace tilewright::cuda
