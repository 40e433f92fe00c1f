// dot of tw_cpu/dot.h alone, by its tiles or vectors: every number of rows, columns and steps around a whole
// tile, in every order in memory. Elements are small integers, so that sums are exact.
#include <tilewright/base/dtype.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "backends/cpu/parity_testing.h"
#include "backends/cpu/testing.h"
#include "support/draws.h"

namespace tilewright::cpu {
namespace {

constexpr int kDepth = 200, kRows = 70;

struct Element {
  const char* name;
  const char* header;
  DType dtype;
  const char* sum;
  int low, high;
};
constexpr Element kElements[] = {{"DotBf16", "dot_narrow", DType::bf16, "f32", -8, 8},
                                 {"DotI8", "dot_bytes", DType::i8, "i32", -128, 127},
                                 {"DotU8", "dot_bytes", DType::u8, "i32", 0, 255},
                                 {"DotF32", "dot_element", DType::f32, "f32", -8, 8}};

// a, b, where they lie: outer stride, inner stride of each; how much of them there is: rows, columns, depth,
// and whether c starts from zeros. What it returns: the bytes of room that it may write.
using Dot = long(const void* a, const void* b, void* c, const long* lie, const long* there, void* room);

// What a printed kernel says of its blocks: how the inner elements of each lie, and how many rows and columns
// there are; 0 where that is asked.
struct Known {
  const char *left = "asked", *right = "asked";
  long m = 0, n = 0;
};

std::string text_of(const Element& e, int columns, const Known& known = {}) {
  return fmt::format(
      "#include \"tw_cpu/dot.h\"\n#include \"tw_cpu/{0}.h\"\nusing namespace tw;\n"
      "extern \"C\" i64 run(const void* a, const void* b, void* c, const i64* lie, const i64* there, void* "
      "room) {{\n"
      "  TileRegisters tiles;\n"
      "  const DotOperand<{1}, Neighbours::{5}, {6}> left = {{(const {1}::stored*)a, lie[0], lie[1], "
      "there[0], there[2]}};\n"
      "  const DotOperand<{1}, Neighbours::{7}, {8}> right = {{(const {1}::stored*)b, lie[2], lie[3], "
      "there[1], there[2]}};\n"
      "  if (there[3]) dot<{3}, {4}, DotStart::zeros>(left, right, ({2}*)c, {3}, room);\n"
      "  else dot<{3}, {4}>(left, right, ({2}*)c, {3}, room);\n"
      "  return DotRoom<{1}, {3}, {4}>::kBytes;\n}}\n",
      e.header, e.name, e.sum, columns, kDepth, known.left, known.m, known.right, known.n);
}

// A matrix of `outer` by `inner` elements, which are neighbours along one of them or along neither.
struct HostMatrix {
  std::vector<int> values;
  std::vector<unsigned char> bytes;
  long strides[2];
};
HostMatrix operand(const Element& e, long outer, long inner, int order, std::mt19937& random) {
  HostMatrix x;
  x.strides[0] = order == 0 ? inner : order == 1 ? 1 : order == 2 ? 2 * inner + 3 : 3 * inner;
  x.strides[1] = order == 1 ? outer + 1 : order == 2 ? 2 : 1;
  const auto size = static_cast<std::size_t>(size_bytes(e.dtype));
  const auto last = static_cast<std::size_t>((outer - 1) * x.strides[0] + (inner - 1) * x.strides[1]);
  x.bytes.resize((last + 1) * size);
  std::uniform_int_distribution<int> value(e.low, e.high);
  for (long o = 0; o < outer; ++o)
    for (long i = 0; i < inner; ++i) {
      x.values.push_back(value(random));
      const auto at = static_cast<std::size_t>(o * x.strides[0] + i * x.strides[1]);
      if (is_float(e.dtype))
        store_f64(&x.bytes[at * size], e.dtype, x.values.back());
      else
        x.bytes[at * size] = static_cast<unsigned char>(x.values.back());
    }
  return x;
}

class DotShapes : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
  }
};

struct Sizes {
  long m, n, k;
};

