// Builder: tile kernels written in C++ with operators. The compiler writes its kernels through it, and so do
// users.
//
//   tile::Builder k("elu");
//   auto n = k.scalar("n");
//   auto x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
//   const Index block = k.constant("BLOCK", 1024);
//   auto start = k.program_id(0) * block;
//   auto t = k.load(x, {start}, {.shape = {block}, .fill = 0.0});
//   k.store(y, {start}, where(t > 0.f, t, exp(t) - 1.f), {.bounded = true});
//   tile::Kernel kernel = k.finish({{{n, block}}});
//
// Operands broadcast by NumPy's rule and literals take the other operand's type. Types are never promoted
// silently: f16, bf16 and fp8 tiles must be cast before arithmetic. A mistake throws Error naming the op, the
// types and the user's line. Values and views are handles: they belong to one Builder, and are of no use once
// its kernel is finished.
#pragma once

#include <tilewright/base/any_function.h>
#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <variant>

#pragma GCC visibility push(default)
namespace tilewright::tile {

class Builder;
struct BuilderState;  // shared by a Builder and the handles it gave out
using Location = std::source_location;

// A handle to a value of the kernel under construction. One that was never assigned, or was moved from, is
// not defined: id() of it is -1, and any other use throws Error.
class Value {
 public:
  Value() = default;
  // The state of the handle, and the type of the value.
  bool defined() const { return state_ != nullptr; }
  const TileType& type(const Location& where = Location::current()) const;  // there until finish()
  DType dtype(const Location& where = Location::current()) const { return type(where).dtype; }
  int rank(const Location& where = Location::current()) const { return type(where).rank(); }
  // Its number in the kernel, and the Builder that made it.
  ValueId id() const { return state_ ? id_ : -1; }
  Builder& builder(const Location& where = Location::current()) const;

 private:
  friend class Builder;
  Value(std::shared_ptr<BuilderState> state, ValueId id) : state_(std::move(state)), id_(id) {}
  std::shared_ptr<BuilderState> state_;
  ValueId id_ = -1;
};

// An operand as users write it: a value or a literal, with the line it stands on.
struct Operand {
  Operand(Value v, const Location& l = Location::current()) : value(std::move(v)), where(l) {}
  Operand(double n, const Location& l = Location::current())
      : number{n, holds(DType::i64, n) ? float_to_int(DType::i64, n) : 0}, literal(true), where(l) {}
  Operand(float n, const Location& l = Location::current()) : Operand(static_cast<double>(n), l) {}
  Operand(Index n, const Location& l = Location::current())
      : number{static_cast<double>(n), n}, literal(true), where(l) {}
  Operand(int n, const Location& l = Location::current()) : Operand(static_cast<Index>(n), l) {}
  Operand(bool n, const Location& l = Location::current()) : Operand(static_cast<Index>(n), l) {}
  bool is_literal() const { return literal; }  // a number, not a Value
  Value value;
  Number number;
  bool literal = false;
  Location where;
};

// A handle to a view parameter; Builder::param() and Builder::extent() tell of it.
class View {
 public:
  View() = default;
  // Whether it is a view of a kernel: not one that was never assigned, or was moved from.
  bool defined() const { return state_ != nullptr; }

 private:
  friend class Builder;
  View(std::shared_ptr<BuilderState> state, int index) : state_(std::move(state)), index_(index) {}
  std::shared_ptr<BuilderState> state_;
  int index_ = -1;
};

struct ViewOptions {
  std::vector<Dim> strides = {};  // elements; empty: row-major (needs constant extents past the first axis)
  Index align_bytes = 16;
};
struct LoadOptions {
  std::vector<Index> shape = {};    // of the tile; empty loads one element
  std::vector<int> dims = {};       // view dim each tile axis walks; empty: the last ones
  std::optional<double> fill = {};  // value outside the view; without it the block must lie inside
};
struct StoreOptions {
  std::vector<int> dims = {};
  bool bounded = false;  // drop what lies outside the view
};
struct GatherOptions {
  std::optional<Value> mask = {};  // where it is false nothing is read, and the indices may be anything
  double fill = 0;                 // what is there instead
};

// A kernel under construction: each call adds an op, and gives its value.
class Builder {
 public:
  explicit Builder(std::string name);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // --- parameters
  // A size is a number or an i64 scalar parameter.
  struct SizeArg {
    SizeArg(Index v) : dim{v, -1} {}
    SizeArg(int v) : dim{v, -1} {}
    SizeArg(Value scalar_param);
    SizeArg(Dim d) : dim(d) {}
    Dim dim;
    std::optional<Value> scalar = {};  // that it was made of
  };
  // A parameter that is a window onto a tensor, of these extents.
  View view(const std::string& name, DType dtype, const std::vector<SizeArg>& extents,
            ViewOptions options = {}, const Location& where = Location::current());
  // A parameter that is a number: i64, f32 or f64.
  Value scalar(const std::string& name, DType dtype = DType::i64,
               const Location& where = Location::current());
  // Records a tunable and returns it.
  Index constant(const std::string& name, Index value, const Location& where = Location::current());
  Value extent(const View& view, int dim, const Location& where = Location::current());  // i64 scalar
  const ViewParam& param(const View& view, const Location& where = Location::current()) const&;
  const ViewParam& param(const View& view, const Location& where = Location::current()) && = delete;

