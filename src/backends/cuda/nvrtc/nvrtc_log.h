// What NVRTC's log says about speed: NVRTC reports success for code that is correct and slow, and tells so
// only here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cuda {

// A line such as "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized …".
struct PerformanceWarning {
  std::string code;  // "C7510"
  std::string text;  // without the code
  friend bool operator==(const PerformanceWarning&, const PerformanceWarning&) = default;
};

// ptxas -v on one kernel; bytes are per thread, shared memory per block.
struct KernelResources {
  std::string name;
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int shared_bytes = 0;
  int barriers = 0;
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

struct CompileLog {
  std::vector<PerformanceWarning> warnings;  // in the log's order, each once
  std::vector<KernelResources> kernels;      // in the log's order
};

CompileLog parse_compile_log(std::string_view log);

}  // namespace tilewright::cuda
