// What the probes of all devices share: raw kernels, their launches, the best rate of many.
#pragma once

#include "runtime/probe.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::runtime {

// A kernel in raw text with two views of bytes and four i64 scalars:
//   entry(x, y, bytes of a program's share of each view, repeats, spare, spare)
struct ProbeKernel {
  std::string text;
  std::string entry = "probe";
  int threads = 1;  // CUDA
  Index shared_bytes = 0;
};

// CUDA: blocks so large, so many a multiprocessor, fill its 2048 threads.
inline constexpr int kThreads = 512, kBlocksPerUnit = 4;

// A place on the device for the probes' data and the programs compiled so far.
class ProbeBench {
 public:
  explicit ProbeBench(Device& device) : device_(device) {}
  void take(const ProbeOptions& options) { options_ = options; }  // for what is measured next

  backends::Backend& backend() const { return device_.backend(); }
  const tile::Target& target() const { return device_.target(); }
  const std::string& device_name() const { return device_.name(); }
  const ProbeOptions& options() const { return options_; }
  Status reserve(std::size_t bytes);  // of each view; filled, so that every page is there
  std::vector<void*> views() const { return {x_->data(), y_->data()}; }
  bool wants(std::string_view figure) const { return !options_.wanted || options_.wanted(figure); }
  Result<std::shared_ptr<backends::Program>> load(const ProbeKernel& kernel);  // compiled once

  struct Work {
    Index programs = 1;
    Index share_bytes = 0;  // of a program, in each view it uses
    double amount = 0;      // bytes or FLOPs of one repeat of all programs
  };
  // The amount per second that the best tenth of the samples reach, with repeats so many that a launch takes
  // milliseconds.
  Result<double> best_rate(backends::Program& program, const Work& work);
  // The least time of `count` launches in a row, in seconds, divided by count.
  Result<double> launch_seconds(const std::function<Status()>& launch_all, int count);
  // A Failure when the user stopped the probe.
  Status goes_on() const;
  // The same; else tells what comes next.
  Status next(std::string_view what) const;

 private:
  Result<double> run_us(backends::Program& program, const Work& work, Index repeats);
  Device& device_;
  ProbeOptions options_;
  std::shared_ptr<Buffer> x_, y_;
  std::map<std::string, std::shared_ptr<backends::Program>> programs_;  // by text
  std::map<std::pair<const backends::Program*, Index>, Index>
      repeats_;  // of a program and share, for a sample
};

// Adds one figure, or a line to left_out when it could not be measured for want of an instruction.
struct ProbeReport {
  Probed& out;
  std::string how;
  void add(std::string what, double value) const {
    out.ceilings.measurements.push_back({std::move(what), value, how});
  }
  void leave_out(const std::string& what, const std::string& why) const {
    out.left_out.push_back(what + ": " + why);
  }
};

Status probe_cpu(ProbeBench& bench, const ProbeReport& report);
Status probe_cuda(ProbeBench& bench, const ProbeReport& report);
Status probe_cuda_math(ProbeBench& bench, const ProbeReport& report);  // a part of probe_cuda
std::vector<ProbeKernel> cuda_math_kernels();
// What probe_cuda compiles, for tests on machines without a GPU.
std::vector<ProbeKernel> cuda_probe_kernels();
backends::Source source_of(const ProbeKernel& kernel);
tile::Kernel probe_parameters();  // the views and scalars that every probe takes

}  // namespace tilewright::runtime