  // --- scalars and tiles from nothing
  // A number, or a tile of one number.
  Value literal(DType dtype, double value, const std::vector<Index>& shape = {},
                const Location& where = Location::current());
  Value literal_int(DType dtype, Index value, const std::vector<Index>& shape = {},
                    const Location& where = Location::current());
  // Which program this is along an axis of the grid: an i64 scalar.
  Value program_id(int axis, const Location& where = Location::current());
  // 0, 1, … n-1: tile<i64,[n]>.
  Value arange(Index n, const Location& where = Location::current());
  // Word (counter & 3) of Philox4x32-10(seed, counter >> 2), as i64.
  Value random(const Value& seed, const Value& counter, const Location& where = Location::current());

  // --- memory
  // A block at `starts`, one for each dim of the view. Without a fill, or `bounded`, it must lie inside of
  // the view: that is the caller's duty. finish() refuses what certainly leaves it.
  Value load(const View& view, const std::vector<Operand>& starts, const LoadOptions& options = {},
             const Location& where = Location::current());
  void store(const View& view, const std::vector<Operand>& starts, const Value& value,
             const StoreOptions& options = {}, const Location& where = Location::current());
  // gather, scatter and atomic_add take one index for each dim of the view: i64 tiles or scalars, which
  // broadcast with one another, with the value and with the mask. Where there is no mask, or it is true,
  // every index must be in [0, extent): that is the caller's duty, too. Nothing but the reference device's
  // checked mode looks at it when a kernel runs: on the others an index outside reads or writes whatever
  // memory is there, or crashes. Mask out what may be outside:
  //   k.gather(x, {i}, {.mask = (i >= 0) & (i < k.extent(x, 0))});
  // finish() refuses what certainly leaves the view, without a mask: indices that are sums of constants and
  // of multiples of arange, program ids and loop indices. No two elements that a launch scatters may meet;
  // those of atomic_add may.
  Value gather(const View& view, const std::vector<Operand>& indices, const GatherOptions& options = {},
               const Location& where = Location::current());
  void scatter(const View& view, const std::vector<Operand>& indices, const Value& value,
               const std::optional<Value>& mask = {}, const Location& where = Location::current());
  void atomic_add(const View& view, const std::vector<Operand>& indices, const Value& value,
                  const std::optional<Value>& mask = {}, const Location& where = Location::current());

  // --- shape and type
  // To a shape: scalars to any, axes of one element stretch. broadcast() is what operators do by themselves.
  Value broadcast(Value v, std::vector<Index> shape, const Location& where = Location::current());
  // The same elements in row-major order, and with two axes exchanged.
  Value reshape(const Value& v, std::vector<Index> shape, const Location& where = Location::current());
  Value transpose(const Value& v, const Location& where = Location::current());
  Value expand(const Value& v, int axis, const Location& where = Location::current());  // inserts a unit axis
  // To another type, rounding as base/dtype.h says.
  Value cast(const Value& v, DType dtype, const Location& where = Location::current());

  // --- compute
  // A primitive, element by element: what the operators and functions below do.
  Value apply(Prim prim, const std::vector<Operand>& operands, const Location& where = Location::current());
  // Says of a product of floats that it is rounded by itself (Op::rounded); of other values nothing. finish()
  // says it of each product that is added to something and read by another op as well.
  void round(const Value& product, const Location& where = Location::current());
  // Along an axis, which disappears; scan() gives what it is up to each element, and keeps the axis.
  Value reduce(Monoid monoid, const Value& v, int axis, const Location& where = Location::current());
  Value scan(Monoid monoid, const Value& v, int axis, const Location& where = Location::current());
  // i32 positions along the axis, in the order of their elements: of f32, f64 and integers. Equal elements
  // keep their order, and a NaN counts as the largest (base/order.h).
  Value argsort(const Value& v, int axis, Order order = Order::ascending,
                const Location& where = Location::current());
  // acc + a · b of tiles [M,K], [K,N] and [M,N], summed in the type of acc.
  Value dot(const Value& a, const Value& b, const Value& acc, const Location& where = Location::current());
  Value dot(const Value& a, const Value& b, const Value& acc, DotPrecision precision,
            const Location& where = Location::current());

