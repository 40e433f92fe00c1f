// Builder: checks types where the user writes, then appends ops.
#include <tilewright/tile/builder.h>
#include <tilewright/tile/verify.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <functional>
#include <iterator>
#include <set>

#include "tile/rules.h"

namespace tilewright::tile {

struct Builder::State {
  Kernel kernel;
  std::deque<ValueInfo> values;  // kernel.values while it grows: references to types stay valid
  std::vector<Block*> open;      // innermost last
  std::set<std::string> names;
};

namespace {

[[noreturn]] void fail(const Location& where, const std::string& message) { throw Error(message, where); }

std::string types(const std::vector<Value>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Value& v : values) texts.push_back(to_string(v.type()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string short_location(const Location& where) {
  std::string text = at(where);  // " (at file:line)"
  return text.substr(5, text.size() - 6);
}

}  // namespace

const TileType& Value::type() const { return builder_->type(id_); }

Builder::SizeArg::SizeArg(Value v) {
  for (const Block* block : v.builder().state_->open)
    for (const Op& op : block->ops)
      if (op.kind == OpKind::scalar_param && op.results[0] == v.id()) {
        dim = {0, op.param};
        return;
      }
  throw Error("size: only a scalar parameter or a number can be a size");
}

Builder::Builder(std::string name) : state_(std::make_unique<State>()) {
  state_->kernel.name = std::move(name);
  state_->open.push_back(&state_->kernel.body);
}
Builder::~Builder() = default;

const TileType& Builder::type(ValueId id) const { return state_->values[static_cast<std::size_t>(id)].type; }
const ViewParam& Builder::param(View view) const {
  return state_->kernel.views[static_cast<std::size_t>(view.index)];
}

Value Builder::push(Op op, TileType type, const Location& where) {
  const auto id = static_cast<ValueId>(state_->values.size());
  state_->values.push_back({std::move(type), ""});
  op.results = {id};
  push_effect(std::move(op), where);
  return Value(this, id);
}

void Builder::push_effect(Op op, const Location& where) {
  op.location = short_location(where);
  state_->open.back()->ops.push_back(std::move(op));
}

void Builder::take_name(const std::string& name, const Location& where) {
  if (!is_identifier(name)) fail(where, fmt::format("\"{}\" is not a name (letters, digits, _ and .)", name));
  if (!state_->names.insert(name).second) fail(where, fmt::format("the name {} is taken", name));
}

View Builder::view(const std::string& name, DType dtype, const std::vector<SizeArg>& extents,
                   ViewOptions options, const Location& where) {
  take_name(name, where);
  ViewParam p{.name = name, .dtype = dtype, .align_bytes = options.align_bytes};
  for (const SizeArg& e : extents) p.extents.push_back(e.dim);
  if (options.strides.empty() && !extents.empty()) {
    Index step = 1;
    p.strides.resize(extents.size());
    for (std::size_t i = extents.size(); i-- > 0;) {
      p.strides[i] = {step, -1};
      if (i > 0 && !p.extents[i].is_constant())
        fail(where, fmt::format("view {}: extent {} is a parameter, so give the strides", name, i));
      step *= p.extents[i].value;
    }
  } else {
    if (options.strides.size() != extents.size())
      fail(where,
           fmt::format("view {}: {} strides for {} extents", name, options.strides.size(), extents.size()));
    p.strides = std::move(options.strides);
  }
  state_->kernel.views.push_back(std::move(p));
  return View{static_cast<int>(state_->kernel.views.size()) - 1};
}

Value Builder::scalar(const std::string& name, DType dtype, const Location& where) {
  if (dtype != DType::i64 && dtype != DType::f32 && dtype != DType::f64)
    fail(where, fmt::format("scalar {}: type {} is not one of i64, f32, f64", name, tilewright::name(dtype)));
  take_name(name, where);
  state_->kernel.scalars.push_back({name, dtype});
  return push({.kind = OpKind::scalar_param, .param = static_cast<int>(state_->kernel.scalars.size()) - 1},
              {dtype, {}}, where);
}

Index Builder::constant(const std::string& name, Index value) {
  state_->kernel.constants.push_back({name, value});
  return value;
}

Value Builder::extent(View view, int dim, const Location& where) {
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
  const Index whole = float_to_int(DType::i64, value);
  if (static_cast<double>(whole) != value)
    fail(where, fmt::format("{}: {} is not an integer, the type is {}", op, value, tilewright::name(dtype)));
  return int_literal(dtype, whole);
}

Value Builder::literal(DType dtype, double value, const std::vector<Index>& shape, const Location& where) {
  return push({.kind = OpKind::constant, .number = number(dtype, value, "literal", where)}, {dtype, shape},
              where);
}

Value Builder::literal_int(DType dtype, Index value, const std::vector<Index>& shape, const Location& where) {
  const Number n = is_float(dtype) ? number(dtype, static_cast<double>(value), "literal", where)
                                   : int_literal(dtype, value);
  return push({.kind = OpKind::constant, .number = n}, {dtype, shape}, where);
}

Value Builder::program_id(int axis, const Location& where) {
  return push({.kind = OpKind::program_id, .param = axis}, {DType::i64, {}}, where);
}

Value Builder::arange(Index n, const Location& where) {
  return push({.kind = OpKind::arange}, {DType::i64, {n}}, where);
}

Value Builder::scalar_index(const Operand& operand, const char* op) {
  Value v =
      operand.is_literal() ? literal_int(DType::i64, operand.number.i, {}, operand.where) : operand.value;
  if (v.rank() != 0 || v.dtype() != DType::i64)
    fail(operand.where, fmt::format("{}: a start must be an i64 scalar, got {}", op, to_string(v.type())));
  return v;
}

Value Builder::load(View view, const std::vector<Operand>& starts, const LoadOptions& options,
                    const Location& where) {
  const ViewParam p = param(view);
  if (static_cast<int>(starts.size()) != p.rank())
    fail(where, fmt::format("load {}: {} starts for a view of rank {}", p.name, starts.size(), p.rank()));
  Op op{.kind = OpKind::load,
        .param = view.index,
        .tile_dims = options.dims,
        .bounded = options.fill.has_value()};
  for (const Operand& s : starts) op.operands.push_back(scalar_index(s, "load").id());
  if (op.tile_dims.empty())
    op.tile_dims = default_tile_dims(p.rank(), static_cast<int>(options.shape.size()));
  if (op.tile_dims.size() != options.shape.size())
    fail(where, fmt::format("load {}: {} dims for a tile of rank {}", p.name, op.tile_dims.size(),
                            options.shape.size()));
  if (options.fill) op.number = number(p.dtype, *options.fill, "load's fill", where);
  return push(std::move(op), {p.dtype, options.shape}, where);
}

void Builder::store(View view, const std::vector<Operand>& starts, Value value, const StoreOptions& options,
                    const Location& where) {
  const ViewParam p = param(view);
  if (static_cast<int>(starts.size()) != p.rank())
    fail(where, fmt::format("store {}: {} starts for a view of rank {}", p.name, starts.size(), p.rank()));
  if (value.dtype() != p.dtype)
    fail(where, fmt::format("store {}: the view holds {}, the value is {}; cast it", p.name,
                            tilewright::name(p.dtype), to_string(value.type())));
  Op op{.kind = OpKind::store,
        .operands = {value.id()},
        .param = view.index,
        .tile_dims = options.dims,
        .bounded = options.bounded};
  for (const Operand& s : starts) op.operands.push_back(scalar_index(s, "store").id());
  if (op.tile_dims.empty()) op.tile_dims = default_tile_dims(p.rank(), value.rank());
  push_effect(std::move(op), where);
}

std::vector<ValueId> Builder::index_operands(View view, const std::vector<Operand>& indices, const char* op,
                                             const Location& where, std::vector<Index>* shape) {
  const ViewParam p = param(view);
  if (static_cast<int>(indices.size()) != p.rank())
    fail(where, fmt::format("{} {}: {} indices for a view of rank {}", op, p.name, indices.size(), p.rank()));
  Shape joined(*shape);
  std::vector<Value> values;
  for (const Operand& i : indices) {
    Value v = i.is_literal() ? literal_int(DType::i64, i.number.i, {}, i.where) : i.value;
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

Value Builder::gather(View view, const std::vector<Operand>& indices, const GatherOptions& options,
                      const Location& where) {
  std::vector<Index> shape;
  if (options.mask) shape = options.mask->type().shape;
  Op op{.kind = OpKind::gather, .param = view.index, .masked = options.mask.has_value()};
  op.operands = index_operands(view, indices, "gather", where, &shape);
  const DType dtype = param(view).dtype;
  if (options.mask) {
    op.operands.push_back(broadcast(*options.mask, shape, where).id());
    op.number = number(dtype, options.fill, "gather's fill", where);
  }
  return push(std::move(op), {dtype, shape}, where);
}

namespace {
Op write_at_indices(OpKind kind, View view, bool masked) {
  return {.kind = kind, .param = view.index, .masked = masked};
}
}  // namespace

void Builder::scatter(View view, const std::vector<Operand>& indices, Value value, std::optional<Value> mask,
                      const Location& where) {
  std::vector<Index> shape = value.type().shape;
  Op op = write_at_indices(OpKind::scatter, view, mask.has_value());
  op.operands = index_operands(view, indices, "scatter", where, &shape);
  op.operands.insert(op.operands.begin(), broadcast(value, shape, where).id());
  if (mask) op.operands.push_back(broadcast(*mask, shape, where).id());
  push_effect(std::move(op), where);
}

void Builder::atomic_add(View view, const std::vector<Operand>& indices, Value value,
                         std::optional<Value> mask, const Location& where) {
  std::vector<Index> shape = value.type().shape;
  Op op = write_at_indices(OpKind::atomic_add, view, mask.has_value());
  op.operands = index_operands(view, indices, "atomic_add", where, &shape);
  op.operands.insert(op.operands.begin(), broadcast(value, shape, where).id());
  if (mask) op.operands.push_back(broadcast(*mask, shape, where).id());
  push_effect(std::move(op), where);
}

Value Builder::random(Value seed, Value counter, const Location& where) {
  if (seed.rank() != 0 || seed.dtype() != DType::i64 || counter.dtype() != DType::i64)
    fail(where,
         fmt::format("random: wants an i64 scalar seed and i64 counters, got {}", types({seed, counter})));
  return push({.kind = OpKind::random, .operands = {seed.id(), counter.id()}}, counter.type(), where);
}

Value Builder::broadcast(Value v, std::vector<Index> shape, const Location& where) {
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

Value Builder::reshape(Value v, std::vector<Index> shape, const Location& where) {
  if (v.type().shape == shape) return v;
  if (TileType{v.dtype(), shape}.size() != v.type().size())
    fail(where,
         fmt::format("reshape: {} has another size than [{}]", to_string(v.type()), fmt::join(shape, ",")));
  return push({.kind = OpKind::reshape, .operands = {v.id()}}, {v.dtype(), shape}, where);
}

Value Builder::transpose(Value v, const Location& where) {
  if (v.rank() != 2)
    fail(where, fmt::format("transpose: wants a tile of rank 2, got {}", to_string(v.type())));
  return push({.kind = OpKind::transpose, .operands = {v.id()}},
              {v.dtype(), {v.type().shape[1], v.type().shape[0]}}, where);
}

Value Builder::expand(Value v, int axis, const Location& where) {
  std::vector<Index> shape = v.type().shape;
  if (axis < 0 || axis > v.rank() || v.rank() >= kMaxTileRank)
    fail(where, fmt::format("expand: axis {} does not fit {}", axis, to_string(v.type())));
  shape.insert(shape.begin() + axis, 1);
  return reshape(v, shape, where);
}

Value Builder::cast(Value v, DType dtype, const Location& where) {
  if (v.dtype() == dtype) return v;
  return push({.kind = OpKind::cast, .operands = {v.id()}}, {dtype, v.type().shape}, where);
}

std::vector<Value> Builder::materialize(const std::vector<Operand>& operands, std::optional<DType> dtype,
                                        const char* op, const Location& where) {
  Shape shape;
  for (const Operand& o : operands) {
    if (o.is_literal()) continue;
    if (!dtype) dtype = o.value.dtype();
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
      const Number n = whole ? int_literal(*dtype, o.number.i) : number(*dtype, o.number.f, op, where);
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

void Builder::round(Value product) {
  for (auto block = state_->open.rbegin(); block != state_->open.rend(); ++block)
    for (auto op = (*block)->ops.rbegin(); op != (*block)->ops.rend(); ++op)
      if (op->results == std::vector<ValueId>{product.id()}) {
        op->rounded = is_product(*op, product.dtype());
        return;
      }
}

Value Builder::reduce(Monoid monoid, Value v, int axis, const Location& where) {
  if (axis < 0 || axis >= v.rank())
    fail(where, fmt::format("reduce: axis {} out of range for {}", axis, to_string(v.type())));
  if (!reduces(monoid, v.dtype()))
    fail(where, fmt::format("reduce {}: not defined on {}", tile::name(monoid), to_string(v.type())));
  std::vector<Index> shape = v.type().shape;
  shape.erase(shape.begin() + axis);
  return push({.kind = OpKind::reduce, .monoid = monoid, .operands = {v.id()}, .axis = axis},
              {reduce_dtype(monoid, v.dtype()), shape}, where);
}

Value Builder::scan(Monoid monoid, Value v, int axis, const Location& where) {
  if (axis < 0 || axis >= v.rank())
    fail(where, fmt::format("scan: axis {} out of range for {}", axis, to_string(v.type())));
  if (!scans(monoid, v.dtype()))
    fail(where, fmt::format("scan {}: not defined on {}", tile::name(monoid), to_string(v.type())));
  return push({.kind = OpKind::scan, .monoid = monoid, .operands = {v.id()}, .axis = axis}, v.type(), where);
}

Value Builder::dot(Value a, Value b, Value acc, const Location& where) {
  return dot(a, b, acc, DotPrecision::exact, where);
}

Value Builder::dot(Value a, Value b, Value acc, DotPrecision precision, const Location& where) {
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
  return push({.kind = OpKind::dot, .operands = {a.id(), b.id(), acc.id()}, .precision = precision},
              acc.type(), where);
}

namespace {
// Ops go to `block` until it is closed, or until the user's body throws.
class OpenBlock {
 public:
  OpenBlock(std::vector<Block*>& open, Block& block) : open_(open), depth_(open.size()) {
    open.push_back(&block);
  }
  ~OpenBlock() { close(); }
  OpenBlock(const OpenBlock&) = delete;
  OpenBlock& operator=(const OpenBlock&) = delete;
  void close() const { open_.resize(depth_); }

 private:
  std::vector<Block*>& open_;
  std::size_t depth_;
};
}  // namespace

std::vector<Value> Builder::loop(Operand lower, Operand upper, Operand step,
                                 const std::vector<Value>& initial, const LoopBody& body,
                                 const Location& where) {
  Op op{.kind = OpKind::loop};
  for (const Operand* o : {&lower, &upper, &step}) op.operands.push_back(scalar_index(*o, "loop").id());
  auto fresh = [&](const TileType& type) {
    state_->values.push_back({type, ""});
    return Value(this, static_cast<ValueId>(state_->values.size()) - 1);
  };
  Block block;
  Value induction = fresh({DType::i64, {}});
  block.args.push_back(induction.id());
  std::vector<Value> carried;
  for (const Value& v : initial) {
    op.operands.push_back(v.id());
    carried.push_back(fresh(TileType(v.type())));
    block.args.push_back(carried.back().id());
  }
  const OpenBlock open(state_->open, block);
  std::vector<Value> next = body(induction, carried);
  Op end{.kind = OpKind::yield};
  if (next.size() != initial.size())
    fail(where, fmt::format("loop: the body returns {} values, {} are carried", next.size(), initial.size()));
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (next[i].type() != initial[i].type())
      fail(where, fmt::format("loop: carried value {} changes from {} to {}", i, to_string(initial[i].type()),
                              to_string(next[i].type())));
    end.operands.push_back(next[i].id());
  }
  push_effect(std::move(end), where);
  open.close();
  op.blocks.push_back(std::move(block));
  std::vector<Value> results;
  results.reserve(initial.size());
  for (const Value& v : initial) results.push_back(fresh(TileType(v.type())));
  for (const Value& v : results) op.results.push_back(v.id());
  push_effect(std::move(op), where);
  return results;
}

std::vector<Value> Builder::branch(Value condition, const BranchBody& then_body, const BranchBody& else_body,
                                   const Location& where) {
  if (condition.rank() != 0 || !is_bool(condition.dtype()))
    fail(where,
         fmt::format("branch: the condition must be a bool scalar, got {}", to_string(condition.type())));
  Op op{.kind = OpKind::branch, .operands = {condition.id()}};
  std::vector<TileType> yielded[2];
  for (int side : {0, 1}) {
    Block block;
    const OpenBlock open(state_->open, block);
    Op end{.kind = OpKind::yield};
    for (const Value& v : side == 0 ? then_body() : else_body()) {
      end.operands.push_back(v.id());
      yielded[side].push_back(v.type());
    }
    push_effect(std::move(end), where);
    open.close();
    op.blocks.push_back(std::move(block));
  }
  if (yielded[0] != yielded[1]) fail(where, "branch: the two sides yield different types");
  std::vector<Value> results;
  for (const TileType& type : yielded[0]) {
    state_->values.push_back({type, ""});
    results.push_back(Value(this, static_cast<ValueId>(state_->values.size()) - 1));
    op.results.push_back(results.back().id());
  }
  push_effect(std::move(op), where);
  return results;
}

void Builder::name_value(Value v, const std::string& hint) {
  std::string unique = hint;
  for (int n = 1; !state_->names.insert(unique).second; ++n) unique = fmt::format("{}.{}", hint, n);
  state_->values[static_cast<std::size_t>(v.id())].name = unique;
}

namespace {

// Products that are added to something, and of which another op makes more.
void round_shared_products(Kernel& kernel) {
  std::vector<int> readers(kernel.values.size());
  std::vector<bool> added(kernel.values.size());
  for_each_op(kernel.body, [&](const Op& op) {
    for (const ValueId v : op.operands) {
      ++readers[static_cast<std::size_t>(v)];
      if (is_sum(op)) added[static_cast<std::size_t>(v)] = true;
    }
  });
  const std::function<void(Block&)> mark = [&](Block& block) {
    for (Op& op : block.ops) {
      for (Block& inner : op.blocks) mark(inner);
      if (op.results.size() != 1 || !is_product(op, kernel.type(op.results[0]).dtype)) continue;
      const auto v = static_cast<std::size_t>(op.results[0]);
      op.rounded = op.rounded || (readers[v] > 1 && added[v]);
    }
  };
  mark(kernel.body);
}

}  // namespace

Kernel Builder::finish(const std::vector<std::vector<std::pair<SizeArg, Index>>>& grid,
                       const Location& where) {
  for (const auto& axis : grid) {
    GridAxis factors;
    for (const auto& [extent, block] : axis) factors.push_back({extent.dim, block});
    state_->kernel.grid.push_back(std::move(factors));
  }
  Kernel kernel = std::move(state_->kernel);
  kernel.values.assign(std::make_move_iterator(state_->values.begin()),
                       std::make_move_iterator(state_->values.end()));
  state_ = std::make_unique<State>();
  state_->open.push_back(&state_->kernel.body);
  round_shared_products(kernel);
  if (auto problem = verify(kernel)) fail(where, fmt::format("kernel {}: {}", kernel.name, *problem));
  return kernel;
}

}  // namespace tilewright::tile
