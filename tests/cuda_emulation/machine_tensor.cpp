// The copy engine, its barriers and the tensor cores of the emulated machine. Everything asynchronous happens
// as late as it may: a copy when its barrier is waited for, a product when its group is.
#include "cuda_emulation/machine.h"

#include <tilewright/base/dtype.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

// Likewise called by emulated code; they stand in machine.cpp.
extern "C" const unsigned* emu_exchange(unsigned mine);
extern "C" void emu_bar_sync(int id, int threads);

namespace tilewright::emulation {
namespace {

// An mbarrier's 8 bytes.
struct BarrierState {
  std::uint16_t expected, pending;
  std::int32_t bytes_and_phase;  // bytes still to come · 2 + the phase's parity
  int phase() const { return bytes_and_phase & 1; }
  int bytes() const { return bytes_and_phase >> 1; }
  void add_bytes(int n) { bytes_and_phase += 2 * n; }
  void finish_if_complete() {
    if (pending != 0 || bytes() != 0) return;
    pending = expected;
    bytes_and_phase ^= 1;
    note_progress();
  }
};
static_assert(sizeof(BarrierState) == 8);

BarrierState& barrier_at(unsigned address, int rank) {
  return *reinterpret_cast<BarrierState*>(shared_of_block(rank) + address);
}

// 128-byte swizzle: the 16-byte chunk's number XOR the row's, both as bits of the address.
unsigned swizzled(unsigned address) { return address ^ ((address >> 7 & 7u) << 4); }

// fn(where an element of the panel lies, null outside of the tensor; its offset from the panel's start).
template <class Fn>
unsigned for_panel(const EmulatedMap& map, const int (&at)[4], const Fn& fn) {
  int i[4];
  unsigned offset = 0;
  for (i[3] = 0; i[3] < map.box[3]; ++i[3])
    for (i[2] = 0; i[2] < map.box[2]; ++i[2])
      for (i[1] = 0; i[1] < map.box[1]; ++i[1])
        for (i[0] = 0; i[0] < map.box[0]; ++i[0], offset += static_cast<unsigned>(map.element_bytes)) {
          bool inside = true;
          unsigned char* element = map.address;
          for (int d = 0; d < 4; ++d) {
            const long long place = i[d] + static_cast<long long>(at[d]);
            inside = inside && place >= 0 && place < map.extents[d];
            element += place * map.strides_bytes[d];
          }
          fn(inside ? element : nullptr, offset);
        }
  return offset;
}

void carry_out(const TensorStore& store) {
  for_panel(store.map, store.at, [&](unsigned char* to, unsigned offset) {
    if (to != nullptr)
      std::memcpy(to, shared_of_block(-1) + swizzled(store.from + offset),
                  static_cast<std::size_t>(store.map.element_bytes));
  });
}

void carry_out(const TensorCopy& copy) {
  const EmulatedMap& map = copy.map;
  const unsigned bytes = for_panel(map, copy.at, [&](const unsigned char* from, unsigned offset) {
    for (int rank = 0; rank < 16; ++rank) {
      if ((copy.blocks >> rank & 1u) == 0) continue;
      unsigned char* place = shared_of_block(rank) + swizzled(copy.to + offset);
      if (from != nullptr)
        std::memcpy(place, from, static_cast<std::size_t>(map.element_bytes));
      else
        std::memset(place, 0, static_cast<std::size_t>(map.element_bytes));
    }
  });
  for (int rank = 0; rank < 16; ++rank) {
    if ((copy.blocks >> rank & 1u) == 0) continue;
    BarrierState& barrier = barrier_at(copy.barrier, rank);
    barrier.add_bytes(-static_cast<int>(bytes));
    barrier.finish_if_complete();
  }
}

unsigned bytes_of(EmulatedType type) {
  return type == emulated_tf32 ? 4 : type == emulated_f16 || type == emulated_bf16 ? 2 : 1;
}
// Along k, in one instruction: 32 bytes.
int depth_of(EmulatedType type) { return 32 / static_cast<int>(bytes_of(type)); }
constexpr int kMostDepth = 32;

// Every number of a type of one or two bytes: decoding was a tenth of what emulating a product takes.
const float* numbers_of(EmulatedType type) {
  static const std::array<std::vector<float>, 4> numbers = [] {
    constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
    std::array<std::vector<float>, 4> all;
    for (std::size_t t = 0; t < all.size(); ++t)
      for (std::uint32_t b = 0; b < 1u << 8 * size_bytes(kTypes[t]); ++b)
        all[t].push_back(static_cast<float>(load_f64(&b, kTypes[t])));
    return all;
  }();
  return numbers[type].data();
}

// Calls read(bits, decode) with a number of the type's width and with what makes a float of such bits.
template <class Read>
void with_type(EmulatedType type, Read read) {
  constexpr std::uint32_t kCutOff = 0x1fff;  // what tensor cores do not look at
  if (type == emulated_tf32)
    return read(std::uint32_t{}, [](std::uint32_t bits) { return std::bit_cast<float>(bits & ~kCutOff); });
  if (type == emulated_i8)
    return read(std::uint8_t{},
                [](std::uint8_t bits) { return static_cast<float>(static_cast<std::int8_t>(bits)); });
  const float* const numbers = numbers_of(type);
  if (bytes_of(type) == 2) return read(std::uint16_t{}, [=](std::uint16_t bits) { return numbers[bits]; });
  return read(std::uint8_t{}, [=](std::uint8_t bits) { return numbers[bits]; });
}

// A row of an operand, as its descriptor says, along k. A chunk of 16 bytes stays together under any swizzle.
void read_row(const unsigned char* memory, unsigned long long descriptor, bool mn_major, int row,
              EmulatedType type, float* to) {
  const auto start = static_cast<unsigned>(descriptor & 0x3fffu) * 16;
  const auto leading = static_cast<unsigned>(descriptor >> 16 & 0x3fffu) * 16;
  const auto stride = static_cast<unsigned>(descriptor >> 32 & 0x3fffu) * 16;
  const auto r = static_cast<unsigned>(row);
  with_type(type, [&](auto bits, const auto& decode) {
    if (mn_major) {
      for (unsigned k = 0; k < 32 / sizeof bits; ++k) {
        const unsigned address = start + r / 64 * leading + r % 64 * 2 + k / 8 * stride + k % 8 * 128;
        std::memcpy(&bits, memory + swizzled(address), sizeof bits);
        to[k] = decode(bits);
      }
      return;
    }
    for (unsigned chunk = 0; chunk < 2; ++chunk) {
      constexpr unsigned kNumbers = 16 / sizeof bits;
      decltype(bits) numbers[kNumbers];
      std::memcpy(numbers, memory + swizzled(start + r / 8 * stride + r % 8 * 128 + 16 * chunk),
                  sizeof numbers);
      for (unsigned i = 0; i < kNumbers; ++i) to[chunk * kNumbers + i] = decode(numbers[i]);
    }
  });
}

// This thread's rows of operand a, from the registers of the four threads that share each of them.
void gather_parts(const Wgmma& w, unsigned thread, float (&left)[2][kMostDepth]) {
  for (int part = 0; part < 4; ++part) {
    const unsigned* words = emu_exchange(*w.parts[part]);
    // Each of the four threads holds 4 bytes of the first half of the row's 32, and 4 of the other half.
    with_type(w.a_type, [&](auto bits, const auto& decode) {
      constexpr unsigned kNumbers = 4 / sizeof bits;
      float* to = left[part % 2] + static_cast<unsigned>(part) / 2 * 4 * kNumbers;
      for (unsigned quad = 0; quad < 4; ++quad)
        for (unsigned i = 0; i < kNumbers; ++i) {
          const auto* word = reinterpret_cast<const char*>(&words[thread % 32 / 4 * 4 + quad]);
          std::memcpy(&bits, word + i * sizeof bits, sizeof bits);
          *to++ = decode(bits);
        }
    });
  }
}

template <class Sum>
void carry_out(const Wgmma& w, unsigned thread) {
  auto* const all = static_cast<Sum*>(w.acc);
  const unsigned char* const memory = shared_of_block(-1);
  const int row0 = static_cast<int>(thread % 128 / 32 * 16 + thread % 32 / 4);
  const int depth = depth_of(w.a_type);
  float left[2][kMostDepth], right[2][kMostDepth];
  if (w.parts[0] != nullptr) {
    gather_parts(w, thread, left);
  } else {
    for (int r = 0; r < 2; ++r) read_row(memory, w.a, w.a_mn, row0 + 8 * r, w.a_type, left[r]);
  }
  for (int c = 0; c < w.columns / 8; ++c) {
    for (int v = 0; v < 2; ++v)
      read_row(memory, w.b, w.b_mn, 8 * c + 2 * static_cast<int>(thread % 4) + v, w.b_type, right[v]);
    Sum* const rows[2] = {all + 2 * c, all + 2 * (w.columns / 8 + c)};
    // Each sum in order, as its result is defined; the four of them side by side, for none waits for another.
    Sum sums[2][2] = {};
    if (w.add)
      for (int r = 0; r < 2; ++r) std::copy_n(rows[r], 2, sums[r]);
    for (int k = 0; k < depth; ++k)
      for (int r = 0; r < 2; ++r)
        for (int v = 0; v < 2; ++v) sums[r][v] += static_cast<Sum>(left[r][k] * right[v][k]);
    for (int r = 0; r < 2; ++r) std::copy_n(sums[r], 2, rows[r]);
  }
}

}  // namespace
}  // namespace tilewright::emulation