  // --- control
  // body(i, carried) returns the next carried values; the result is the last ones.
  using LoopBody = AnyFunction<std::vector<Value>(Value i, const std::vector<Value>& carried)>;
  // for (i = lower; i < upper; i += step): i64 scalars, step above 0. Throws Error where the body returns
  // other types, or not as many values, as `initial`.
  std::vector<Value> loop(const Operand& lower, const Operand& upper, const Operand& step,
                          const std::vector<Value>& initial, const LoopBody& body,
                          const Location& where = Location::current());
  // What the body that is taken returns: both return values of the same types.
  using BranchBody = AnyFunction<std::vector<Value>()>;
  // The values of one of two bodies, by a bool scalar. Throws Error where the types of these differ.
  std::vector<Value> branch(const Value& condition, const BranchBody& then_body, const BranchBody& else_body,
                            const Location& where = Location::current());

  // For printing; made unique.
  void name_value(const Value& v, const std::string& hint, const Location& where = Location::current());

  // Closes the kernel and verifies it. One entry per grid axis, each a product of factors. It is the last
  // call: whatever follows of the builder, its values and its views is an Error, a second finish() as well.
  Kernel finish(const std::vector<std::vector<std::pair<SizeArg, Index>>>& grid,
                const Location& where = Location::current());

 private:
  friend class Value;
  // What a handle is to the op that takes it: "add", "operand", 1.
  struct Use {
    const char* op;
    const char* role;
    int number = -1;  // among those of the role; none: the only one
  };
  static std::string role_of(const Use& use);
  BuilderState& live(const Location& where) const;
  void check(const Value& v, const Use& use, const Location& where) const;
  void check(const View& v, const char* op, const Location& where) const;
  void check_handle(const std::shared_ptr<BuilderState>& of, const Use& use, const Location& where) const;
  Dim size(const SizeArg& s, const Use& use, const Location& where) const;
  void take_name(const std::string& name, const Location& where);
  static Number number(DType dtype, double value, const char* op, const Location& where);
  static Number whole_number(DType dtype, Index value, const char* op, const Location& where);
  Value fresh(const TileType& type);
  Value push(Op op, TileType type, const Location& where);
  void push_effect(Op op, const Location& where);
  Value index_value(const Operand& operand, const Use& use);
  Value scalar_index(const Operand& operand, const Use& use);
  std::vector<ValueId> index_operands(const View& view, const std::vector<Operand>& indices, const char* op,
                                      const Location& where, std::vector<Index>* shape);
  void write_at_indices(OpKind kind, const View& view, const std::vector<Operand>& indices,
                        const Value& value, const std::optional<Value>& mask, const Location& where);
  std::vector<Value> materialize(const std::vector<Operand>& operands, std::optional<DType> dtype,
                                 const char* op, const Location& where);
  std::shared_ptr<BuilderState> state_;
};

// Element by element, as apply() does: both operands of one type, integers wrap around, comparisons give
// bool.
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator%(const Operand& a, const Operand& b);
Value operator-(const Operand& a);
Value operator<(const Operand& a, const Operand& b);
Value operator<=(const Operand& a, const Operand& b);
Value operator>(const Operand& a, const Operand& b);
Value operator>=(const Operand& a, const Operand& b);
Value operator==(const Operand& a, const Operand& b);
Value operator!=(const Operand& a, const Operand& b);
Value operator&(const Operand& a, const Operand& b);
Value operator|(const Operand& a, const Operand& b);
Value operator~(const Operand& a);

// Functions of elements: prim.h says what each does with NaN, and how exact its f32 is on every backend.
Value where(Value condition, const Operand& a, const Operand& b, const Location& l = Location::current());
Value min(const Operand& a, const Operand& b, const Location& l = Location::current());
Value max(const Operand& a, const Operand& b, const Location& l = Location::current());
Value fma(const Operand& a, const Operand& b, const Operand& c, const Location& l = Location::current());
Value exp(Value a, const Location& l = Location::current());
Value exp2(Value a, const Location& l = Location::current());
Value expm1(Value a, const Location& l = Location::current());
Value log(Value a, const Location& l = Location::current());
Value log2(Value a, const Location& l = Location::current());
Value log1p(Value a, const Location& l = Location::current());
Value sin(Value a, const Location& l = Location::current());
Value cos(Value a, const Location& l = Location::current());
Value tanh(Value a, const Location& l = Location::current());
Value erf(Value a, const Location& l = Location::current());
Value sigmoid(Value a, const Location& l = Location::current());
Value sqrt(Value a, const Location& l = Location::current());
Value rsqrt(Value a, const Location& l = Location::current());
Value abs(Value a, const Location& l = Location::current());
Value floor(Value a, const Location& l = Location::current());
Value ceil(Value a, const Location& l = Location::current());
Value round(Value a, const Location& l = Location::current());

// ceil(a / b) of an i64 scalar: the trip count of a blocked loop.
Value cdiv(const Operand& a, Index b);

}  // namespace tilewright::tile
#pragma GCC visibility pop
