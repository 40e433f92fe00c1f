// Every row that is not pointwise, on each type: eval against the definition, one coordinate at a time.
#include "support/op_samples.h"

#include "ops/ops.h"

#include <tilewright/base/philox.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace tilewright::test {
namespace {

using Coordinate = std::vector<Index>;
using ir::OpClass;

// A number of either kind, exact: long double holds all of int64.
using Number = long double;

Number at(const ir::HostTensor& t, const Coordinate& c) {
  Index linear = 0;
  for (std::size_t i = 0; i < c.size(); ++i) linear = linear * t.type.shape[static_cast<int>(i)] + c[i];
  const auto n = static_cast<std::size_t>(linear);
  return is_float(t.type.dtype) ? static_cast<Number>(t.f[n]) : static_cast<Number>(t.i[n]);
}

std::vector<Coordinate> coordinates(const Shape& shape) {
  std::vector<Coordinate> all;
  for (Index n = 0; n < shape.size(); ++n) {
    Coordinate c(static_cast<std::size_t>(shape.rank()));
    Index rest = n;
    for (int i = shape.rank() - 1; i >= 0; rest /= shape[i--])
      c[static_cast<std::size_t>(i)] = rest % shape[i];
    all.push_back(c);
  }
  return all;
}

struct Call {
  const ir::Op& op;
  const std::vector<ir::HostTensor>& x;
  const ir::Attrs& attrs;
  const ir::Type& type;
  std::size_t axis() const { return static_cast<std::size_t>(attrs.integer("axis")); }
};

bool is_named(const Call& call, std::string_view text) { return call.op.name.ends_with(text); }

Number combine(const Call& call, Number a, Number b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (is_named(call, "sum")) return a + b;
  if (is_named(call, "prod")) return a * b;
  if (is_named(call, "max")) return std::max(a, b);
  if (is_named(call, "min")) return std::min(a, b);
  if (is_named(call, "any")) return a != 0 || b != 0;
  return a != 0 && b != 0;
}

Number identity(const Call& call) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool real = is_float(call.type.dtype);
  if (is_named(call, "max"))
    return real ? -infinity : static_cast<Number>(float_to_int(call.type.dtype, -infinity));
  if (is_named(call, "min"))
    return real ? infinity : static_cast<Number>(float_to_int(call.type.dtype, infinity));
  return is_named(call, "prod") || is_named(call, "all") ? 1 : 0;
}

// All operand elements that agree with result coordinate `c` on the axes that stay.
Number naive_reduce(const Call& call, const Coordinate& c) {
  const std::vector<Index>& axes = call.attrs.integers("axes");
  Number total = identity(call);
  Number best = 0;
  bool first = true;
  for (const Coordinate& from : coordinates(call.x[0].type.shape)) {
    Coordinate kept;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (std::find(axes.begin(), axes.end(), static_cast<Index>(i)) == axes.end()) kept.push_back(from[i]);
    if (kept != c) continue;
    const Number v = at(call.x[0], from);
    if (!call.op.name.starts_with("arg")) {
      total = combine(call, total, v);
      continue;
    }
    const bool beats = is_named(call, "max") ? v > best : v < best;
    if (first || (!std::isnan(best) && (beats || std::isnan(v)))) {
      best = v;
      total = static_cast<Number>(from[static_cast<std::size_t>(axes[0])]);
    }
    first = false;
  }
  return total;
}

Number naive_scan(const Call& call, Coordinate c) {
  Number total = identity(call);
  const Index last = c[call.axis()];
  for (Index i = 0; i <= last; ++i) {
    c[call.axis()] = i;
    total = combine(call, total, at(call.x[0], c));
  }
  return total;
}

