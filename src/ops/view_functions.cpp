// Building functions of sources, views, indexing and matmul: axes are normalized here, rows see them in
// range.
#include "ops/append.h"
#include "ops/promote.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::ops {

Value iota(ir::Graph& graph, const Shape& shape, Index axis) {
  const auto found = normalize_axis(axis, shape.rank());
  if (!found) throw Error(fmt::format("iota: axis {} is out of range for {}", axis, to_string(shape)));
  return {&graph, graph.add(kIota, {}, {{"axis", Index{*found}}, {"shape", shape.extents()}})};
}

Value random_bits(Value seed, const Shape& shape, Index offset) {
  return append(kRandom, {seed}, {{"offset", offset}, {"shape", shape.extents()}});
}

Value reshape(Value x, const Shape& shape) {
  Shape full = shape;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (open >= 0) fail(x, fmt::format("reshape: only one extent may be -1, got {}", to_string(shape)));
    full[open = i] = 1;
  }
  ir::check_shape(full);
  if (open >= 0) {
    const Index known = full.size();
    if (known == 0 || x.shape().size() % known != 0)
      fail(x, fmt::format("reshape: {} does not divide into {}", to_string(x.type()), to_string(shape)));
    full[open] = x.shape().size() / known;
  }
  if (full == x.shape()) return x;
  return append(kReshape, {x}, {{"shape", full.extents()}});
}

Value transpose(Value x, const std::vector<Index>& perm) {
  std::vector<Index> normal;
  normal.reserve(perm.size());
  for (Index axis : perm) normal.push_back(axis_of("transpose", x, axis));
  if (std::is_sorted(normal.begin(), normal.end()) && static_cast<int>(normal.size()) == x.shape().rank() &&
      std::adjacent_find(normal.begin(), normal.end()) == normal.end())
    return x;
  return append(kTranspose, {x}, {{"perm", normal}});
}

Value swap_axes(Value x, Index a, Index b) {
  std::vector<Index> perm;
  perm.reserve(x.shape().extents().size());
  for (int i = 0; i < x.shape().rank(); ++i) perm.push_back(i);
  std::swap(perm[static_cast<std::size_t>(axis_of("swap_axes", x, a))],
            perm[static_cast<std::size_t>(axis_of("swap_axes", x, b))]);
  return transpose(x, perm);
}

Value broadcast_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<Index> padded;
  if (x.shape().rank() <= shape.rank())
    padded.resize(static_cast<std::size_t>(shape.rank() - x.shape().rank()), 1);
  padded.insert(padded.end(), x.shape().begin(), x.shape().end());
  const Value unit = reshape(x, Shape(padded));
  return unit.shape() == shape ? unit : append(kExpand, {unit}, {{"shape", shape.extents()}});
}

Value unsqueeze(Value x, Index axis) {
  std::vector<Index> shape = x.shape().extents();
  shape.insert(shape.begin() + axis_of("unsqueeze", x, axis, x.shape().rank() + 1), 1);
  return reshape(x, Shape(shape));
}

Value squeeze(Value x, Index axis) {
  std::vector<Index> shape = x.shape().extents();
  const int at = axis_of("squeeze", x, axis);
  if (x.shape()[at] != 1) fail(x, fmt::format("squeeze: axis {} of {} is not 1", axis, to_string(x.type())));
  shape.erase(shape.begin() + at);
  return reshape(x, Shape(shape));
}

Value slice(Value x, const std::vector<Index>& start, const std::vector<Index>& step, const Shape& shape) {
  const bool whole = shape == x.shape() &&
                     std::all_of(start.begin(), start.end(), [](Index i) { return i == 0; }) &&
                     std::all_of(step.begin(), step.end(), [](Index i) { return i == 1; });
  if (whole) return x;
  return append(kSlice, {x}, {{"start", start}, {"step", step}, {"shape", shape.extents()}});
}

