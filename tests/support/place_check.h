// Places of extremes along axes long and short: of equal elements the first, of NaNs the first, 0 where
// nothing is beyond the least of all values.
#pragma once

#include "support/draws.h"
#include "support/host_values.h"
#include "support/limit_check.h"

#include "ops/functions.h"

#include <limits>
#include <tuple>
#include <vector>

namespace tilewright::test {

namespace places {

// What an axis holds.
enum class Elements : unsigned char { equal, lowest, highest, few, nans, rising };

inline double element(DType dtype, Elements elements, Index i, Random& random) {
  const bool real = is_float(dtype);  // infinities become an integer's limits
  switch (elements) {
    case Elements::equal:
      return 1;
    case Elements::lowest:
      return -kInf;
    case Elements::highest:
      return kInf;
    case Elements::few: {  // among them zeros of both signs, which are equal
      const auto drawn = static_cast<double>(random.below(3));
      return drawn == 0 && real && random.chance(0.5) ? -0.0 : drawn;
    }
    case Elements::nans:
      return real && random.below(1000) == 0 ? kNaN : static_cast<double>(random.below(101));
    case Elements::rising:
      return static_cast<double>(i % 97);
  }
  return 0;
}

inline ir::HostTensor tensor(const ir::Type& type, Elements elements, std::uint64_t seed) {
  Random random(seed);
  ir::HostTensor x = random_host(type, {}, random);
  for (Index i = 0; i < type.shape.size(); ++i) {
    const double value = element(type.dtype, elements, i, random);
    if (is_float(type.dtype))
      x.f[static_cast<std::size_t>(i)] = value;
    else
      x.i[static_cast<std::size_t>(i)] = float_to_int(type.dtype, value);
  }
  return x;
}

}  // namespace places

// Checks places of extremes alone, and in a kernel with other reductions, of values that it computes, with
// uses of them.
inline void expect_first_extremes(const RunGraph& run, const ir::Type& type, Index axis) {
  using places::Elements;
  for (const bool beside : {false, true}) {
    ir::Graph graph("places");
    ir::Value x{&graph, graph.add_input("x", type)};
    std::vector<ir::NodeId> outputs;
    if (beside) {
      x = ops::cast(x, is_float(type.dtype) ? DType::f64 : DType::i64);
      const ir::Value last = ops::argmax(x, axis) + 3;
      outputs = {last.id, ops::argmin(x, axis, ops::Keep::yes).id, ops::max(x, {axis}).id};
    } else {
      outputs = {ops::argmax(x, axis).id};
    }
    graph.set_outputs(outputs);
    std::uint64_t seed = 0;
    for (const Elements elements : {Elements::equal, Elements::lowest, Elements::highest, Elements::few,
                                    Elements::nans, Elements::rising}) {
      ++seed;
      // A part of the contents is drawn for each array: others from array to array.
      if (!is_drawn(seed + static_cast<std::uint64_t>(type.shape.size()) + (beside ? 1 : 0))) continue;
      SCOPED_TRACE(fmt::format("{} {} along {}, elements {}{}", name(type.dtype), to_string(type.shape), axis,
                               static_cast<int>(elements), beside ? ", beside others" : ""));
      const std::vector<ir::HostTensor> inputs = {places::tensor(type, elements, seed)};
      const auto want = ops::evaluate(graph, inputs), got = run(graph, inputs);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t o = 0; o < got.size(); ++o)
        EXPECT_EQ(difference(got[o], want[o]), "") << "output " << o;
    }
  }
}

// Axes that many programs share on most machines, of odd lengths, along rows, columns and between them; and
// some that one program holds.
inline void expect_first_extremes(const RunGraph& run) {
  for (const auto& [shape, axis] : {std::tuple<Shape, Index>{{100003}, 0},
                                    {{3, 40001}, 1},
                                    {{2, 20011, 3}, 1},
                                    {{2, 4097, 32}, 1},
                                    {{5, 232, 48}, 1},
                                    {{7, 2417}, 1},
                                    {{22, 94}, 0}})
    expect_first_extremes(run, {DType::f32, shape}, axis);
  for (const DType dtype : {DType::bf16, DType::f16, DType::i32, DType::u8})
    for (const auto& [shape, axis] : {std::tuple<Shape, Index>{{70001}, 0}, {{2, 20011, 3}, 1}})
      expect_first_extremes(run, {dtype, shape}, axis);
}

}  // namespace tilewright::test