// The place of the element that as many others come before as the result's coordinate says.
Number naive_argsort(const Call& call, Coordinate c) {
  const Index rank = c[call.axis()], length = call.type.shape[static_cast<int>(call.axis())];
  const auto element = [&](Index i) {
    c[call.axis()] = i;
    return at(call.x[0], c);
  };
  const bool descending = call.attrs.text("order") == "descending";
  const auto less = [](Number a, Number b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  for (Index i = 0; i < length; ++i) {
    Index before = 0;
    for (Index j = 0; j < length; ++j) {
      const Number a = element(j), b = element(i);
      const bool first = descending ? less(b, a) : less(a, b), last = descending ? less(a, b) : less(b, a);
      before += first || (!last && j < i) ? 1 : 0;
    }
    if (before == rank) return static_cast<Number>(i);
  }
  return -1;
}

// Index coordinate and what it replaces for take and scatter_add: [before axis], [index axes], [after].
struct Indexed {
  Coordinate index;
  Coordinate whole;  // with a hole at the axis
};
Indexed split(const Coordinate& part, std::size_t axis, int index_rank) {
  const auto begin = part.begin() + static_cast<Index>(axis);
  Indexed out{{begin, begin + index_rank}, {part.begin(), begin}};
  out.whole.push_back(0);
  out.whole.insert(out.whole.end(), begin + index_rank, part.end());
  return out;
}

Number naive_take(const Call& call, const Coordinate& c) {
  const bool along = call.op.kind == OpClass::take_along;
  Indexed where = along ? Indexed{c, c} : split(c, call.axis(), call.x[1].type.shape.rank());
  const auto i = static_cast<Index>(at(call.x[1], where.index));
  if (i < 0 || i >= call.x[0].type.shape[static_cast<int>(call.axis())]) return 0;
  where.whole[call.axis()] = i;
  return at(call.x[0], where.whole);
}

Number naive_scatter(const Call& call, const Coordinate& c) {
  const bool along = call.op.kind == OpClass::scatter_add_along;
  Number total = 0;
  for (const Coordinate& from : coordinates(call.x[1].type.shape)) {
    Indexed where = along ? Indexed{from, from} : split(from, call.axis(), call.x[0].type.shape.rank());
    where.whole[call.axis()] = static_cast<Index>(at(call.x[0], where.index));
    if (where.whole == c) total += at(call.x[1], from);
  }
  return total;
}

// The coordinate in the whole of one in the block, whose start is brought inside.
Coordinate placed(const Call& call, const ir::HostTensor& start, const Shape& block, Coordinate c) {
  const Shape& whole = call.x[0].type.shape;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const int axis = static_cast<int>(i);
    c[i] += std::clamp<Index>(start.i[i], 0, whole[axis] - block[axis]);
  }
  return c;
}

Number naive_placed(const Call& call, const Coordinate& c) {
  if (call.op.kind == OpClass::dynamic_slice)
    return at(call.x[0], placed(call, call.x[1], call.type.shape, c));
  for (const Coordinate& from : coordinates(call.x[1].type.shape))
    if (placed(call, call.x[2], call.x[1].type.shape, from) == c) return at(call.x[1], from);
  return at(call.x[0], c);
}

Number naive_matmul(const Call& call, const Coordinate& c) {
  Coordinate a = c;
  Coordinate b = c;
  Number total = 0;
  const Shape& shape = call.x[0].type.shape;
  for (Index k = 0; k < shape[shape.rank() - 1]; ++k) {
    a.back() = k;
    b[b.size() - 2] = k;
    total += at(call.x[0], a) * at(call.x[1], b);
  }
  return total;
}

Number naive_cast(const Call& call, const Coordinate& c) {
  const Number v = at(call.x[0], c);
  const DType to = call.type.dtype;
  if (is_float(to)) return round_to(to, static_cast<double>(v));
  if (is_float(call.x[0].type.dtype)) return float_to_int(to, static_cast<double>(v));
  return wrap_to(to, static_cast<std::int64_t>(v));
}

Number naive_view(const Call& call, Coordinate c) {
  const Shape& from = call.x[0].type.shape;
  Coordinate source(static_cast<std::size_t>(from.rank()));
  switch (call.op.kind) {
    case OpClass::reshape:
      return at({call.type, call.x[0].f, call.x[0].i}, c);
    case OpClass::transpose:
      for (std::size_t i = 0; i < c.size(); ++i)
        source[static_cast<std::size_t>(call.attrs.integers("perm")[i])] = c[i];
      return at(call.x[0], source);
    case OpClass::expand:
      for (std::size_t i = 0; i < c.size(); ++i) source[i] = from[static_cast<int>(i)] == 1 ? 0 : c[i];
      return at(call.x[0], source);
    case OpClass::slice:
      for (std::size_t i = 0; i < c.size(); ++i)
        source[i] = call.attrs.integers("start")[i] + c[i] * call.attrs.integers("step")[i];
      return at(call.x[0], source);
    case OpClass::pad:
      for (std::size_t i = 0; i < c.size(); ++i) {
        source[i] = c[i] - call.attrs.integers("low")[i];
        if (source[i] < 0 || source[i] >= from[static_cast<int>(i)])
          return is_float(call.type.dtype) ? static_cast<Number>(call.attrs.real("value"))
                                           : static_cast<Number>(call.attrs.integer("value"));
      }
      return at(call.x[0], source);
    default:  // concat
      for (const ir::HostTensor& part : call.x) {
        const Index extent = part.type.shape[static_cast<int>(call.axis())];
        if (c[call.axis()] < extent) return at(part, c);
        c[call.axis()] -= extent;
      }
      ADD_FAILURE() << "past the last part";
      return 0;
  }
}

