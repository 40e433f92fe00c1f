// The parity contract: a backend gives what the reference interpreter gives, within the error that rounding
// may bring, writes nothing else, and reads nothing that is not its own.
//
//   auto report = check_parity(kernel, {.scalars = {n}}, [&](const auto& kernel, const auto& views, const
//   auto& scalars) {
//     return run_on_my_backend(…);   // copy views in, launch, copy back
//   });
//   EXPECT_TRUE(report.ok()) << report.message;
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/reference/interpreter.h"

namespace tilewright::test {

// A view's buffer on the host, with guard zones before and after what the view reaches. A backend copies all
// `bytes` to memory of its own whose address has the same alignment (256), and binds `origin_bytes` into it.
struct HostView {
  char* data = nullptr;  // 256-byte aligned
  Index bytes = 0;
  Index origin_bytes = 0;  // of coordinate (0, …, 0)
};
using RunOnBackend = std::function<Status(const tile::Kernel&, const std::vector<HostView>&,
                                          const std::vector<std::int64_t>&)>;

struct ParityOptions {
  std::vector<std::int64_t> scalars = {};  // as tile::scalar_bits gives them
  std::uint64_t seed = 1;
  double scale = 1;         // standard deviation of float inputs
  double odd_share = 0.01;  // of the float inputs that are infinite, NaN, -0, subnormal, the largest …
  // Inputs of these views are spread evenly from the first to the second, both included; integers of others
  // lie in [-100, 100] (u8, bool: from 0).
  std::map<int, std::pair<double, double>> ranges = {};
  reference::ErrorModel model = {};
  // At most this share of the elements that are written may be undecided, else the check says too little.
  double undecided_limit = 0.9;
};

struct ParityReport {
  std::string message;  // empty when the backend agrees
  bool refused =
      false;            // the backend's failure was of kind `unsupported`; message says what it does not take
  Index compared = 0;   // elements written and decided
  Index undecided = 0;  // elements that rounding may decide
  double worst = 0;     // largest |backend - reference| as a share of its bound
  bool ok() const { return message.empty(); }
};

// Runs the kernel checked (its own mistakes are reported first), then with bounds, then on the backend with
// poisoned outputs, and compares every element of every written view and all guard zones.
ParityReport check_parity(const tile::Kernel& kernel, const ParityOptions& options,
                          const RunOnBackend& backend);

}  // namespace tilewright::test
