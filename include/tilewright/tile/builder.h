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
// types and the user's line.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <variant>

namespace tilewright::tile {

class Builder;
using Location = std::source_location;

// A handle to a value of the kernel under construction.
class Value {
 public:
  Value() = default;
  const TileType& type() const;
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }
  ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }

 private:
  friend class Builder;
  Value(Builder* builder, ValueId id) : builder_(builder), id_(id) {}
  Builder* builder_ = nullptr;
  ValueId id_ = -1;
};

// An operand as users write it: a value or a literal, with the line it stands on.
struct Operand {
  Operand(Value v, const Location& l = Location::current()) : value(v), where(l) {}
  Operand(double literal, const Location& l = Location::current())
      : number{literal, float_to_int(DType::i64, literal)}, where(l) {}
  Operand(float literal, const Location& l = Location::current())
      : Operand(static_cast<double>(literal), l) {}
  Operand(Index literal, const Location& l = Location::current())
      : number{static_cast<double>(literal), literal}, where(l) {}
  Operand(int literal, const Location& l = Location::current()) : Operand(static_cast<Index>(literal), l) {}
  Operand(bool literal, const Location& l = Location::current()) : Operand(static_cast<Index>(literal), l) {}
  bool is_literal() const { return value.id() < 0; }
  Value value;
  Number number;
  Location where;
};

// A view parameter; `extent(i)` as a Dim for grids, Builder::extent for arithmetic.
struct View {
  int index = -1;
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
  std::optional<Value> mask = {};
  double fill = 0;
};

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
  };
  View view(const std::string& name, DType dtype, const std::vector<SizeArg>& extents,
            ViewOptions options = {}, const Location& where = Location::current());
  Value scalar(const std::string& name, DType dtype = DType::i64,
               const Location& where = Location::current());
  Index constant(const std::string& name, Index value);  // records a tunable and returns it
  Value extent(View view, int dim, const Location& where = Location::current());  // i64 scalar
  const ViewParam& param(View view) const;

  // --- scalars and tiles from nothing
  Value literal(DType dtype, double value, const std::vector<Index>& shape = {},
                const Location& where = Location::current());
  Value literal_int(DType dtype, Index value, const std::vector<Index>& shape = {},
                    const Location& where = Location::current());
  Value program_id(int axis, const Location& where = Location::current());
  Value arange(Index n, const Location& where = Location::current());
  Value random(Value seed, Value counter, const Location& where = Location::current());

  // --- memory
  Value load(View view, const std::vector<Operand>& starts, const LoadOptions& options = {},
             const Location& where = Location::current());
  void store(View view, const std::vector<Operand>& starts, Value value, const StoreOptions& options = {},
             const Location& where = Location::current());
  Value gather(View view, const std::vector<Operand>& indices, const GatherOptions& options = {},
               const Location& where = Location::current());
  void scatter(View view, const std::vector<Operand>& indices, Value value, std::optional<Value> mask = {},
               const Location& where = Location::current());
  void atomic_add(View view, const std::vector<Operand>& indices, Value value, std::optional<Value> mask = {},
                  const Location& where = Location::current());

  // --- shape and type
  Value broadcast(Value v, std::vector<Index> shape, const Location& where = Location::current());
  Value reshape(Value v, std::vector<Index> shape, const Location& where = Location::current());
  Value transpose(Value v, const Location& where = Location::current());
  Value expand(Value v, int axis, const Location& where = Location::current());  // inserts a unit axis
  Value cast(Value v, DType dtype, const Location& where = Location::current());

  // --- compute
  Value apply(Prim prim, const std::vector<Operand>& operands, const Location& where = Location::current());
  // Says of a product of floats that it is rounded by itself (Op::rounded); of other values nothing. finish()
  // says it of each product that is added to something and read by another op as well.
  void round(Value product);
  Value reduce(Monoid monoid, Value v, int axis, const Location& where = Location::current());
  Value scan(Monoid monoid, Value v, int axis, const Location& where = Location::current());
  Value dot(Value a, Value b, Value acc, const Location& where = Location::current());
  Value dot(Value a, Value b, Value acc, DotPrecision precision, const Location& where = Location::current());

  // --- control
  // body(i, carried) returns the next carried values; the result is the last ones.
  using LoopBody = std::function<std::vector<Value>(Value i, const std::vector<Value>& carried)>;
  std::vector<Value> loop(Operand lower, Operand upper, Operand step, const std::vector<Value>& initial,
                          const LoopBody& body, const Location& where = Location::current());
  using BranchBody = std::function<std::vector<Value>()>;
  std::vector<Value> branch(Value condition, const BranchBody& then_body, const BranchBody& else_body,
                            const Location& where = Location::current());

  void name_value(Value v, const std::string& hint);  // for printing; made unique

  // Closes the kernel, verifies it, and leaves the builder empty. One entry per grid axis, each a product of
  // factors.
  Kernel finish(const std::vector<std::vector<std::pair<SizeArg, Index>>>& grid,
                const Location& where = Location::current());

  const TileType& type(ValueId id) const;

 private:
  friend class Value;
  struct State;
  void take_name(const std::string& name, const Location& where);
  static Number number(DType dtype, double value, const char* op, const Location& where);
  Value push(Op op, TileType type, const Location& where);
  void push_effect(Op op, const Location& where);
  Value scalar_index(const Operand& operand, const char* op);
  std::vector<ValueId> index_operands(View view, const std::vector<Operand>& indices, const char* op,
                                      const Location& where, std::vector<Index>* shape);
  std::vector<Value> materialize(const std::vector<Operand>& operands, std::optional<DType> dtype,
                                 const char* op, const Location& where);
  std::unique_ptr<State> state_;
};

Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator%(const Operand& a, const Operand& b);
Value operator-(const Value& a);
Value operator<(const Operand& a, const Operand& b);
Value operator<=(const Operand& a, const Operand& b);
Value operator>(const Operand& a, const Operand& b);
Value operator>=(const Operand& a, const Operand& b);
Value operator==(const Operand& a, const Operand& b);
Value operator!=(const Operand& a, const Operand& b);
Value operator&(const Operand& a, const Operand& b);
Value operator|(const Operand& a, const Operand& b);
Value operator~(const Value& a);

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
