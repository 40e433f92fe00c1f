// One drawn program measured: the harness's rows and what the sweep's report says of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/runner.h"
#include "sweep/workload.h"

namespace tilewright::sweep {

struct SweepRow {
  std::string family, command, shapes, dtype, text;  // text: both programs
  std::uint64_t seed = 0;
  double bytes = 0, flops = 0;  // compulsory traffic; products
  std::vector<lab::Row> contenders;
  std::optional<double> ours_us, peer_us;                // of a call, the better of each side
  std::optional<double> ours_device_us, peer_device_us;  // the device's own, where calls are not the work
  std::string peer;                                      // whose peer_us is
  std::optional<double> floor_us;
  double predicted_us = 0;  // of all kernels
  double compile_ms = 0;    // of the first call
  bool from_disk = false;   // all kernels were found there
  int kernels = 0;
  std::string explained;                                // the kernels, and why they are not one
  std::string judge;                                    // who said what is right
  std::string wrong;                                    // what is, of ours; empty: nothing
  std::string failed;                                   // why there is no time of ours
  std::vector<std::pair<std::string, double>> spent_s;  // what was done for it, and how long that took

  // The peer's time over ours; above 1 we are faster.
  std::optional<double> ratio() const;
  std::optional<double> device_ratio() const;  // on a CPU the same
};

SweepRow measure(const DrawnWork& work, lab::LabDevice& device, const Limits& limits,
                 const lab::RunOptions& options);

}  // namespace tilewright::sweep
