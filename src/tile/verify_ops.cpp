// The typing rules of each op, as the verifier checks them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tile/rules.h"
#include "tile/verify_parts.h"

namespace tilewright::tile {

namespace {

// An op and its types within reach of the rules.
struct Subject {
  const Kernel& kernel;
  const Op& op;
  const TileType& operand(std::size_t i) const { return kernel.type(op.operands[i]); }
  const TileType& result() const { return kernel.type(op.results[0]); }
  std::string operand_types() const {
    std::vector<std::string> texts;
    texts.reserve(op.operands.size());
    for (ValueId id : op.operands) texts.push_back(to_string(kernel.type(id)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

bool is_index_scalar(const TileType& type) { return type == TileType{DType::i64, {}}; }

bool is_effect(OpKind kind) {
  return kind == OpKind::store || kind == OpKind::scatter || kind == OpKind::atomic_add ||
         kind == OpKind::yield;
}

// Fields that the kind does not use keep their defaults: two equal meanings are equal ops.
std::string check_fields(const Subject& s) {
  const Op plain;
  const Op& op = s.op;
  const FieldUse use = field_use(op.kind);
  const bool stray = (!use.prim && op.prim != plain.prim) || (!use.monoid && op.monoid != plain.monoid) ||
                     (!use.param && op.param != plain.param) || (!use.axis && op.axis != plain.axis) ||
                     (!use.order && op.order != plain.order) || (!use.tile_dims && !op.tile_dims.empty()) ||
                     (!use.bounded && op.bounded) || (!use.masked && op.masked) ||
                     (!uses_number(op) && op.number != plain.number);
  const bool rounds =
      op.rounded && (op.results.size() != 1 || !is_product(op, s.kernel.type(op.results[0]).dtype));
  if (rounds) return "only products of floats are rounded";
  if (stray) return "a field is set that the op does not use";
  if (static_cast<int>(op.prim) >= kPrimCount) return "no such primitive";
  if (op.blocks.size() != static_cast<std::size_t>(use.blocks))
    return fmt::format("{} blocks, wants {}", op.blocks.size(), use.blocks);
  const bool any_results = op.kind == OpKind::loop || op.kind == OpKind::branch;
  const std::size_t results = is_effect(op.kind) ? 0 : 1;
  if (!any_results && op.results.size() != results)
    return fmt::format("{} results, wants {}", op.results.size(), results);
  return "";
}

std::string check_count(const Subject& s, std::size_t count) {
  if (s.op.operands.size() == count) return "";
  return fmt::format("{} operands, wants {}", s.op.operands.size(), count);
}

std::string want_result(const Subject& s, const TileType& type) {
  if (s.result() == type) return "";
  return fmt::format("the result is {}, should be {}", to_string(s.result()), to_string(type));
}

std::string check_source(const Subject& s) {
  const Op& op = s.op;
  if (std::string problem = check_count(s, 0); !problem.empty()) return problem;
  switch (op.kind) {
    case OpKind::constant:
      if (!is_canonical(op.number, s.result().dtype))
        return fmt::format("the literal is not an element of {}", name(s.result().dtype));
      return "";
    case OpKind::scalar_param:
      if (op.param < 0 || op.param >= static_cast<int>(s.kernel.scalars.size()))
        return fmt::format("scalar parameter {} does not exist", op.param);
      return want_result(s, {s.kernel.scalars[static_cast<std::size_t>(op.param)].dtype, {}});
    case OpKind::program_id:
      if (op.param < 0 || op.param >= static_cast<int>(s.kernel.grid.size()))
        return fmt::format("the grid has {} axes", s.kernel.grid.size());
      return want_result(s, {DType::i64, {}});
    default:  // arange
      if (s.result().rank() != 1 || s.result().dtype != DType::i64)
        return fmt::format("the result is an i64 tile of rank 1, not {}", to_string(s.result()));
      return "";
  }
}

std::string check_broadcast(const Subject& s) {
  const TileType &from = s.operand(0), &to = s.result();
  bool fits = from.dtype == to.dtype && (from.rank() == 0 || from.rank() == to.rank());
  for (std::size_t i = 0; fits && i < from.shape.size(); ++i)
    fits = from.shape[i] == to.shape[i] || from.shape[i] == 1;
  return fits ? "" : fmt::format("{} does not stretch to {}", to_string(from), to_string(to));
}

std::string check_shape_op(const Subject& s) {
  if (std::string problem = check_count(s, 1); !problem.empty()) return problem;
  const TileType &from = s.operand(0), &to = s.result();
  switch (s.op.kind) {
    case OpKind::broadcast:
      return check_broadcast(s);
    case OpKind::reshape:
      if (from.dtype == to.dtype && from.size() == to.size()) return "";
      return fmt::format("{} has another type or size than {}", to_string(from), to_string(to));
    case OpKind::transpose:
      if (from.rank() != 2) return fmt::format("wants a tile of rank 2, got {}", to_string(from));
      return want_result(s, {from.dtype, {from.shape[1], from.shape[0]}});
    default:  // cast
      return want_result(s, {to.dtype, from.shape});
  }
}

std::string check_apply(const Subject& s) {
  const PrimInfo& row = info(s.op.prim);
  if (std::string problem = check_count(s, static_cast<std::size_t>(row.arity)); !problem.empty())
    return problem;
  const bool select = s.op.prim == Prim::select;
  for (std::size_t i = 0; i < s.op.operands.size(); ++i) {
    if (s.operand(i).shape != s.operand(0).shape)
      return fmt::format("operand shapes differ: {}", s.operand_types());
    if (select && i == 0) {
      if (!is_bool(s.operand(0).dtype)) return fmt::format("the condition is {}", to_string(s.operand(0)));
    } else if (s.operand(i).dtype != s.operand(select ? 1 : 0).dtype) {
      return fmt::format("operand types differ: {}", s.operand_types());
    }
  }
  const DType dtype = s.operand(select ? 1 : 0).dtype;
  if (!accepts(s.op.prim, dtype))
    return fmt::format("not defined on {}{}", name(dtype),
                       is_narrow_float(dtype) ? "; cast to f32 first" : "");
  return want_result(s, {row.to_bool ? DType::boolean : dtype, s.operand(0).shape});
}

// --- memory

// Starts or indices at operands [first, first + rank).
std::string check_view(const Subject& s, std::size_t first, std::size_t extra) {
  const Op& op = s.op;
  if (op.param < 0 || op.param >= static_cast<int>(s.kernel.views.size()))
    return fmt::format("view {} does not exist", op.param);
  const ViewParam& view = s.kernel.views[static_cast<std::size_t>(op.param)];
  const std::size_t want = first + static_cast<std::size_t>(view.rank()) + extra;
  if (op.operands.size() != want)
    return fmt::format("{} operands for a view of rank {}, wants {}", op.operands.size(), view.rank(), want);
  const TileType& value = first == 0 ? s.result() : s.operand(0);
  if (value.dtype != view.dtype)
    return fmt::format("the view holds {}, the value is {}", name(view.dtype), to_string(value));
  return "";
}

std::string check_block(const Subject& s) {
  const Op& op = s.op;
  const std::size_t first = op.kind == OpKind::store ? 1 : 0;
  if (std::string problem = check_view(s, first, 0); !problem.empty()) return problem;
  const ViewParam& view = s.kernel.views[static_cast<std::size_t>(op.param)];
  for (std::size_t i = first; i < op.operands.size(); ++i)
    if (!is_index_scalar(s.operand(i)))
      return fmt::format("a start is an i64 scalar, not {}", to_string(s.operand(i)));
  const TileType& value = first == 0 ? s.result() : s.operand(0);
  if (static_cast<int>(op.tile_dims.size()) != value.rank())
    return fmt::format("{} dims for a tile of rank {}", op.tile_dims.size(), value.rank());
  for (std::size_t i = 0; i < op.tile_dims.size(); ++i) {
    const int dim = op.tile_dims[i];
    if (dim < 0 || dim >= view.rank()) return fmt::format("dim {} of a view of rank {}", dim, view.rank());
    if (std::count(op.tile_dims.begin(), op.tile_dims.end(), dim) > 1)
      return fmt::format("two axes of the tile walk dim {}", dim);
  }
  if (op.kind == OpKind::load && op.bounded && !is_canonical(op.number, view.dtype))
    return fmt::format("the fill is not an element of {}", name(view.dtype));
  return "";
}

std::string check_indexed(const Subject& s) {
  const Op& op = s.op;
  const std::size_t first = op.kind == OpKind::gather ? 0 : 1;
  if (std::string problem = check_view(s, first, op.masked ? 1 : 0); !problem.empty()) return problem;
  const ViewParam& view = s.kernel.views[static_cast<std::size_t>(op.param)];
  const std::vector<Index>& shape = first == 0 ? s.result().shape : s.operand(0).shape;
  for (std::size_t i = first; i < op.operands.size(); ++i) {
    const bool mask = op.masked && i + 1 == op.operands.size();
    const TileType want{mask ? DType::boolean : DType::i64, shape};
    if (s.operand(i) != want)
      return fmt::format("{} is {}, should be {}", mask ? "the mask" : "an index", to_string(s.operand(i)),
                         to_string(want));
  }
  if (op.kind == OpKind::atomic_add && !adds_atomically(view.dtype))
    return fmt::format("not defined on {}; accumulate in f32, f64, i32 or i64", name(view.dtype));
  if (uses_number(op) && !is_canonical(op.number, view.dtype))
    return fmt::format("the fill is not an element of {}", name(view.dtype));
  return "";
}

// --- along an axis, products, random numbers

std::string check_along_axis(const Subject& s) {
  if (std::string problem = check_count(s, 1); !problem.empty()) return problem;
  const Op& op = s.op;
  const TileType& from = s.operand(0);
  if (op.monoid > Monoid::argmin) return "no such monoid";
  if (op.axis < 0 || op.axis >= from.rank())
    return fmt::format("axis {} out of range for {}", op.axis, to_string(from));
  const bool reduce = op.kind == OpKind::reduce;
  if (!(reduce ? reduces(op.monoid, from.dtype) : scans(op.monoid, from.dtype)))
    return fmt::format("{} is not defined on {}", name(op.monoid), to_string(from));
  if (!reduce) return want_result(s, from);
  std::vector<Index> shape = from.shape;
  shape.erase(shape.begin() + op.axis);
  return want_result(s, {reduce_dtype(op.monoid, from.dtype), shape});
}

std::string check_argsort(const Subject& s) {
  if (std::string problem = check_count(s, 1); !problem.empty()) return problem;
  const TileType& from = s.operand(0);
  if (s.op.axis < 0 || s.op.axis >= from.rank())
    return fmt::format("axis {} out of range for {}", s.op.axis, to_string(from));
  if (!sorts(from.dtype)) return fmt::format("not defined on {}", to_string(from));
  return want_result(s, {DType::i32, from.shape});
}

std::string check_dot(const Subject& s) {
  if (std::string problem = check_count(s, 3); !problem.empty()) return problem;
  const TileType &a = s.operand(0), &b = s.operand(1), &acc = s.operand(2);
  const bool meet = a.rank() == 2 && b.rank() == 2 && acc.rank() == 2 && a.shape[1] == b.shape[0] &&
                    acc.shape[0] == a.shape[0] && acc.shape[1] == b.shape[1];
  if (!meet) return fmt::format("shapes do not meet: {}", s.operand_types());
  if (!dot_types_meet(a.dtype, b.dtype)) return fmt::format("operand types differ: {}", s.operand_types());
  const std::optional<DType> want = dot_accumulator(a.dtype);
  if (!want) return fmt::format("not defined on {}", name(a.dtype));
  if (acc.dtype != *want)
    return fmt::format("{} accumulates in {}, not {}", name(a.dtype), name(*want), to_string(acc));
  if (s.op.precision == DotPrecision::tf32 && a.dtype != DType::f32)
    return fmt::format("precision=tf32 is of f32 operands, not {}", name(a.dtype));
  if (s.op.precision == DotPrecision::two_level && !is_narrow_float(a.dtype))
    return fmt::format("precision=two_level is of narrow floats, not {}", name(a.dtype));
  return want_result(s, acc);
}

std::string check_random(const Subject& s) {
  if (std::string problem = check_count(s, 2); !problem.empty()) return problem;
  if (!is_index_scalar(s.operand(0)) || s.operand(1).dtype != DType::i64)
    return fmt::format("wants an i64 scalar seed and i64 counters, got {}", s.operand_types());
  return want_result(s, s.operand(1));
}

// --- control

std::string check_loop(const Subject& s) {
  const Op& op = s.op;
  if (op.operands.size() < 3) return fmt::format("{} operands, wants lower, upper, step", op.operands.size());
  for (std::size_t i = 0; i < 3; ++i)
    if (!is_index_scalar(s.operand(i)))
      return fmt::format("a bound is an i64 scalar, not {}", to_string(s.operand(i)));
  const std::vector<ValueId>& args = op.blocks[0].args;
  const std::size_t carried = op.operands.size() - 3;
  if (args.size() != carried + 1 || op.results.size() != carried)
    return fmt::format("{} initial values, {} arguments, {} results", carried, args.size(),
                       op.results.size());
  if (!is_index_scalar(s.kernel.type(args[0]))) return "the index of a loop is an i64 scalar";
  for (std::size_t i = 0; i < carried; ++i) {
    const TileType& initial = s.operand(i + 3);
    for (const TileType& other : {s.kernel.type(args[i + 1]), s.kernel.type(op.results[i])})
      if (other != initial)
        return fmt::format("carried value {} changes from {} to {}", i, to_string(initial), to_string(other));
  }
  return "";
}

std::string check_branch(const Subject& s) {
  if (std::string problem = check_count(s, 1); !problem.empty()) return problem;
  if (s.operand(0) != TileType{DType::boolean, {}})
    return fmt::format("the condition is a bool scalar, not {}", to_string(s.operand(0)));
  for (const Block& block : s.op.blocks)
    if (!block.args.empty()) return "the blocks of a branch have no arguments";
  return "";
}

}  // namespace

std::string check_op(const Kernel& kernel, const Op& op) {
  const Subject s{kernel, op};
  if (op.kind > OpKind::yield) return "no such op";
  if (std::string problem = check_fields(s); !problem.empty()) return problem;
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::scalar_param:
    case OpKind::program_id:
    case OpKind::arange:
      return check_source(s);
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::cast:
      return check_shape_op(s);
    case OpKind::apply:
      return check_apply(s);
    case OpKind::load:
    case OpKind::store:
      return check_block(s);
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::atomic_add:
      return check_indexed(s);
    case OpKind::reduce:
    case OpKind::scan:
      return check_along_axis(s);
    case OpKind::argsort:
      return check_argsort(s);
    case OpKind::dot:
      return check_dot(s);
    case OpKind::random:
      return check_random(s);
    case OpKind::loop:
      return check_loop(s);
    case OpKind::branch:
      return check_branch(s);
    case OpKind::yield:
      return "";
  }
  return "";
}

}  // namespace tilewright::tile