Value slice_axis(Value x, Index axis, const Range& range) {
  const int at = axis_of("slice", x, axis);
  const Index extent = x.shape()[at];
  if (range.step == 0) fail(x, "slice: the step is 0");
  const bool forward = range.step > 0;
  auto place = [&](std::optional<Index> position, Index otherwise) {
    if (!position) return otherwise;
    const Index p = *position < 0 ? *position + extent : *position;
    return forward ? std::clamp<Index>(p, 0, extent) : std::clamp<Index>(p, -1, extent - 1);
  };
  const Index start = place(range.start, forward ? 0 : extent - 1);
  const Index stop = place(range.stop, forward ? extent : -1);
  const Index step = std::clamp(range.step, -extent - 1, extent + 1);
  const Index distance = forward ? stop - start : start - stop;
  std::vector<Index> starts(static_cast<std::size_t>(x.shape().rank()), 0);
  std::vector<Index> steps(starts.size(), 1);
  Shape shape = x.shape();
  shape[at] = distance <= 0 ? 0 : ceil_div(distance, forward ? step : -step);
  starts[static_cast<std::size_t>(at)] = shape[at] == 0 ? 0 : start;
  steps[static_cast<std::size_t>(at)] = step;
  return slice(x, starts, steps, shape);
}

Value select(Value x, Index axis, Index position) {
  const int at = axis_of("select", x, axis);
  const Index extent = x.shape()[at];
  if (position < -extent || position >= extent)
    fail(x, fmt::format("select: position {} is out of range for axis {} of {}", position, axis,
                        to_string(x.type())));
  const Index start = position < 0 ? position + extent : position;
  return squeeze(slice_axis(x, at, {.start = start, .stop = start + 1}), at);
}

Value pad(Value x, const std::vector<Index>& low, const std::vector<Index>& high, double value) {
  const bool none = std::all_of(low.begin(), low.end(), [](Index i) { return i == 0; }) && low == high;
  if (none && static_cast<int>(low.size()) == x.shape().rank()) return x;
  ir::Attrs attrs{{"low", low}, {"high", high}};
  if (is_float(x.dtype()))
    attrs.set("value", round_to(compute_dtype(x.dtype()), value));
  else
    attrs.set("value", Index{float_to_int(x.dtype(), value)});
  return append(kPad, {x}, attrs);
}

Value pad_axis(Value x, Index axis, Index low, Index high, double value) {
  const auto at = static_cast<std::size_t>(axis_of("pad", x, axis));
  std::vector<Index> lows(static_cast<std::size_t>(x.shape().rank()), 0);
  std::vector<Index> highs = lows;
  lows[at] = low;
  highs[at] = high;
  return pad(x, lows, highs, value);
}

