// The coroutines, and the functions that emulated device code calls (emu_…).
#include "cuda_emulation/machine.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

// Saves the callee's registers on the running stack, leaves its address in *from, and goes on with the stack
// `to`.
extern "C" void emu_switch(void** from, void* to);
asm(R"(
.text
.globl emu_switch
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace tilewright::emulation {
namespace {

constexpr std::size_t kStackBytes = std::size_t{512} << 10;  // touched pages only are taken
// A block's most static shared memory, and what descriptors of tensor cores can address of static and
// dynamic.
constexpr std::size_t kStaticSharedBytes = 48 << 10, kAddressedBytes = 256 << 10;
constexpr unsigned kWarp = 32;

// A barrier that counts the threads still alive.
struct Barrier {
  unsigned alive = 0, arrived = 0, generation = 0;
  void release_if_full() {
    if (arrived > 0 && arrived >= alive) {
      arrived = 0;
      ++generation;
    }
  }
};

struct Warp {
  Barrier barrier;
  std::uint32_t slots[2][kWarp] = {};
};

struct Block {
  Barrier barrier;
  Barrier named[16];  // bar.sync and bar.arrive of some of the threads
  std::vector<Warp> warps;
  std::vector<unsigned char> shared;  // static, then dynamic
};

struct Thread {
  void* stack = nullptr;  // its memory
  void* at = nullptr;     // where it stopped
  unsigned thread = 0, block = 0, rank = 0;
  unsigned exchanges = 0;
  std::size_t shared_used = 0;
  unsigned cluster_generation = 0;
  bool done = false;
  // Copies under way, by group; the last one is open. They happen when their group is waited for.
  struct AsyncCopy {
    unsigned char* to;
    const void* from;      // null: zeros
    unsigned bytes, size;  // what is copied, and what becomes zeros behind it
  };
  std::vector<std::vector<AsyncCopy>> groups{1};
  std::vector<std::vector<Wgmma>> wgmmas{1};
  std::vector<std::vector<TensorStore>> stores{1};
  std::vector<unsigned> unseen_writes;
};

class Machine {
 public:
  Machine(const LaunchSize& size, const std::function<void()>& entry)
      : size_(size), entry_(entry), previous_runs_(static_cast<bool>(size.previous_ends)) {
    const std::size_t n = std::size_t{size.threads} * size.cluster;
    memory_bytes_ = n * kStackBytes;
    memory_ = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for the stacks of an emulated cluster");
    threads_.resize(n);
    for (std::size_t i = 0; i < n; ++i) threads_[i].stack = static_cast<char*>(memory_) + i * kStackBytes;
  }
  ~Machine() { munmap(memory_, memory_bytes_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::string run_cluster(unsigned first_block);
  void yield() { emu_switch(&current->at, scheduler_); }
  [[noreturn]] void finish();

  Block& block() { return blocks_[current->rank]; }
  // Bytes of static memory, which lies in front of the dynamic one.
  std::size_t static_bytes() const {
    return std::min(kStaticSharedBytes, kAddressedBytes - (size_.shared_bytes + 31) / 16 * 16);
  }
  void wait(Barrier& barrier) {
    const unsigned generation = barrier.generation;
    ++barrier.arrived;
    barrier.release_if_full();
    while (barrier.generation == generation) yield();
    ++progress_;
  }

  const LaunchSize& size_;
  const std::function<void()>& entry_;
  std::vector<Thread> threads_;
  std::vector<Block> blocks_;
  Barrier cluster_;
  Thread* current = nullptr;
  void* scheduler_ = nullptr;
  void* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::uint64_t progress_ = 0;
  std::vector<TensorCopy> tensor_copies_;
  bool previous_runs_ = false;
};

// Emulated code cannot be handed a context: the machine that runs on this host thread.
thread_local Machine* machine = nullptr;

void thread_main() {
  machine->entry_();
  machine->finish();
}

void Machine::finish() {
  current->done = true;
  ++progress_;
  Block& b = block();
  Warp& w = b.warps[current->thread / kWarp];
  for (Barrier* barrier : {&w.barrier, &b.barrier, &cluster_}) {
    --barrier->alive;
    barrier->release_if_full();
  }
  yield();
  std::abort();
}

std::string Machine::run_cluster(unsigned first_block) {
  blocks_.assign(size_.cluster, {});
  cluster_ = {};
  cluster_.alive = size_.threads * size_.cluster;
  for (Block& b : blocks_) {
    b.barrier.alive = size_.threads;
    b.warps.resize((size_.threads + kWarp - 1) / kWarp);
    for (unsigned t = 0; t < size_.threads; ++t) ++b.warps[t / kWarp].barrier.alive;
    b.shared.assign(static_bytes() + size_.shared_bytes + 16, 0xff);
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& t = threads_[i];
    t = {.stack = t.stack,
         .thread = static_cast<unsigned>(i % size_.threads),
         .rank = static_cast<unsigned>(i / size_.threads)};
    t.block = first_block + t.rank;
    // As if emu_switch had been called at the entry of thread_main: six registers, then the return address.
    auto* top = reinterpret_cast<void**>(static_cast<char*>(t.stack) + kStackBytes);
    top -= 2;  // thread_main finds its stack aligned as after a call
    top[0] = reinterpret_cast<void*>(&thread_main);
    top -= 6;
    std::memset(static_cast<void*>(top), 0, 6 * sizeof(void*));
    t.at = static_cast<void*>(top);
  }
  for (std::size_t left = threads_.size(); left > 0;) {
    const std::uint64_t before = progress_;
    left = 0;
    for (Thread& t : threads_) {
      if (t.done) continue;
      current = &t;
      emu_switch(&scheduler_, t.at);
      left += t.done ? 0 : 1;
    }
    const auto all_done = [&](unsigned rank) {
      return std::all_of(threads_.begin(), threads_.end(),
                         [&](const Thread& t) { return t.done || t.rank != rank; });
    };
    for (unsigned rank = 0; rank < size_.cluster; ++rank)
      if (previous_runs_ && all_done(rank))
        return fmt::format("block {} ended without waiting for the kernel before", first_block + rank);
    if (left > 0 && progress_ == before && previous_runs_) {
      previous_runs_ = false;
      size_.previous_ends();
      continue;
    }
    if (left > 0 && progress_ == before)
      return fmt::format("threads of the cluster at block {} wait for each other for ever", first_block);
  }
  return "";
}

}  // namespace

std::string run_grid(const LaunchSize& size, const std::function<void()>& thread) {
  Machine here(size, thread);
  machine = &here;
  std::string problem;
  for (unsigned block = 0; block < size.blocks && problem.empty(); block += size.cluster)
    problem = here.run_cluster(block);
  machine = nullptr;
  return problem;
}

unsigned char* shared_of_block(int rank) {
  return machine->blocks_[rank < 0 ? machine->current->rank : static_cast<unsigned>(rank)].shared.data();
}
unsigned own_rank() { return machine->current->rank; }
void let_others_run() { machine->yield(); }
void note_progress() { ++machine->progress_; }
std::vector<std::vector<Wgmma>>& wgmma_groups() { return machine->current->wgmmas; }
std::vector<std::vector<TensorStore>>& tensor_stores() { return machine->current->stores; }
void note_write(unsigned address) { machine->current->unseen_writes.push_back(address); }
void note_fence() { machine->current->unseen_writes.clear(); }
bool writes_unseen(unsigned from, unsigned to) {
  return std::any_of(machine->threads_.begin(), machine->threads_.end(), [&](const Thread& t) {
    return t.rank == own_rank() && std::any_of(t.unseen_writes.begin(), t.unseen_writes.end(),
                                               [&](unsigned at) { return from <= at && at < to; });
  });
}
std::vector<TensorCopy>& tensor_copies() { return machine->tensor_copies_; }

}  // namespace tilewright::emulation

// --- what emulated code calls

using tilewright::emulation::machine;

extern "C" {

EmuIds emu_ids() {
  const auto& t = *machine->current;
  const tilewright::emulation::LaunchSize& size = machine->size_;
  return {t.thread, t.block, size.blocks, size.threads, t.rank, size.cluster, size.row};
}

void emu_sync_block() { machine->wait(machine->block().barrier); }

void emu_bar_sync(int id, int threads) {
  auto& barrier = machine->block().named[id];
  barrier.alive = static_cast<unsigned>(threads);
  machine->wait(barrier);
}
void emu_bar_arrive(int id, int threads) {
  auto& barrier = machine->block().named[id];
  barrier.alive = static_cast<unsigned>(threads);
  ++barrier.arrived;
  barrier.release_if_full();
  ++machine->progress_;
}

// Arrives without waiting; emu_cluster_wait then waits for everyone's arrival.
void emu_cluster_arrive() {
  auto& barrier = machine->cluster_;
  machine->current->cluster_generation = barrier.generation;
  ++barrier.arrived;
  barrier.release_if_full();
  ++machine->progress_;
}
void emu_cluster_wait() {
  while (machine->cluster_.generation == machine->current->cluster_generation) machine->yield();
  ++machine->progress_;
}

// Gives `mine` to the warp and returns what all lanes gave. Two sets of slots: nobody is two exchanges ahead.
const unsigned* emu_exchange(unsigned mine) {
  auto* me = machine->current;
  auto& warp = machine->block().warps[me->thread / 32];
  unsigned* slots = warp.slots[me->exchanges++ & 1];
  slots[me->thread % 32] = mine;
  machine->wait(warp.barrier);
  return slots;
}

// Static shared memory: every thread declares the same arrays in the same order.
void* emu_shared(unsigned long bytes) {
  auto* me = machine->current;
  void* at = machine->block().shared.data() + me->shared_used;
  me->shared_used += (bytes + 15) / 16 * 16;
  if (me->shared_used > machine->static_bytes()) std::abort();
  return at;
}
// 16 bytes to shared memory, some time before the group is waited for: until then the place holds nothing
// sensible.
void emu_copy_async(unsigned address, const void* from, int bytes, int size) {
  unsigned char* to = machine->block().shared.data() + address;
  std::memset(to, 0xee, static_cast<std::size_t>(size));
  machine->current->groups.back().push_back(
      {to, from, static_cast<unsigned>(bytes), static_cast<unsigned>(size)});
}
void emu_commit_group() { machine->current->groups.emplace_back(); }
void emu_wait_group(int pending) {
  auto& groups = machine->current->groups;
  while (static_cast<int>(groups.size()) - 1 > pending) {
    for (const auto& c : groups.front()) {
      std::memset(c.to, 0, c.size);
      std::memcpy(c.to, c.from, c.bytes);
    }
    groups.erase(groups.begin());
  }
}
void emu_wait_previous() {
  while (machine->previous_runs_) machine->yield();
  ++machine->progress_;
}
void emu_unknown_ptx() { std::abort(); }
void emu_out_of_bounds(unsigned long index, unsigned long extent) {
  fmt::print(stderr, "emulated CUDA: index {} of a shared array of {}, in block {}\n",
             static_cast<long>(index), extent, machine->current->block);
  std::abort();
}
void* emu_stage() {
  auto address = reinterpret_cast<std::uintptr_t>(machine->block().shared.data() + machine->static_bytes());
  return reinterpret_cast<void*>((address + 15) / 16 * 16);
}
// Addresses in the cluster's shared window: an offset and, in the upper bits, the block's rank.
unsigned emu_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const unsigned char*>(p) - machine->block().shared.data());
}
void* emu_remote(unsigned address) {
  return machine->blocks_[address >> 24].shared.data() + (address & 0xffffffu);
}
}
