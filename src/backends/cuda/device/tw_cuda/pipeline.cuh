// A pipeline of stages in shared memory between the thread that fetches blocks (TMA) and the warpgroups that
// multiply them. Each stage has two barriers: `full`, on which the copy engine counts the bytes of the block,
// and `empty`, on which every warpgroup of every block of the cluster arrives when it has read the stage,
// since a multicast writes all of them at once.
#pragma once

#include "tw_cuda/tma.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

template <int kStages>
struct TmaPipeline {
  Barrier full[kStages], empty[kStages];
};

// Address of a pipeline's barriers in shared memory. The compiler computes it again wherever it is used; a
// loop of many short products keeps `uniform` of it instead, which takes a register.
template <int kStages>
TW_DEVICE u32 barriers_of(TmaPipeline<kStages>& pipeline) {
  return smem_address(&pipeline);
}

// The next stage, and the parity of the phase that its barriers are in.
template <int kStages>
struct PipelineState {
  u32 barriers;
  TW_DEVICE explicit PipelineState(u32 at) : barriers(at) {}
  int stage = 0;
  u32 phase = 0;
  TW_DEVICE u32 full() const { return barriers + u32(stage) * sizeof(Barrier); }
  TW_DEVICE u32 empty(int of) const { return barriers + u32(kStages + of) * sizeof(Barrier); }
  TW_DEVICE int previous() const { return stage == 0 ? kStages - 1 : stage - 1; }
  TW_DEVICE void next() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  // Past `blocks` that others read.
  TW_DEVICE void skip(u32 blocks) {
    const u32 at = u32(stage) + blocks;
    stage = int(at % kStages);
    phase ^= at / kStages & 1;
  }
};
// Rounds of a loop from `lower` to below `upper` in steps of `by`.
TW_DEVICE u32 trip_count(i64 lower, i64 upper, i64 by) {
  return lower < upper ? u32((upper - lower + by - 1) / by) : 0;
}

// Called by all threads before the pipeline is used; kReaders warpgroups of each of kBlocks blocks read it.
template <int kReaders, int kBlocks, int kStages>
TW_DEVICE void open_pipeline(TmaPipeline<kStages>& pipeline) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      barrier_init(pipeline.full[i], 1);
      barrier_init(pipeline.empty[i], kReaders * kBlocks);
    }
    barrier_init_done();
  }
  if constexpr (kBlocks > 1)
    cluster_sync();
  else
    __syncthreads();
}
// Called by all threads at the end: no block leaves while another still arrives at its barriers.
template <int kBlocks>
TW_DEVICE void close_pipeline() {
  if constexpr (kBlocks > 1) cluster_sync();
}

// The fetching thread: waits until the stage is free and announces `bytes`.
template <int kStages>
TW_DEVICE Barrier& refill(TmaPipeline<kStages>& pipeline, const PipelineState<kStages>& state, u32 bytes) {
  barrier_wait(pipeline.empty[state.stage], state.phase ^ 1);  // in its first round every stage is free
  barrier_expect(pipeline.full[state.stage], bytes);
  return pipeline.full[state.stage];
}
template <int kStages>
TW_DEVICE void wait_full(const PipelineState<kStages>& state) {
  barrier_wait(state.full(), state.phase);
}
// A warpgroup has read a stage: one thread of it tells each block.
template <int kBlocks>
TW_DEVICE void arrive_empty(u32 barrier) {
  if constexpr (kBlocks == 1) {
    if (threadIdx.x % 128 == 0) barrier_arrive(barrier);
  } else {
    if (threadIdx.x % 128 < kBlocks) barrier_arrive_remote(remote_address(barrier, threadIdx.x % 128));
  }
}
template <int kBlocks, int kStages>
TW_DEVICE void release(const PipelineState<kStages>& state) {
  arrive_empty<kBlocks>(state.empty(state.stage));
}
// The stage before the turn's.
template <int kBlocks, int kStages>
TW_DEVICE void release_previous(const PipelineState<kStages>& state) {
  arrive_empty<kBlocks>(state.empty(state.previous()));
}
// The kThreads that multiply begin a tile together. One warpgroup that runs ahead of the other takes the
// stages that hide memory's latency: it always waits for the block that is just being fetched.
template <int kThreads>
TW_DEVICE void keep_step() {
  asm volatile("bar.sync %0, %1;" ::"r"(1), "n"(kThreads) : "memory");
}
// Threads that exchange values (exchange.cuh) while another warpgroup fetches: all that multiply one tile.
template <int kThreads>
struct Sharing {
  static TW_DEVICE void wait() { keep_step<kThreads>(); }
};
// The threads of a warpgroup have read a stage themselves, and one of them may give it back.
TW_DEVICE void warpgroup_sync(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(5 + group), "n"(128) : "memory");
}
struct OwnGroup {
  static TW_DEVICE void wait() { warpgroup_sync(int(threadIdx.x) / 128); }
};
// Warpgroups that hand their products to the tensor cores one after another, so that one computes while the
// next one's are under way: each has a barrier, on which the one before arrives. Before the first round the
// last gives the first its turn.
TW_DEVICE void pingpong_wait(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(2 + group), "n"(256) : "memory");
}
template <int kGroups>
TW_DEVICE void pingpong_signal(int group) {
  const int next = group + 1 == kGroups ? 0 : group + 1;
  asm volatile("bar.arrive %0, %1;" ::"r"(2 + next), "n"(256) : "memory");
}
}  // namespace tw

#endif