Value concat(const std::vector<Value>& parts, Index axis) {
  if (parts.empty()) throw Error("concat: wants at least one tensor");
  const int at = axis_of("concat", parts[0], axis);
  if (parts.size() == 1) return parts[0];
  DType dtype = parts[0].dtype();
  for (const Value& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Value> same;
  same.reserve(parts.size());
  for (const Value& part : parts) same.push_back(cast(part, dtype));
  return append(kConcat, same, {{"axis", Index{at}}});
}

Value stack(const std::vector<Value>& parts, Index axis) {
  if (parts.empty()) throw Error("stack: wants at least one tensor");
  const int at = axis_of("stack", parts[0], axis, parts[0].shape().rank() + 1);
  std::vector<Value> deeper;
  deeper.reserve(parts.size());
  for (const Value& part : parts) {
    if (part.shape() != parts[0].shape())
      fail(part, fmt::format("stack: wants tensors of one shape, got {} beside {}", to_string(part.type()),
                             to_string(parts[0].type())));
    deeper.push_back(unsqueeze(part, at));
  }
  return concat(deeper, at);
}

std::vector<Value> split(Value x, Index axis, const std::vector<Index>& extents) {
  const int at = axis_of("split", x, axis);
  std::vector<Value> parts;
  Index done = 0;
  for (Index extent : extents) {
    if (extent < 0) fail(x, "split: an extent is negative");
    // Compared with what is left: the sum of large ones would overflow.
    if (extent > x.shape()[at] - done)
      fail(x, fmt::format("split: the parts hold more than axis {} of {}", axis, to_string(x.type())));
    parts.push_back(slice_axis(x, at, {.start = done, .stop = done + extent}));
    done += extent;
  }
  if (done != x.shape()[at])
    fail(x, fmt::format("split: the parts hold {} of axis {} of {}", done, axis, to_string(x.type())));
  return parts;
}

Value flip(Value x, const std::vector<Index>& axes) {
  std::vector<Index> start(static_cast<std::size_t>(x.shape().rank()), 0);
  std::vector<Index> step(start.size(), 1);
  for (Index axis : axes) {
    const int at = axis_of("flip", x, axis);
    if (step[static_cast<std::size_t>(at)] < 0) fail(x, "flip: an axis is named twice");
    start[static_cast<std::size_t>(at)] = std::max<Index>(x.shape()[at] - 1, 0);
    step[static_cast<std::size_t>(at)] = -1;
  }
  return slice(x, start, step, x.shape());
}

Value take(Value x, Value index, Index axis) {
  return append(kTake, {x, index}, {{"axis", Index{axis_of("take", x, axis)}}});
}
Value take_along(Value x, Value index, Index axis) {
  return append(kTakeAlong, {x, index}, {{"axis", Index{axis_of("take_along", x, axis)}}});
}
Value scatter_add(Value index, Value update, Index axis, const Shape& shape) {
  const int at = axis_of("scatter_add", update, axis, shape.rank());
  return append(kScatterAdd, {index, update}, {{"axis", Index{at}}, {"shape", shape.extents()}});
}
Value scatter_add_along(Value index, Value update, Index axis, const Shape& shape) {
  const int at = axis_of("scatter_add_along", update, axis, shape.rank());
  return append(kScatterAddAlong, {index, update}, {{"axis", Index{at}}, {"shape", shape.extents()}});
}

Value update_slice(Value x, Value value, Value start) {
  const Value updated = append(kUpdateSlice, {x, value, start}, {});  // judges them in any case
  if (x.shape() == value.shape()) return value;
  return value.shape().size() == 0 ? x : updated;
}
Value dynamic_slice(Value x, Value start, const Shape& shape) {
  const Value block = append(kDynamicSlice, {x, start}, {{"shape", shape.extents()}});
  return x.shape() == shape ? x : block;
}

namespace {
Shape batch_of(const Shape& shape) { return Shape(std::vector<Index>(shape.begin(), shape.end() - 2)); }
Value with_batch(Value x, const Shape& batch) {
  std::vector<Index> shape = batch.extents();
  shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
  return broadcast_to(x, Shape(shape));
}
}  // namespace

Value matmul(Value a, Value b, std::optional<DType> dtype) {
  if (a.shape().rank() == 0 || b.shape().rank() == 0)
    fail(a, "matmul: wants vectors or matrices, not scalars");
  const bool vector_a = a.shape().rank() == 1;
  const bool vector_b = b.shape().rank() == 1;
  if (vector_a) a = unsqueeze(a, 0);
  if (vector_b) b = unsqueeze(b, 1);
  const DType operand_dtype = arithmetic_type(promote(a.dtype(), b.dtype()));
  if (!(is_f8(a.dtype()) && is_f8(b.dtype()))) {
    a = cast(a, operand_dtype);
    b = cast(b, operand_dtype);
  }
  const Index inner_a = a.shape()[a.shape().rank() - 1];
  const Index inner_b = b.shape()[b.shape().rank() - 2];
  const auto batch = broadcast(batch_of(a.shape()), batch_of(b.shape()));
  if (inner_a != inner_b || !batch)
    fail(a, fmt::format("matmul: {} dims differ, {} x {}", inner_a != inner_b ? "inner" : "batch",
                        to_string(a.shape()), to_string(b.shape())));
  ir::Attrs attrs;
  if (dtype) attrs.set("dtype", std::string(name(*dtype)));
  Value product = append(kMatmul, {with_batch(a, *batch), with_batch(b, *batch)}, attrs);
  if (vector_b) product = squeeze(product, -1);
  if (vector_a) product = squeeze(product, vector_b ? -1 : -2);
  return product;
}

}  // namespace tilewright::ops