using namespace tilewright::emulation;

extern "C" {

unsigned char* emu_shared_at(unsigned address) { return shared_of_block(-1) + address; }

void emu_barrier_init(unsigned address, unsigned arrivals) {
  barrier_at(address, -1) = {static_cast<std::uint16_t>(arrivals), static_cast<std::uint16_t>(arrivals), 0};
}
// An arrival after `bytes` more are expected.
void emu_barrier_arrive(unsigned address, int rank, unsigned bytes) {
  BarrierState& barrier = barrier_at(address, rank);
  barrier.add_bytes(static_cast<int>(bytes));
  if (barrier.pending == 0) std::abort();  // more arrivals than the phase has
  --barrier.pending;
  barrier.finish_if_complete();
}
int emu_barrier_passed(unsigned address, unsigned parity) {
  const auto passed = [&] { return barrier_at(address, -1).phase() != static_cast<int>(parity); };
  if (passed()) return 1;
  auto& copies = tensor_copies();
  for (std::size_t i = 0; i < copies.size() && !passed();) {
    if (copies[i].barrier == address && (copies[i].blocks >> own_rank() & 1u) != 0) {
      carry_out(copies[i]);
      copies.erase(copies.begin() + static_cast<long>(i));
      note_progress();
    } else {
      ++i;
    }
  }
  if (passed()) return 1;
  let_others_run();
  return 0;
}
void emu_tma(unsigned blocks, unsigned to, const void* map, unsigned barrier, const int* at, int rank) {
  TensorCopy copy{
      .blocks = blocks == 0 ? 1u << own_rank() : blocks, .to = to, .barrier = barrier, .map = {}, .at = {}};
  copy.map = *static_cast<const EmulatedMap*>(map);
  std::copy(at, at + rank, copy.at);
  unsigned bytes = static_cast<unsigned>(copy.map.element_bytes);
  for (int extent : copy.map.box) bytes *= static_cast<unsigned>(extent);
  for (int r = 0; r < 16; ++r)
    if ((copy.blocks >> r & 1u) != 0) std::memset(shared_of_block(r) + to, 0xee, bytes);
  tensor_copies().push_back(copy);
}

void emu_tma_store(unsigned from, const void* map, const int* at, int rank) {
  TensorStore store{.from = from, .map = *static_cast<const EmulatedMap*>(map), .at = {}};
  unsigned bytes = static_cast<unsigned>(store.map.element_bytes);
  for (int extent : store.map.box) bytes *= static_cast<unsigned>(extent);
  if (writes_unseen(from, from + bytes)) std::abort();  // the copy engine need not see what has no fence
  std::copy(at, at + rank, store.at);
  tensor_stores().back().push_back(store);
}
void emu_tma_commit() { tensor_stores().emplace_back(); }
void emu_tma_wait_read(int pending) {
  auto& groups = tensor_stores();
  while (static_cast<int>(groups.size()) - 1 > pending) {
    for (const TensorStore& s : groups.front()) carry_out(s);
    groups.erase(groups.begin());
  }
}
void emu_write_unseen(unsigned address) { note_write(address); }
void emu_fence_async() { note_fence(); }

void emu_wgmma(void* acc, int columns, unsigned long long a, unsigned long long b, int add, int a_mn,
               int b_mn, int a_type, int b_type) {
  wgmma_groups().back().push_back({acc, columns, a, b, add != 0, a_mn != 0, b_mn != 0,
                                   static_cast<EmulatedType>(a_type), static_cast<EmulatedType>(b_type)});
}
void emu_wgmma_parts(float* acc, int columns, const unsigned* const* parts, unsigned long long b, int add,
                     int b_mn, int a_type, int b_type) {
  Wgmma w{acc,
          columns,
          0,
          b,
          add != 0,
          false,
          b_mn != 0,
          static_cast<EmulatedType>(a_type),
          static_cast<EmulatedType>(b_type)};
  std::copy(parts, parts + 4, w.parts);
  wgmma_groups().back().push_back(w);
}
void emu_wgmma_commit() { wgmma_groups().emplace_back(); }
void emu_wgmma_wait(int pending) {
  auto& groups = wgmma_groups();
  const unsigned thread = emu_ids().thread;
  const bool done = static_cast<int>(groups.size()) - 1 <= pending;
  while (static_cast<int>(groups.size()) - 1 > pending) {
    for (const Wgmma& w : groups.front())
      w.a_type == emulated_i8 ? carry_out<std::int32_t>(w, thread) : carry_out<float>(w, thread);
    groups.erase(groups.begin());
  }
  // One product of four warps: none of them has its sums while another still reads the blocks, which one
  // thread gives back for all.
  constexpr int kBehindNamed = 12, kWarpgroup = 128;  // barriers that no kernel names
  if (!done) emu_bar_sync(kBehindNamed + static_cast<int>(thread) / kWarpgroup, kWarpgroup);
}
}
