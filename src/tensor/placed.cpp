// Blocks at starts that are data: update_slice and dynamic_slice.
#include "ops/functions.h"
#include "tensor/index_check.h"

#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

namespace tilewright {

using detail::shape_of;

namespace {

using ir::Value;
using Values = std::vector<Value>;

// What a call is about, for its errors.
struct Call {
  const char* op;
  Shape block;  // that is read or written
  const Location& where;
};

std::optional<bool> wanted_checks(const Tensor& x) {
  const std::shared_ptr<detail::ContextState> context = x.impl()->context.lock();
  return context ? context->options.check : false;
}

// Throws Error where the starts are no integers, one for each axis, and for one that is looked at and
// outside.
void check_starts(const Call& call, const Tensor& x, const std::vector<Arg>& starts,
                  const std::vector<Tensor>& operands) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (starts.size() != rank)
    throw Error(fmt::format("{}: {} starts are given for the {} axes of {}", call.op, starts.size(), rank,
                            to_string(shape_of(x))),
                call.where);
  for (std::size_t i = 0; i < rank; ++i) {
    const Arg& start = starts[i];
    const bool integer = start.is_tensor
                             ? is_integer(start.tensor.dtype()) && shape_of(start.tensor).size() == 1
                             : !start.is_real;
    if (!integer)
      throw Error(fmt::format("{}: the start of axis {} is no single integer", call.op, i), call.where);
    if (call.block.rank() != x.rank()) continue;  // the row says so
    const Index room = shape_of(x)[static_cast<int>(i)] - call.block[static_cast<int>(i)];
    if (room < 0) continue;
    if (start.is_tensor)
      detail::check_index({.op = call.op, .what = "start", .extent = room + 1, .axis = static_cast<int>(i)},
                          start.tensor, operands, call.where);
    else if (wanted_checks(x) != false && (start.integer < 0 || start.integer > room))
      throw Error(fmt::format("{}: start {} of axis {} is outside [0, {}], where {} lies inside {}", call.op,
                              start.integer, i, room, to_string(call.block), to_string(shape_of(x))),
                  call.where);
  }
}

using Write = std::function<Value(const Values& operands, Value start)>;

// `write` on the values of the operands, of which the first is the whole tensor, and of the start.
Tensor with_starts(const Call& call, std::vector<Tensor> operands, const std::vector<Arg>& starts,
                   const Write& write) {
  detail::check_given(call.op, {"operand"}, operands, call.where);
  const std::size_t count = operands.size();
  for (const Arg& start : starts)
    if (start.is_tensor) operands.push_back(start.tensor);
  detail::check_operands(call.op, operands, call.where);
  check_starts(call, operands[0], starts, operands);
  return detail::apply(
             call.op, operands,
             [&](ir::Graph& graph, const Values& in) {
               Values parts;
               std::size_t next = count;
               for (const Arg& start : starts)
                 parts.push_back(start.is_tensor
                                     ? ops::reshape(ops::cast(in[next++], DType::i64), Shape{1})
                                     : ops::constant_int(graph, DType::i64, Shape{1}, start.integer));
               const Value start =
                   parts.empty() ? ops::constant_int(graph, DType::i64, Shape{0}, 0) : ops::concat(parts, 0);
               return Values{
                   write(Values(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count)), start)};
             },
             call.where)
      .at(0);
}

// The same of starts in one tensor: apart where each is looked at.
Tensor with_start(const Call& call, std::vector<Tensor> operands, const Tensor& start, const Write& write) {
  operands.push_back(start);
  detail::check_operands(call.op, operands, call.where);
  operands.pop_back();
  const Tensor& x = operands[0];
  const bool listed = start.rank() == 1 && shape_of(start).size() == x.rank();
  if (wanted_checks(x) == true && is_integer(start.dtype()) && (listed || start.rank() == 0)) {
    std::vector<Arg> parts;
    const Index count = shape_of(start).size();
    parts.reserve(static_cast<std::size_t>(count));
    for (Index i = 0; i < count; ++i)
      parts.emplace_back(listed ? select(start, 0, i, call.where) : start, call.where);
    return with_starts(call, std::move(operands), parts, write);
  }
  operands.push_back(start);
  return detail::apply(
             call.op, operands,
             [&](ir::Graph&, const Values& in) {
               const Value last = in.back();
               return Values{write(Values(in.begin(), in.end() - 1),
                                   last.shape().rank() == 0 ? ops::reshape(last, Shape{1}) : last)};
             },
             call.where)
      .at(0);
}

Tensor placed(const Call& call, std::vector<Tensor> operands, const Starts& start, const Write& write) {
  return start.whole ? with_start(call, std::move(operands), *start.whole, write)
                     : with_starts(call, std::move(operands), start.parts, write);
}

}  // namespace

Tensor update_slice(const Tensor& x, const Tensor& value, const Starts& start, const Location& where) {
  return placed({"update_slice", value.defined() ? shape_of(value) : Shape{}, where}, {x, value}, start,
                [](const Values& in, Value at) {
                  return ops::update_slice(in[0], ops::cast(in[1], in[0].dtype()), at);
                });
}
Tensor dynamic_slice(const Tensor& x, const Starts& start, const Shape& shape, const Location& where) {
  return placed({"dynamic_slice", shape, where}, {x}, start,
                [&](const Values& in, Value at) { return ops::dynamic_slice(in[0], at, shape); });
}

}  // namespace tilewright
