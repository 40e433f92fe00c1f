// Builder: checks types where the user writes, then appends ops.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tile/builder_state.h"
#include "tile/rules.h"

namespace tilewright::tile {

namespace {

std::string types(const std::vector<Value>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Value& v : values) texts.push_back(to_string(v.type()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string short_location(const Location& where) {
  const std::string_view path = where.file_name();
  std::string text(path.substr(path.rfind('/') + 1));
  text += ':';
  return text += std::to_string(where.line());
}

}  // namespace

const ViewParam& Builder::param(const View& view, const Location& where) const& {
  check(view, "param", where);
  return state_->views[static_cast<std::size_t>(view.index_)];
}

Value Builder::fresh(const TileType& type) {
  state_->values.push_back({type, ""});
  return {state_, static_cast<ValueId>(state_->values.size()) - 1};
}

Value Builder::push(Op op, TileType type, const Location& where) {
  live(where);
  const auto id = static_cast<ValueId>(state_->values.size());
  state_->values.push_back({std::move(type), ""});
  op.results = {id};
  push_effect(std::move(op), where);
  return {state_, id};
}

void Builder::push_effect(Op op, const Location& where) {
  live(where);
  op.location = short_location(where);
  state_->open.back()->ops.push_back(std::move(op));
}

void Builder::take_name(const std::string& name, const Location& where) {
  if (!is_identifier(name)) fail(where, fmt::format("\"{}\" is not a name (letters, digits, _ and .)", name));
  if (!state_->names.insert(name).second) fail(where, fmt::format("the name {} is taken", name));
}

View Builder::view(const std::string& name, DType dtype, const std::vector<SizeArg>& extents,
                   ViewOptions options, const Location& where) {
  live(where);
  ViewParam p{.name = name, .dtype = dtype, .align_bytes = options.align_bytes};
  const std::string op = "view " + name;
  for (const SizeArg& e : extents)
    p.extents.push_back(size(e, {op.c_str(), "extent", static_cast<int>(&e - extents.data())}, where));
  if (options.strides.empty() && !extents.empty()) {
    Index step = 1;
    p.strides.resize(extents.size());
    for (std::size_t i = extents.size(); i-- > 0;) {
      p.strides[i] = {step, -1};
      if (i > 0 && !p.extents[i].is_constant())
        fail(where, fmt::format("view {}: extent {} is a parameter, so give the strides", name, i));
      if (__builtin_mul_overflow(step, p.extents[i].value, &step))
        fail(where, fmt::format("view {}: it reaches further than 2^48 elements", name));
    }
  } else {
    if (options.strides.size() != extents.size())
      fail(where,
           fmt::format("view {}: {} strides for {} extents", name, options.strides.size(), extents.size()));
    p.strides = std::move(options.strides);
  }
  take_name(name, where);
  state_->views.push_back(std::move(p));
  return {state_, static_cast<int>(state_->views.size()) - 1};
}

Value Builder::scalar(const std::string& name, DType dtype, const Location& where) {
  live(where);
  if (dtype != DType::i64 && dtype != DType::f32 && dtype != DType::f64)
    fail(where, fmt::format("scalar {}: type {} is not one of i64, f32, f64", name, tilewright::name(dtype)));
  take_name(name, where);
  state_->kernel.scalars.push_back({name, dtype});
  return push({.kind = OpKind::scalar_param, .param = static_cast<int>(state_->kernel.scalars.size()) - 1},
              {dtype, {}}, where);
}

Index Builder::constant(const std::string& name, Index value, const Location& where) {
  live(where).kernel.constants.push_back({name, value});
  return value;
}

Value Builder::extent(const View& view, int dim, const Location& where) {
  check(view, "extent", where);
  const ViewParam& p = param(view);
  if (dim < 0 || dim >= p.rank())
    fail(where, fmt::format("extent: view {} of rank {} has no dim {}", p.name, p.rank(), dim));
  const Dim d = p.extents[static_cast<std::size_t>(dim)];
  if (d.is_constant()) return literal_int(DType::i64, d.value, {}, where);
  return push({.kind = OpKind::scalar_param, .param = d.scalar}, {DType::i64, {}}, where);
}

// A literal as an element of `dtype`: what it would have to lose to become one is an error.
Number Builder::number(DType dtype, double value, const char* op, const Location& where) {
  if (is_float(dtype)) {
    if (const auto literal = float_literal(dtype, value)) return *literal;
    fail(where, fmt::format("{}: {} has no value {}", op, tilewright::name(dtype), value));
  }
  if (value != std::trunc(value))
    fail(where, fmt::format("{}: {} is not an integer, the type is {}", op, value, tilewright::name(dtype)));
  if (!holds(DType::i64, value))
    fail(where, fmt::format("{}: {} does not hold {}", op, tilewright::name(dtype), value));
  return whole_number(dtype, float_to_int(DType::i64, value), op, where);
}

Number Builder::whole_number(DType dtype, Index value, const char* op, const Location& where) {
  const Number n = int_literal(dtype, value);
  if (n.i != value) fail(where, fmt::format("{}: {} does not hold {}", op, tilewright::name(dtype), value));
  return n;
}

Value Builder::literal(DType dtype, double value, const std::vector<Index>& shape, const Location& where) {
  return push({.kind = OpKind::constant, .number = number(dtype, value, "literal", where)}, {dtype, shape},
              where);
}

Value Builder::literal_int(DType dtype, Index value, const std::vector<Index>& shape, const Location& where) {
  const Number n = is_float(dtype) ? number(dtype, static_cast<double>(value), "literal", where)
                                   : whole_number(dtype, value, "literal", where);
  return push({.kind = OpKind::constant, .number = n}, {dtype, shape}, where);
}

Value Builder::program_id(int axis, const Location& where) {
  return push({.kind = OpKind::program_id, .param = axis}, {DType::i64, {}}, where);
}

Value Builder::arange(Index n, const Location& where) {
  return push({.kind = OpKind::arange}, {DType::i64, {n}}, where);
}

// An index as users write it: the value, or the literal, which is a whole number.
Value Builder::index_value(const Operand& operand, const Use& use) {
  if (!operand.is_literal()) {
    check(operand.value, use, operand.where);
    return operand.value;
  }
  if (static_cast<double>(operand.number.i) != operand.number.f)
    fail(operand.where, fmt::format("{}: {} is {}, not an integer", use.op, role_of(use), operand.number.f));
  return literal_int(DType::i64, operand.number.i, {}, operand.where);
}

Value Builder::scalar_index(const Operand& operand, const Use& use) {
  Value v = index_value(operand, use);
  if (v.rank() != 0 || v.dtype() != DType::i64)
    fail(operand.where,
         fmt::format("{}: {} must be an i64 scalar, got {}", use.op, role_of(use), to_string(v.type())));
  return v;
}

Value Builder::load(const View& view, const std::vector<Operand>& starts, const LoadOptions& options,
                    const Location& where) {
  check(view, "load", where);
  const ViewParam& p = param(view);
  if (static_cast<int>(starts.size()) != p.rank())
    fail(where, fmt::format("load {}: {} starts for a view of rank {}", p.name, starts.size(), p.rank()));
  Op op{.kind = OpKind::load,
        .param = view.index_,
        .tile_dims = options.dims,
        .bounded = options.fill.has_value()};
  for (const Operand& s : starts)
    op.operands.push_back(scalar_index(s, {"load", "start", static_cast<int>(&s - starts.data())}).id());
  if (op.tile_dims.empty())
    op.tile_dims = default_tile_dims(p.rank(), static_cast<int>(options.shape.size()));
  if (op.tile_dims.size() != options.shape.size())
    fail(where, fmt::format("load {}: {} dims for a tile of rank {}", p.name, op.tile_dims.size(),
                            options.shape.size()));
  if (options.fill) op.number = number(p.dtype, *options.fill, "load's fill", where);
  return push(std::move(op), {p.dtype, options.shape}, where);
}

void Builder::store(const View& view, const std::vector<Operand>& starts, const Value& value,
                    const StoreOptions& options, const Location& where) {
  check(view, "store", where);
  check(value, {"store", "the value"}, where);
  const ViewParam& p = param(view);
  if (static_cast<int>(starts.size()) != p.rank())
    fail(where, fmt::format("store {}: {} starts for a view of rank {}", p.name, starts.size(), p.rank()));
  if (value.dtype() != p.dtype)
    fail(where, fmt::format("store {}: the view holds {}, the value is {}; cast it", p.name,
                            tilewright::name(p.dtype), to_string(value.type())));
  Op op{.kind = OpKind::store,
        .operands = {value.id()},
        .param = view.index_,
        .tile_dims = options.dims,
        .bounded = options.bounded};
  for (const Operand& s : starts)
    op.operands.push_back(scalar_index(s, {"store", "start", static_cast<int>(&s - starts.data())}).id());
  if (op.tile_dims.empty()) op.tile_dims = default_tile_dims(p.rank(), value.rank());
  push_effect(std::move(op), where);
}

std::vector<ValueId> Builder::index_operands(const View& view, const std::vector<Operand>& indices,
                                             const char* op, const Location& where,
                                             std::vector<Index>* shape) {
  const ViewParam& p = param(view);
  if (static_cast<int>(indices.size()) != p.rank())
    fail(where, fmt::format("{} {}: {} indices for a view of rank {}", op, p.name, indices.size(), p.rank()));
  Shape joined(*shape);
  std::vector<Value> values;
  for (const Operand& i : indices) {
    Value v = index_value(i, {op, "index", static_cast<int>(&i - indices.data())});
    if (v.dtype() != DType::i64)
      fail(where, fmt::format("{} {}: indices are i64, got {}", op, p.name, to_string(v.type())));
    auto next = tilewright::broadcast(joined, Shape(v.type().shape));
    if (!next) fail(where, fmt::format("{} {}: index shapes do not meet: {}", op, p.name, types({v})));
    joined = *next;
    values.push_back(v);
  }
  *shape = joined.extents();
  std::vector<ValueId> ids;
  ids.reserve(values.size());
  for (const Value& v : values) ids.push_back(broadcast(v, *shape, where).id());
  return ids;
}

Value Builder::gather(const View& view, const std::vector<Operand>& indices, const GatherOptions& options,
                      const Location& where) {
  check(view, "gather", where);
  std::vector<Index> shape;
  if (options.mask) {
    check(*options.mask, {"gather", "the mask"}, where);
    shape = options.mask->type().shape;
  }
  Op op{.kind = OpKind::gather, .param = view.index_, .masked = options.mask.has_value()};
  op.operands = index_operands(view, indices, "gather", where, &shape);
  const DType dtype = param(view).dtype;
  if (options.mask) {
    op.operands.push_back(broadcast(*options.mask, shape, where).id());
    op.number = number(dtype, options.fill, "gather's fill", where);
  }
  return push(std::move(op), {dtype, shape}, where);
}

void Builder::scatter(const View& view, const std::vector<Operand>& indices, const Value& value,
                      const std::optional<Value>& mask, const Location& where) {
  write_at_indices(OpKind::scatter, view, indices, value, mask, where);
}

void Builder::atomic_add(const View& view, const std::vector<Operand>& indices, const Value& value,
                         const std::optional<Value>& mask, const Location& where) {
  write_at_indices(OpKind::atomic_add, view, indices, value, mask, where);
}

void Builder::write_at_indices(OpKind kind, const View& view, const std::vector<Operand>& indices,
                               const Value& value, const std::optional<Value>& mask, const Location& where) {
  const char* name = kind == OpKind::scatter ? "scatter" : "atomic_add";
  check(view, name, where);
  check(value, {name, "the value"}, where);
  if (mask) check(*mask, {name, "the mask"}, where);
  std::vector<Index> shape = value.type().shape;
  Op op{.kind = kind, .param = view.index_, .masked = mask.has_value()};
  op.operands = index_operands(view, indices, name, where, &shape);
  op.operands.insert(op.operands.begin(), broadcast(value, shape, where).id());
  if (mask) op.operands.push_back(broadcast(*mask, shape, where).id());
  push_effect(std::move(op), where);
}

Value Builder::random(const Value& seed, const Value& counter, const Location& where) {
  check(seed, {"random", "the seed"}, where);
  check(counter, {"random", "the counter"}, where);
  if (seed.rank() != 0 || seed.dtype() != DType::i64 || counter.dtype() != DType::i64)
    fail(where,
         fmt::format("random: wants an i64 scalar seed and i64 counters, got {}", types({seed, counter})));
  return push({.kind = OpKind::random, .operands = {seed.id(), counter.id()}}, counter.type(), where);
}

Value Builder::broadcast(Value v, std::vector<Index> shape, const Location& where) {
  check(v, {"broadcast", "the operand"}, where);
  if (v.type().shape == shape) return v;
  auto joined = tilewright::broadcast(Shape(v.type().shape), Shape(shape));
  if (!joined || joined->extents() != shape)
    fail(where,
         fmt::format("broadcast: {} does not stretch to [{}]", to_string(v.type()), fmt::join(shape, ",")));
  if (v.rank() != 0 && v.rank() < static_cast<int>(shape.size())) {
    std::vector<Index> padded(shape.size() - static_cast<std::size_t>(v.rank()), 1);
    padded.insert(padded.end(), v.type().shape.begin(), v.type().shape.end());
    v = reshape(v, padded, where);
    if (v.type().shape == shape) return v;
  }
  return push({.kind = OpKind::broadcast, .operands = {v.id()}}, {v.dtype(), shape}, where);
}

Value Builder::reshape(const Value& v, std::vector<Index> shape, const Location& where) {
  check(v, {"reshape", "the operand"}, where);
  if (v.type().shape == shape) return v;
  if (TileType{v.dtype(), shape}.size() != v.type().size())
    fail(where,
         fmt::format("reshape: {} has another size than [{}]", to_string(v.type()), fmt::join(shape, ",")));
  return push({.kind = OpKind::reshape, .operands = {v.id()}}, {v.dtype(), shape}, where);
}

Value Builder::transpose(const Value& v, const Location& where) {
  check(v, {"transpose", "the operand"}, where);
  if (v.rank() != 2)
    fail(where, fmt::format("transpose: wants a tile of rank 2, got {}", to_string(v.type())));
  return push({.kind = OpKind::transpose, .operands = {v.id()}},
              {v.dtype(), {v.type().shape[1], v.type().shape[0]}}, where);
}

Value Builder::expand(const Value& v, int axis, const Location& where) {
  check(v, {"expand", "the operand"}, where);
  std::vector<Index> shape = v.type().shape;
  if (axis < 0 || axis > v.rank() || v.rank() >= kMaxTileRank)
    fail(where, fmt::format("expand: axis {} does not fit {}", axis, to_string(v.type())));
  shape.insert(shape.begin() + axis, 1);
  return reshape(v, shape, where);
}

Value Builder::cast(const Value& v, DType dtype, const Location& where) {
  check(v, {"cast", "the operand"}, where);
  if (v.dtype() == dtype) return v;
  return push({.kind = OpKind::cast, .operands = {v.id()}}, {dtype, v.type().shape}, where);
}

std::vector<Value> Builder::materialize(const std::vector<Operand>& operands, std::optional<DType> dtype,
                                        const char* op, const Location& where) {
  Shape shape;
  for (const Operand& o : operands) {
    if (o.is_literal()) continue;
    if (!dtype) dtype = o.value.dtype();
    if (o.value.type().shape == shape.extents()) continue;
    auto next = tilewright::broadcast(shape, Shape(o.value.type().shape));
    if (!next) {
      std::vector<Value> values;
      for (const Operand& each : operands)
        if (!each.is_literal()) values.push_back(each.value);
      fail(where, fmt::format("{}: shapes do not broadcast: {}", op, types(values)));
    }
    shape = *next;
  }
  if (!dtype) fail(where, fmt::format("{}: at least one operand must be a value", op));
  std::vector<Value> values;
  for (const Operand& o : operands) {
    if (o.is_literal()) {
      // Whole numbers beyond 2^53 are exact in `i` only.
      const bool whole = static_cast<double>(o.number.i) == o.number.f && !is_float(*dtype);
      const Number n =
          whole ? whole_number(*dtype, o.number.i, op, where) : number(*dtype, o.number.f, op, where);
      values.push_back(push({.kind = OpKind::constant, .number = n}, {*dtype, shape.extents()}, where));
    } else {
      values.push_back(broadcast(o.value, shape.extents(), where));
    }
  }
  return values;
}

Value Builder::apply(Prim prim, const std::vector<Operand>& operands, const Location& where) {
  const PrimInfo& row = info(prim);
  const std::string op(row.name);
  for (const Operand& o : operands)
    if (!o.is_literal())
      check(o.value, {op.c_str(), "operand", static_cast<int>(&o - operands.data())}, where);
  if (static_cast<int>(operands.size()) != row.arity)
    fail(where, fmt::format("{}: takes {} operands, got {}", op, row.arity, operands.size()));
  std::vector<Value> values;
  if (prim == Prim::select) {
    if (operands[0].is_literal() || !is_bool(operands[0].value.dtype()))
      fail(where, "select: the condition must be a bool value");
    std::optional<DType> dtype;
    for (int i : {1, 2})
      if (!operands[static_cast<std::size_t>(i)].is_literal() && !dtype)
        dtype = operands[static_cast<std::size_t>(i)].value.dtype();
    if (!dtype) dtype = DType::f32;
    values = materialize(operands, dtype, "select", where);
  } else {
    values = materialize(operands, std::nullopt, op.c_str(), where);
  }
  const std::size_t first = prim == Prim::select ? 1 : 0;
  const DType dtype = values[first].dtype();
  for (std::size_t i = first; i < values.size(); ++i)
    if (values[i].dtype() != dtype)
      fail(where, fmt::format("{}: operand types differ: {}", op, types(values)));
  if (!accepts(prim, dtype))
    fail(where, fmt::format("{}: not defined on {}{}", op, tilewright::name(dtype),
                            is_narrow_float(dtype) ? "; cast to f32 first" : ""));
  Op node{.kind = OpKind::apply, .prim = prim};
  for (const Value& v : values) node.operands.push_back(v.id());
  return push(std::move(node), {row.to_bool ? DType::boolean : dtype, values[0].type().shape}, where);
}

void Builder::round(const Value& product, const Location& where) {
  check(product, {"round", "the product"}, where);
  for (auto block = state_->open.rbegin(); block != state_->open.rend(); ++block)
    for (auto op = (*block)->ops.rbegin(); op != (*block)->ops.rend(); ++op)
      if (op->results == std::vector<ValueId>{product.id()}) {
        op->rounded = is_product(*op, product.dtype());
        return;
      }
}

Value Builder::reduce(Monoid monoid, const Value& v, int axis, const Location& where) {
  check(v, {"reduce", "the operand"}, where);
  if (axis < 0 || axis >= v.rank())
    fail(where, fmt::format("reduce: axis {} out of range for {}", axis, to_string(v.type())));
  if (!reduces(monoid, v.dtype()))
    fail(where, fmt::format("reduce {}: not defined on {}", tile::name(monoid), to_string(v.type())));
  std::vector<Index> shape = v.type().shape;
  shape.erase(shape.begin() + axis);
  return push({.kind = OpKind::reduce, .monoid = monoid, .operands = {v.id()}, .axis = axis},
              {reduce_dtype(monoid, v.dtype()), shape}, where);
}

Value Builder::scan(Monoid monoid, const Value& v, int axis, const Location& where) {
  check(v, {"scan", "the operand"}, where);
  if (axis < 0 || axis >= v.rank())
    fail(where, fmt::format("scan: axis {} out of range for {}", axis, to_string(v.type())));
  if (!scans(monoid, v.dtype()))
    fail(where, fmt::format("scan {}: not defined on {}", tile::name(monoid), to_string(v.type())));
  return push({.kind = OpKind::scan, .monoid = monoid, .operands = {v.id()}, .axis = axis}, v.type(), where);
}

Value Builder::argsort(const Value& v, int axis, Order order, const Location& where) {
  check(v, {"argsort", "the operand"}, where);
  if (axis < 0 || axis >= v.rank())
    fail(where, fmt::format("argsort: axis {} out of range for {}", axis, to_string(v.type())));
  if (!sorts(v.dtype()))
    fail(where, fmt::format("argsort: not defined on {}{}", to_string(v.type()),
                            is_narrow_float(v.dtype()) ? "; cast to f32 first" : ""));
  return push({.kind = OpKind::argsort, .operands = {v.id()}, .axis = axis, .order = order},
              {DType::i32, v.type().shape}, where);
}

Value Builder::dot(const Value& a, const Value& b, const Value& acc, const Location& where) {
  return dot(a, b, acc, DotPrecision::exact, where);
}

Value Builder::dot(const Value& a, const Value& b, const Value& acc, DotPrecision precision,
                   const Location& where) {
  check(a, {"dot", "operand", 0}, where);
  check(b, {"dot", "operand", 1}, where);
  check(acc, {"dot", "the accumulator"}, where);
  if (a.rank() != 2 || b.rank() != 2 || acc.rank() != 2 || a.type().shape[1] != b.type().shape[0] ||
      acc.type().shape[0] != a.type().shape[0] || acc.type().shape[1] != b.type().shape[1])
    fail(where, fmt::format("dot: shapes do not meet: {}", types({a, b, acc})));
  if (!dot_types_meet(a.dtype(), b.dtype()))
    fail(where, fmt::format("dot: operand types differ: {}", types({a, b})));
  const std::optional<DType> want = dot_accumulator(a.dtype());
  if (!want) fail(where, fmt::format("dot: not defined on {}", types({a})));
  if (acc.dtype() != *want)
    fail(where, fmt::format("dot: {} accumulates in {}, got {}", tilewright::name(a.dtype()),
                            tilewright::name(*want), types({acc})));
  if (precision == DotPrecision::tf32 && a.dtype() != DType::f32)
    fail(where, fmt::format("dot: precision tf32 is of f32 operands, got {}", types({a, b})));
  if (precision == DotPrecision::two_level && !is_narrow_float(a.dtype()))
    fail(where, fmt::format("dot: precision two_level is of narrow floats, got {}", types({a, b})));
  return push({.kind = OpKind::dot, .operands = {a.id(), b.id(), acc.id()}, .precision = precision},
              acc.type(), where);
}

void Builder::name_value(const Value& v, const std::string& hint, const Location& where) {
  check(v, {"name_value", "the value"}, where);
  std::string unique = hint;
  for (int n = 1; !state_->names.insert(unique).second; ++n) unique = fmt::format("{}.{}", hint, n);
  state_->values[static_cast<std::size_t>(v.id())].name = unique;
}

}  // namespace tilewright::tile
