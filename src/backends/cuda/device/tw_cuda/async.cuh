// Copies that run beside the threads: cp.async (sm_80), and on sm_90 mbarriers with one-dimensional bulk
// copies (TMA).
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

TW_DEVICE u32 smem_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
// A number that is the same in all threads of a warp, as one that the compiler knows to be the same, and that
// it does not compute again.
TW_DEVICE u32 uniform(u32 number) { return __shfl_sync(~0u, number, 0); }

// ---- cp.async: 16 bytes a thread, global → shared, completed in groups
// ------------------------------------------------- Copies the first `bytes` (0 … 16) and writes zeros to the
// rest: 0 makes it a fill for elements out of bounds.
TW_DEVICE void copy_async16(void* shared, const void* global, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(smem_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
TW_DEVICE void copy_async16_to(u32 shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}
// The same of pieces of 8 or 4 bytes, as they are aligned.
template <int kBytes>
TW_DEVICE void copy_async_to(u32 shared, const void* global, int bytes) {
  if constexpr (kBytes == 16)
    copy_async16_to(shared, global, bytes);
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
}
TW_DEVICE void store_shared16(u32 shared, const Vec<u32, 4>& words) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(words.v[0]), "r"(words.v[1]),
               "r"(words.v[2]), "r"(words.v[3])
               : "memory");
}
TW_DEVICE u32 load_shared(u32 address) {
  u32 word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}
TW_DEVICE Vec<u32, 2> load_shared8(u32 shared) {
  Vec<u32, 2> words;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(words.v[0]), "=r"(words.v[1])
               : "r"(shared)
               : "memory");
  return words;
}
TW_DEVICE void store_shared8(u32 shared, const Vec<u32, 2>& words) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(shared), "r"(words.v[0]), "r"(words.v[1]) : "memory");
}
TW_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of this thread's groups are unfinished; a barrier must follow before others
// read.
template <int kPending>
TW_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

#if __CUDA_ARCH__ >= 900

// ---- mbarrier: counts arrivals of threads and of bytes
// ------------------------------------------------------------------ Lives in shared memory, 8-byte aligned.
// Phases alternate: a waiter names the parity (0 first) of the phase it waits for.
struct Barrier {
  u64 state;
};
TW_DEVICE void barrier_init(Barrier& barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_address(&barrier)), "r"(arrivals)
               : "memory");
}
// After the inits, by the thread that made them: the copy engine and the cluster see them. A barrier must
// follow.
TW_DEVICE void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TW_DEVICE void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
TW_DEVICE void barrier_arrive(Barrier& barrier) { barrier_arrive(smem_address(&barrier)); }
// Arrives, and makes the phase wait for `bytes` more from the copy engine.
TW_DEVICE void barrier_expect(Barrier& barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_address(&barrier)),
               "r"(bytes)
               : "memory");
}
// Arrives in another block of the cluster: `address` in the cluster's shared window (remote_address).
TW_DEVICE void barrier_arrive_remote(u32 address) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}
// Whether the phase of that parity is over; the hardware waits a while for it.
TW_DEVICE bool barrier_passed(u32 barrier, u32 parity) {
  u32 passed;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed != 0;
}
TW_DEVICE void barrier_wait(u32 barrier, u32 parity) {
  while (!barrier_passed(barrier, parity)) {
  }
}
TW_DEVICE void barrier_wait(Barrier& barrier, u32 parity) { barrier_wait(smem_address(&barrier), parity); }

// ---- one-dimensional bulk copies: one thread moves kilobytes; addresses and sizes are multiples of 16 bytes
// --------------
TW_DEVICE void bulk_load(void* shared, const void* global, u32 bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          smem_address(shared)),
      "l"(global), "r"(bytes), "r"(smem_address(&barrier))
      : "memory");
}
// Before a bulk_store, by each thread that wrote the shared memory; then a barrier.
TW_DEVICE void bulk_store_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TW_DEVICE void bulk_store(void* global, const void* shared, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(smem_address(shared)), "r"(bytes)
               : "memory");
}
TW_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most kPending groups still read shared memory: it may be overwritten then.
template <int kPending>
TW_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// ---- programmatic dependent launch

// Waits for the end of the kernel before, and for all that it wrote, when launched with overlap_previous;
// else passes at once. The compiler may move loads on the read-only path (ld.global.nc) ahead of anything,
// the wait included: a kernel whose machine code has an access ahead of its wait is launched without
// overlap_previous (analysis/machine_code.h).
TW_DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// The next kernel may start now; it still waits for this one's end before it reads.
TW_DEVICE void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;"); }

#endif

}  // namespace tw