Number naive_source(const Call& call, const Coordinate& c, std::uint64_t linear) {
  if (call.op.kind == OpClass::iota) return c[call.axis()];
  if (call.op.kind == OpClass::random) {
    const std::uint64_t counter = static_cast<std::uint64_t>(call.attrs.integer("offset")) + linear;
    return philox4x32(static_cast<std::uint64_t>(call.x[0].i[0]), counter / 4)[counter % 4];
  }
  return is_float(call.type.dtype) ? static_cast<Number>(call.attrs.real("value"))
                                   : static_cast<Number>(call.attrs.integer("value"));
}

Number naive(const Call& call, const Coordinate& c, std::uint64_t linear) {
  switch (call.op.kind) {
    case OpClass::cast:
      return naive_cast(call, c);
    case OpClass::reduce:
      return naive_reduce(call, c);
    case OpClass::scan:
      return naive_scan(call, c);
    case OpClass::argsort:
      return naive_argsort(call, c);
    case OpClass::take:
    case OpClass::take_along:
      return naive_take(call, c);
    case OpClass::scatter_add:
    case OpClass::scatter_add_along:
      return naive_scatter(call, c);
    case OpClass::update_slice:
    case OpClass::dynamic_slice:
      return naive_placed(call, c);
    case OpClass::matmul:
      return naive_matmul(call, c);
    case OpClass::constant:
    case OpClass::iota:
    case OpClass::random:
      return naive_source(call, c, linear);
    default:
      return naive_view(call, c);
  }
}

ir::HostTensor naive_result(const Call& call) {
  ir::HostTensor out{.type = call.type};
  std::uint64_t linear = 0;
  for (const Coordinate& c : coordinates(call.type.shape)) {
    const Number v = naive(call, c, linear++);
    if (is_float(call.type.dtype))
      out.f.push_back(static_cast<double>(v));
    else
      out.i.push_back(wrap_to(call.type.dtype, static_cast<std::int64_t>(v)));
  }
  return out;
}

void check_rows(Values values) {
  Random random(5);
  int checked = 0;
  for (const ir::Op* op : ops::all_ops()) {
    if (op->kind == OpClass::pointwise) continue;
    for (DType dtype : kAllDTypes)
      for (const OpSample& sample : op_samples(*op, dtype)) {
        const auto operands = sample_operands(*op, sample, random, values);
        std::vector<const ir::HostTensor*> pointers;
        pointers.reserve(operands.size());
        for (const ir::HostTensor& t : operands) pointers.push_back(&t);
        const ir::Type type = op->infer(sample.operands, sample.attrs);
        const ir::HostTensor wanted = naive_result({*op, operands, sample.attrs, type});
        const ir::HostTensor got = op->eval(pointers, sample.attrs, type);
        EXPECT_EQ(difference(got, wanted, {1e-13, 1e-13}), "")
            << op->name << " of " << name(dtype) << " giving " << to_string(type);
        ++checked;
      }
  }
  EXPECT_GT(checked, 1000);
}

TEST(StructuralRows, EvalFollowsTheDefinition) { check_rows(Values::ordinary); }

TEST(StructuralRows, EvalFollowsTheDefinitionOnInfinitiesNansAndLimits) {
  Random random(5);
  for (std::string_view text :
       {"cast", "max", "min", "argmax", "argmin", "cummax", "cummin", "argsort", "slice", "take", "any"}) {
    const auto all = ops::all_ops();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const ir::Op* op) { return op->name == text; });
    ASSERT_NE(found, all.end());
    const ir::Op* op = *found;
    for (DType dtype : kAllDTypes)
      for (const OpSample& sample : op_samples(*op, dtype)) {
        const auto operands = sample_operands(*op, sample, random, Values::odd);
        std::vector<const ir::HostTensor*> pointers;
        pointers.reserve(operands.size());
        for (const ir::HostTensor& t : operands) pointers.push_back(&t);
        const ir::Type type = op->infer(sample.operands, sample.attrs);
        EXPECT_EQ(difference(op->eval(pointers, sample.attrs, type),
                             naive_result({*op, operands, sample.attrs, type})),
                  "")
            << op->name << " of " << name(dtype);
      }
  }
}

TEST(OpTable, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const ir::Op* op : ops::all_ops()) EXPECT_TRUE(names.insert(op->name).second) << op->name;
}

TEST(OpTable, EveryRowHasASampleForSomeType) {
  for (const ir::Op* op : ops::all_ops()) {
    std::size_t samples = 0;
    for (DType dtype : kAllDTypes) samples += op_samples(*op, dtype).size();
    EXPECT_EQ(samples > 0, op->kind != OpClass::input) << op->name;
  }
}

TEST(OpTable, MonoidsBelongToReductionsAndScans) {
  for (const ir::Op* op : ops::all_ops())
    EXPECT_EQ(op->monoid.has_value(), op->kind == OpClass::reduce || op->kind == OpClass::scan) << op->name;
}

}  // namespace
}  // namespace tilewright::test
