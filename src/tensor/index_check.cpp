// The search on the host, the same as a program, and the message.
#include "tensor/index_check.h"

#include "ops/functions.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

namespace {

[[noreturn]] void out_of_range(const PendingCheck& check, Index at, Index value) {
  std::string place;
  const Strides strides = row_major_strides(check.shape);
  for (int axis = 0; axis < check.shape.rank(); ++axis)
    place += fmt::format("{}{}", axis == 0 ? "" : ", ", at / strides[axis] % check.shape[axis]);
  if (check.axis >= 0)
    place = fmt::format(" of axis {}", check.axis);
  else if (check.shape.rank() > 0)
    place = fmt::format(" at [{}] of {}", place, to_string(check.shape));
  if (value >= 0 && value < check.extent)
    throw Error(fmt::format("{}: {} {}{} is less than the one before it (at {})", check.op, check.what, value,
                            place, check.location));
  throw Error(fmt::format("{}: {} {}{} is out of range: it must be in [0, {}){} (at {})", check.op,
                          check.what, value, place, check.extent,
                          value < 0 ? "; negative ones do not count from the end" : "", check.location));
}

PendingCheck pending(const IndexUse& use, const Shape& shape, const Location& where) {
  return {use.op, use.what, shape, use.extent, use.ascending, use.axis, location_text(where)};
}

// All of them as one number, whose sign says whether any is out of range: the loop has no branch.
template <class T>
bool all_in_range(const T* index, Index count, const IndexUse& use) {
  std::uint64_t outside = 0;
  for (Index i = 0; i < count; ++i) {
    const auto v = static_cast<std::uint64_t>(static_cast<std::int64_t>(index[i]));
    outside |= v | (static_cast<std::uint64_t>(use.extent) - 1 - v);
  }
  return (outside >> 63) == 0 && (!use.ascending || std::is_sorted(index, index + count));
}

// f(pointer to the first index); their type decides which.
template <class F>
auto with_indices(const Tensor& index, const F& f) {
  const void* memory = index.impl()->buffer->data();
  switch (index.dtype()) {
    case DType::i32:
      return f(static_cast<const std::int32_t*>(memory));
    case DType::i8:
      return f(static_cast<const std::int8_t*>(memory));
    case DType::u8:
      return f(static_cast<const std::uint8_t*>(memory));
    default:
      return f(static_cast<const std::int64_t*>(memory));
  }
}

bool in_range_on_host(const IndexUse& use, const Tensor& index) {
  return with_indices(index,
                      [&](const auto* first) { return all_in_range(first, shape_of(index).size(), use); });
}

void search_on_host(const IndexUse& use, const Tensor& index, const Location& where) {
  if (in_range_on_host(use, index)) return;
  with_indices(index, [&](const auto* first) {
    for (Index i = 0; i < shape_of(index).size(); ++i) {
      const auto v = static_cast<Index>(+first[i]);
      if (v < 0 || v >= use.extent || (use.ascending && i > 0 && v < static_cast<Index>(+first[i - 1])))
        out_of_range(pending(use, shape_of(index), where), i, v);
    }
  });
}

// The flat place of the first index out of range, and that index; the number of indices where there is none.
std::vector<ir::Value> write_search(ir::Value index, const IndexUse& use) {
  const Index count = index.shape().size();
  const ir::Value flat = ops::reshape(ops::cast(index, DType::i64), Shape{count});
  const ir::Value at = ops::iota(*flat.graph, Shape{count}, 0);
  ir::Value outside = ops::bit_or(ops::lt(flat, 0), ops::ge(flat, use.extent));
  if (use.ascending) {
    const ir::Value before = ops::slice_axis(ops::pad_axis(flat, 0, 1, 0, 0), 0, {.stop = count});
    outside = ops::bit_or(outside, ops::lt(flat, before));
  }
  const ir::Value first = ops::min(ops::where(outside, at, count), {}, ops::Keep::no);
  return {first, ops::sum(ops::where(ops::eq(at, first), flat, 0), {}, ops::Keep::no)};
}

// Whether a check is cheap enough to be made unasked: a fiftieth of the operation's time (both are bound by
// memory, which the check reads by one thread), or about 30 ns, where the least call takes 1.7 µs
// (tests/soak/index_check_bench.cpp).
bool is_cheap(const IndexUse& use, const Tensor& index) {
  constexpr Index kFewIndices = 32;
  constexpr double kShare = 0.02;
  const auto bytes = static_cast<double>(size_bytes(index.dtype()));
  return shape_of(index).size() <= kFewIndices || bytes <= kShare * use.row_bytes;
}

bool is_compiled(const Trace* trace) {
  for (; trace; trace = trace->enclosing.get())
    if (trace->of == Trace::Of::compile) return true;
  return false;
}

}  // namespace

void check_index(const IndexUse& use, const Tensor& index, std::initializer_list<const Tensor*> operands,
                 const Location& where) {
  std::vector<Tensor> given;
  for (const Tensor* t : operands) {
    if (!t->defined()) return;
    given.push_back(*t);
  }
  check_index(use, index, given, where);
}

void check_index(const IndexUse& use, const Tensor& index, const std::vector<Tensor>& operands,
                 const Location& where) {
  const std::shared_ptr<ContextState> context = index.impl()->context.lock();
  // Other mistakes are the operation's own to find.
  if (!context || !is_integer(index.dtype()) || shape_of(index).size() == 0) return;
  const std::optional<bool> wanted = context->options.check;
  if (wanted == false) return;
  const std::lock_guard lock(context->mutex);
  bool recorded = false;
  for (const Tensor& t : operands) {
    if (!t.impl()->donated.empty()) return;
    recorded |= t.impl()->trace != nullptr;
  }
  // An index in range, of which nobody asked for checks, needs no look at what is being recorded.
  const auto on_host = [](const Tensor& t) { return t.impl()->buffer && t.impl()->device->is_host(); };
  if (!wanted && on_host(index) && (!is_cheap(use, index) || in_range_on_host(use, index))) return;
  bool compiled = false;
  if (recorded || context->recording()) {
    compiled =
        is_compiled(in_function(use.op, where, [&] { return recording_trace(*context, operands); }).get());
  }
  if (!compiled) {
    // The tensor that an index stands for, in functions that are recorded for one call.
    if (const Tensor* t = concrete(index); t && t->impl()->device->is_host()) {
      if (wanted || is_cheap(use, index)) search_on_host(use, *t, where);
      return;
    }
  }
  if (!wanted) return;
  std::vector<Tensor> found =
      apply(use.op, {index}, [&](ir::Graph&, const auto& in) { return write_search(in[0], use); }, where);
  settle({pending(use, shape_of(index), where)}, found);
}

void settle(const std::vector<PendingCheck>& checks, std::vector<Tensor>& results) {
  if (checks.empty()) return;
  const std::size_t first = results.size() - 2 * checks.size();
  const std::vector<Tensor> found(results.begin() + static_cast<std::ptrdiff_t>(first), results.end());
  results.resize(first);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Tensor &at = found[2 * i], &value = found[2 * i + 1];
    if (const std::shared_ptr<Trace>& trace = at.impl()->trace; trace && !at.impl()->buffer) {
      trace->checks.push_back(checks[i]);
      trace->checked.push_back(at.impl()->node);
      trace->checked.push_back(value.impl()->node);
      continue;
    }
    const Index place = at.to_vector<std::int64_t>()[0];
    if (place < checks[i].shape.size()) out_of_range(checks[i], place, value.to_vector<std::int64_t>()[0]);
  }
}

}  // namespace tilewright::detail
