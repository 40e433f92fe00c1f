// A ring of places in shared memory between the thread that fetches blocks (TMA) and the warpgroups that
// multiply them. Each place has two barriers: `full`, on which the copy engine counts the bytes of the block,
// and `empty`, on which every warpgroup of every block of the cluster arrives when it has read the place,
// since a multicast writes all of them at once.
#pragma once

#include "tw_cuda/tma.cuh"

#if __CUDA_ARCH__ >= 900

namespace tw {

template <int kPlaces>
struct Ring {
  Barrier full[kPlaces], empty[kPlaces];
};

// Which place is next, and the parity of the phase that its barriers are in.
template <int kPlaces>
struct Turn {
  int place = 0;
  u32 phase = 0;
  TW_DEVICE void next() {
    if (++place == kPlaces) {
      place = 0;
      phase ^= 1;
    }
  }
  // Past `blocks` that others read.
  TW_DEVICE void skip(u32 blocks) {
    const u32 at = u32(place) + blocks;
    place = int(at % kPlaces);
    phase ^= at / kPlaces & 1;
  }
};
// How often a loop from `lower` below `upper` in steps of `by` runs.
TW_DEVICE u32 trip_count(i64 lower, i64 upper, i64 by) {
  return lower < upper ? u32((upper - lower + by - 1) / by) : 0;
}

// By all threads, before the ring is used; kReaders warpgroups of each of kBlocks blocks read it.
template <int kReaders, int kBlocks, int kPlaces>
TW_DEVICE void open_ring(Ring<kPlaces>& ring) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces; ++i) {
      barrier_init(ring.full[i], 1);
      barrier_init(ring.empty[i], kReaders * kBlocks);
    }
    barrier_init_done();
  }
  if constexpr (kBlocks > 1)
    cluster_sync();
  else
    __syncthreads();
}
// By all threads, at the end: no block leaves while another still arrives at its barriers.
template <int kBlocks>
TW_DEVICE void close_ring() {
  if constexpr (kBlocks > 1) cluster_sync();
}

// The fetching thread: waits until the place is free and announces `bytes`.
template <int kPlaces>
TW_DEVICE Barrier& refill(Ring<kPlaces>& ring, const Turn<kPlaces>& turn, u32 bytes) {
  barrier_wait(ring.empty[turn.place], turn.phase ^ 1);  // in its first round every place is free
  barrier_expect(ring.full[turn.place], bytes);
  return ring.full[turn.place];
}
template <int kPlaces>
TW_DEVICE void wait_full(Ring<kPlaces>& ring, const Turn<kPlaces>& turn) {
  barrier_wait(ring.full[turn.place], turn.phase);
}
// A warpgroup has read the place: one thread of it tells each block.
template <int kBlocks, int kPlaces>
TW_DEVICE void release(Ring<kPlaces>& ring, int place) {
  if constexpr (kBlocks == 1) {
    if (threadIdx.x % 128 == 0) barrier_arrive(ring.empty[place]);
  } else {
    if (threadIdx.x % 128 < kBlocks)
      barrier_arrive_remote(remote_address(smem_address(&ring.empty[place]), threadIdx.x % 128));
  }
}
// The kThreads that multiply begin a tile together. One warpgroup that runs ahead of the other takes the
// places that hide memory's latency: it always waits for the block that is just being fetched.
template <int kThreads>
TW_DEVICE void keep_step() {
  asm volatile("bar.sync %0, %1;" ::"r"(1), "n"(kThreads) : "memory");
}
// Those that exchange values (exchange.cuh), while another warpgroup fetches: all that multiply one tile.
template <int kThreads>
struct Sharing {
  static TW_DEVICE void wait() { keep_step<kThreads>(); }
};
// The threads of a warpgroup have read a place themselves, and one of them may give it back.
TW_DEVICE void warpgroup_sync(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(5 + group), "n"(128) : "memory");
}
struct OwnGroup {
  static TW_DEVICE void wait() { warpgroup_sync(int(threadIdx.x) / 128); }
};
// Warpgroups that hand their products to the tensor cores one after another, so that one computes while the
// next one's are under way: each has a barrier, on which the one before arrives. Before the first round the
// last gives the first its turn.
TW_DEVICE void take_turn(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(2 + group), "n"(256) : "memory");
}
template <int kGroups>
TW_DEVICE void give_turn(int group) {
  const int next = group + 1 == kGroups ? 0 : group + 1;
  asm volatile("bar.arrive %0, %1;" ::"r"(2 + next), "n"(256) : "memory");
}
// The place before the turn's.
template <int kBlocks, int kPlaces>
TW_DEVICE void release_previous(Ring<kPlaces>& ring, const Turn<kPlaces>& turn) {
  release<kBlocks>(ring, turn.place == 0 ? kPlaces - 1 : turn.place - 1);
}

}  // namespace tw

#endif
