// Gathers and additions at indices that follow the columns: a vector at once where its elements lie together.
#include "cuda_emulation/kernel_expect.h"

#include <gmock/gmock.h>

#include <tilewright/tile/builder.h>

namespace tilewright::emulation {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tile::Builder;
using tile::Value;
using tile::View;

constexpr Index kShiftedRows = 6, kShiftedBlock = 2, kShiftedColumns = 64;
constexpr tile::Schedule kOfShifted[] = {
    {.threads = 32, .kind = tile::ElementLoops{.threads_per_row = 8}},
    {.threads = 64, .vector_bytes = 8, .kind = tile::ElementLoops{.threads_per_row = 4}},
    {.threads = 32, .kind = tile::ElementLoops{.threads_per_row = 32}}};

struct Shift {
  DType dtype = DType::bf16;
  Index pitch = 64, by = 16, end = 48;  // out[r, j] = x[pitch r + j + by] where by <= j + by < end
};

Value column(Builder& k) {
  return k.broadcast(k.expand(k.arange(kShiftedColumns), 0), {kShiftedBlock, kShiftedColumns});
}
Value row(Builder& k, Value first) {
  return k.broadcast(k.expand(first + k.arange(kShiftedBlock), 1), {kShiftedBlock, kShiftedColumns});
}

tile::Kernel shifted(const Shift& s) {
  Builder k("shifted");
  const View x = k.view("x", s.dtype, {kShiftedRows * s.pitch + 64}),
             out = k.view("out", s.dtype, {kShiftedRows, kShiftedColumns});
  const Value first = k.program_id(0) * kShiftedBlock, place = column(k) + s.by;
  const Value taken = k.gather(x, {row(k, first) * s.pitch + place},
                               {.mask = (place >= s.by) & (place < s.end), .fill = -1.0});
  k.store(out, {first, 0}, taken);
  return k.finish({{{kShiftedRows, kShiftedBlock}}});
}

// sums[pitch r + j] += x[r, j] for all rows of even numbers.
tile::Kernel added(Index pitch) {
  Builder k("added");
  const View x = k.view("x", DType::f32, {kShiftedRows, kShiftedColumns}),
             sums = k.view("sums", DType::f32, {kShiftedRows * pitch});
  const Value first = k.program_id(0) * kShiftedBlock, rows = row(k, first);
  k.atomic_add(sums, {rows * pitch + column(k)},
               k.load(x, {first, 0}, {.shape = {kShiftedBlock, kShiftedColumns}}), rows % 2 == 0);
  return k.finish({{{kShiftedRows, kShiftedBlock}}});
}

// sums[64 to[r] + j] += x[r, j], with indices of 32 bits, none of which is out of range: an embedding's
// gradient.
tile::Kernel added_by_index() {
  Builder k("added_by_index");
  const View x = k.view("x", DType::f32, {kShiftedRows, kShiftedColumns}),
             to = k.view("to", DType::i32, {kShiftedRows}),
             sums = k.view("sums", DType::f32, {5 * kShiftedColumns});
  const Value first = k.program_id(0) * kShiftedBlock;
  const Value row = k.cast(k.expand(k.load(to, {first}, {.shape = {kShiftedBlock}}), 1), DType::i64);
  const Value place = k.broadcast(row * kShiftedColumns, {kShiftedBlock, kShiftedColumns}) + column(k);
  k.atomic_add(sums, {place}, k.load(x, {first, 0}, {.shape = {kShiftedBlock, kShiftedColumns}}),
               k.broadcast((row >= 0) & (row < 5), {kShiftedBlock, kShiftedColumns}));
  return k.finish({{{kShiftedRows, kShiftedBlock}}});
}

class Neighbours : public ::testing::Test {
 protected:
  Neighbours() : backend_(open_emulated_cuda("sm_90a").value()) {}
  std::string text_of(const tile::Kernel& kernel, const tile::Schedule& schedule = kOfShifted[0]) {
    return backend_->print(kernel, schedule).value().text;
  }
  void check(const tile::Kernel& kernel) {
    for (const tile::Schedule& s : kOfShifted) expect_right(*backend_, kernel, s);
  }
  std::unique_ptr<backends::Backend> backend_;
};

TEST_F(Neighbours, AlignedVectorsAreGatheredAtOnce) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const tile::Kernel kernel = shifted({.dtype = dtype});
    EXPECT_THAT(text_of(kernel), Not(HasSubstr("load<1, Cache::constant>(x")));
    check(kernel);
  }
  EXPECT_THAT(text_of(shifted({})), HasSubstr("load_if<8, Cache::constant>("));
  EXPECT_THAT(text_of(shifted({.dtype = DType::f32})), HasSubstr("load_if<4, Cache::constant>("));
}

// A start, a row or an end that is no multiple of the vector.
TEST_F(Neighbours, OthersAreGatheredOneByOne) {
  for (const Shift& s : {Shift{.by = 3}, Shift{.pitch = 65}, Shift{.end = 45}}) {
    const tile::Kernel kernel = shifted(s);
    EXPECT_THAT(text_of(kernel), HasSubstr("load<1, Cache::constant>(x"));
    check(kernel);
  }
}

TEST_F(Neighbours, AlignedVectorsAreAddedAtOnce) {
  EXPECT_THAT(text_of(added(64)), HasSubstr("atomic_add(sums_sum_to, sums_sum);"));
  check(added(64));
  EXPECT_THAT(text_of(added_by_index()), Not(HasSubstr("atomic_add(sums + ")));
  check(added_by_index());
}

TEST_F(Neighbours, OthersAreAddedOneByOne) {
  EXPECT_THAT(text_of(added(65)), HasSubstr("atomic_add(sums + "));
  check(added(65));
  const auto before = open_emulated_cuda("sm_80").value();
  EXPECT_THAT(before->print(added(64), kOfShifted[0]).value().text, HasSubstr("atomic_add(sums + "));
}

}  // namespace
}  // namespace tilewright::emulation
