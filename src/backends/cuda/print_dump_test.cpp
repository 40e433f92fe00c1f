// scratch
#include "backends/cuda/printer.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/nvrtc.h"
#include "support/hand_kernels.h"
#include <tilewright/tile/text.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <cstdio>
using namespace tilewright;
static void show(const std::string& name, const tile::Kernel& k, tile::Schedule s, const char* arch) {
  const char* only = std::getenv("ONLY");
  auto src = cuda::print_kernel(k, s, {.architecture = arch});
  if (!src.ok()) { fmt::print("{:40} {:30} REFUSED {}\n", name, to_string(s), src.error().message); return; }
  if (only) fmt::print("{}\n{}", std::getenv("IR") ? tile::print(k) : "", src->text);
  static auto nv = cuda::Nvrtc::open(cuda::nvrtc_search_from_environment());
  auto b = nv->compile(src->text, {.architecture = arch});
  if (!b.ok()) { fmt::print("{} FAILED\n{}\n{}\n", name, src->text, b.error().message); ADD_FAILURE(); return; }
  for (auto& r : b->parsed.kernels)
    fmt::print("{:36} {:60} {} {:3.0f} ms regs {} spill {} stack {} smem {} + {} warn {}\n", name, to_string(s), arch, b->compile_ms, r.registers, r.spill_store_bytes, r.stack_bytes, r.shared_bytes, src->launch.shared_bytes, b->parsed.warnings.size());
  std::fflush(stdout);
}
TEST(Dump, small) {
  const char* only = std::getenv("ONLY");
  auto all = tile::samples::small_kernels();
  if (std::getenv("LAB")) all = tile::samples::lab_kernels();
  for (auto& h : all) {
    if (only && h.name.find(only) == std::string::npos) continue;
    const char* sched = std::getenv("SCHED");  // threads,tpr,vec,cluster
    if (sched) {
      tile::Schedule s; std::sscanf(sched, "%d,%d,%d,%d", &s.threads, &s.threads_per_row, &s.vector_bytes, &s.cluster);
      show(h.name, h.kernel, s, "sm_90a");
      continue;
    }
    for (auto& c : cuda::list_candidates(h.kernel, {.units=132, .max_threads=1024, .max_cluster=8, .memory_bytes_per_s=4.25e12, .launch_s=2.5e-6}, {})) {
      if (c.refusal.empty()) fmt::print("{:8.1f} us  ", c.predicted_us);
      show(h.name, h.kernel, c.schedule, "sm_90a");
      if (!std::getenv("ALL")) break;
    }
  }
}