// One product, by a function for rows of `columns` elements of c; "" or what is wrong.
std::string check(const Element& e, Dot* dot, long columns, const Sizes& s, int order,
                  std::vector<unsigned char>& room, std::mt19937& random) {
  const bool zeros = random() % 2 == 0;
  const HostMatrix a = operand(e, s.m, s.k, order % 4, random), b = operand(e, s.n, s.k, order / 4, random);
  // Rows behind the last one are not touched; the lanes behind the last column may be.
  std::vector<float> sums(static_cast<std::size_t>((kRows + 1) * columns));
  std::vector<std::int32_t> counts(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(counts[i] = i % 13);
  const long lie[] = {a.strides[0], a.strides[1], b.strides[0], b.strides[1]};
  const long there[] = {s.m, s.n, s.k, zeros ? 1 : 0};
  std::fill(room.begin(), room.end(), 0xff);  // NaN, of every float
  void* c = is_float(e.dtype) ? static_cast<void*>(sums.data()) : counts.data();
  auto* aligned =
      reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(room.data()) + 63) / 64 * 64);
  const long written = dot(a.bytes.data(), b.bytes.data(), c, lie, there, aligned);
  const std::string what = fmt::format("{} {}x{}x{} of {} columns, orders {} zeros {}", e.name, s.m, s.n, s.k,
                                       columns, order, zeros);
  if (std::any_of(aligned + written, room.data() + room.size(), [](unsigned char x) { return x != 0xff; }))
    return what + ": written past its room";
  for (long i = 0; i <= kRows; ++i)
    for (long j = 0; j < (i < s.m ? s.n : columns); ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      long expected = i < s.m && zeros ? 0 : static_cast<long>(at % 13);
      for (long d = 0; i < s.m && d < s.k; ++d)
        expected += static_cast<long>(a.values[static_cast<std::size_t>(i * s.k + d)]) *
                    b.values[static_cast<std::size_t>(j * s.k + d)];
      const long got = is_float(e.dtype) ? static_cast<long>(sums[at]) : counts[at];
      if (got != expected) return fmt::format("{}: [{}, {}] is {}, not {}", what, i, j, got, expected);
    }
  return "";
}

TEST_P(DotShapes, AroundWholeTilesAreExact) {
  std::vector<unsigned char> room(std::size_t{1} << 17);
  std::mt19937 random(11);
  std::uint64_t number = 0;
  for (const Element& e : kElements)
    for (const int columns : {16, 48, 80}) {
      if (!testing::is_tried(GetParam(), number++)) continue;
      const auto dot = testing::build<Dot>(text_of(e, columns), "run", testing::options_for(GetParam()));
      for (const long m : {1, 6, 15, 16, 17, 33, 70})
        for (const long n : {1, 15, 16, 17, 32, 33, 47, 79})
          for (const long k : {1, 2, 31, 33, 64, 199}) {
            if (n > columns) continue;
            const int order = static_cast<int>(random() % 16);
            ASSERT_EQ(check(e, dot.function, columns, {m, n, k}, order, room, random), "");
          }
    }
}

// Blocks of which the text knows all: nothing is compiled for others.
TEST_P(DotShapes, OfWhatIsKnownAreExact) {
  std::vector<unsigned char> room(std::size_t{1} << 17);
  std::mt19937 random(12);
  // By `order` of an operand (HostMatrix): inner elements are together in the first and the last.
  const auto neighbours = [](int order) { return order == 0 || order == 3 ? "together" : "apart"; };
  std::uint64_t number = 0;
  for (const Element& e : kElements)
    for (const long m : {1, 5, 12, 31, 53})
      for (const long n : {15, 16, 64, 79, 80}) {
        if (!test::is_drawn(number++ + static_cast<std::uint64_t>(GetParam()))) continue;
        const int order = static_cast<int>(random() % 16);
        const Known known = {neighbours(order % 4), neighbours(order / 4), m, n};
        const int columns = n <= 16 ? 16 : 80;
        const auto dot =
            testing::build<Dot>(text_of(e, columns, known), "run", testing::options_for(GetParam()));
        for (const long k : {1, 33, 64})
          ASSERT_EQ(check(e, dot.function, columns, {m, n, k}, order, room, random), "");
      }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DotShapes, ::testing::ValuesIn(kAllIsas),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tilewright::cpu
