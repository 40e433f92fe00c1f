// A pool of values grows by random steps; what is left in it at the end is stored.
#include "support/random_kernel.h"

#include <tilewright/tile/builder.h>

#include <algorithm>
#include <random>

namespace tilewright::test {

using tile::Builder;
using tile::Monoid;
using tile::Prim;
using tile::Value;
using tile::View;
using Values = std::vector<Value>;

namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomKernelOptions& options)
      : options_(options), engine_(seed), k_("random_" + std::to_string(seed)) {}

  RandomKernel make() {
    open();
    for (int i = 0; i < options_.steps; ++i) step(2);
    close();
    return {k_.finish(grid_), scalars_};
  }

 private:
  // --- choices

  Index below(Index n) { return static_cast<Index>(engine_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<Index>(from.size())))];
  }
  double number() { return static_cast<double>(below(33) - 16) / 8; }

  static bool is_computed(DType d) { return d == DType::f32 || d == DType::f64; }
  template <class Test>
  std::vector<Value> pool_where(const Test& test) const {
    std::vector<Value> found;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(found), test);
    return found;
  }
  // A computed float value of any shape; one of f32 is always there.
  Value any_float() {
    return pick(pool_where([](const Value& v) { return is_computed(v.dtype()); }));
  }
  Value any_tile() {
    return pick(pool_where([](const Value& v) { return is_computed(v.dtype()) && v.rank() > 0; }));
  }
  // One that broadcasts with `v` to no more than the limit, of the same type.
  Value partner(const Value& v) {
    return pick(pool_where([&](const Value& w) {
      const auto joined = tilewright::broadcast(Shape(v.type().shape), Shape(w.type().shape));
      return w.dtype() == v.dtype() && joined && joined->size() <= options_.max_tile && joined->rank() <= 2;
    }));
  }
  void add(const Value& v) { pool_.push_back(v); }

  // --- what every kernel has

  // Sizes: a tile per program, a view of up to three tiles along each axis with a ragged end.
  void open() {
    const int rank = chance(70) ? 2 : 1;
    do {
      tile_.clear();
      for (int d = 0; d < rank; ++d) tile_.push_back(pick(options_.extents));
    } while (tile::TileType{DType::f32, tile_}.size() > options_.max_tile);
    const bool symbolic = chance(40);
    for (int d = 0; d < rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const Index extent = chance(30) ? tile_[at] * (1 + below(3)) : 1 + below(3 * tile_[at]);
      extents_.push_back(extent);
      if (symbolic && d == 0) {
        sizes_.emplace_back(k_.scalar("n"));
        scalars_.push_back(extent);
      } else {
        sizes_.emplace_back(extent);
      }
      grid_.push_back({{sizes_.back(), tile_[at]}});
      programs_.push_back(ceil_div(extent, tile_[at]));
      program_.push_back(k_.program_id(d));
      starts_.push_back(program_.back() * tile_[at]);
    }
    const int inputs = 1 + static_cast<int>(below(2));
    for (int i = 0; i < inputs; ++i) add_input(i);
    if (options_.in_place && chance(20)) open_in_place();
    add(k_.cast(program_[0], DType::f32));
    add(k_.literal(DType::f32, number()));
  }

  // A view that is read at the beginning and overwritten at the end, at the same block.
  void open_in_place() {
    in_place_ = k_.view("io", DType::f32, sizes_, {.align_bytes = 4});
    add(k_.load(in_place_, {starts_.begin(), starts_.end()}, {.shape = tile_, .fill = number()}));
  }

  void add_input(int i) {
    const DType dtype = i == 0 && chance(60) ? DType::f32 : pick(options_.input_dtypes);
    const std::string name(1, static_cast<char>('a' + i));
    tile::ViewOptions view_options;
    if (tile_.size() == 2) {
      const Index row = extents_[1] + (chance(30) ? 3 : 0);  // rows may lie apart
      view_options.strides = chance(15)   ? std::vector<tile::Dim>{{0, -1}, {1, -1}}
                             : chance(15) ? std::vector<tile::Dim>{{row, -1}, {-1, -1}}
                                          : std::vector<tile::Dim>{{row, -1}, {1, -1}};
    } else if (chance(20)) {
      view_options.strides = {{2, -1}};
    }
    view_options.align_bytes = static_cast<Index>(size_bytes(dtype));
    const View view = k_.view(name, dtype, sizes_, view_options);
    const double fill = is_float(dtype) ? number() : static_cast<double>(below(2));
    tile::LoadOptions load{.shape = tile_, .fill = fill};
    add_converted(k_.load(view, {starts_.begin(), starts_.end()}, load));
    inputs_.push_back(view);
  }

  // Into the pool in a type that arithmetic takes.
  void add_converted(const Value& v) {
    const DType d = v.dtype();
    if (is_bool(d)) bools_.push_back(v);
    if (d == DType::f64 && !options_.wide) return add(k_.cast(v, DType::f32));
    if (is_computed(d)) return add(v);
    if (is_integer(d)) wholes_.push_back(v);
    add(k_.cast(v, DType::f32));
  }

  // --- steps

  void step(int depth) {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return add(unary(any_float()));
      case 3:
      case 4:
        return binary();
      case 5:
        return choose();
      case 6:
        return through_narrow();
      case 7:
        return whole();
      case 8:
      case 9:
        return reduce();
      case 10:
        return options_.scans ? scan() : reduce();
      case 11:
        return options_.loops && depth > 0 ? loop(depth - 1) : binary();
      case 12:
        return options_.branches && depth > 0 ? branch(depth - 1) : binary();
      case 13:
        return options_.gathers ? gather() : choose();
      case 14:
        return options_.dots ? dot() : binary();
      default:
        return options_.random && chance(40) ? noise() : reshape();
    }
  }

  Value unary(const Value& v) {
    static const std::vector<Prim> kAll{Prim::neg,   Prim::abs,    Prim::sign,  Prim::floor, Prim::ceil,
                                        Prim::round, Prim::trunc,  Prim::sqrt,  Prim::rsqrt, Prim::reciprocal,
                                        Prim::exp,   Prim::exp2,   Prim::expm1, Prim::log,   Prim::log2,
                                        Prim::log1p, Prim::sin,    Prim::cos,   Prim::tan,   Prim::tanh,
                                        Prim::erf,   Prim::sigmoid};
    const Prim prim = pick(kAll);
    Value x = v;
    // Mostly where the function is defined and tame; at times with what it is given.
    if (chance(85)) {
      if (prim == Prim::sqrt || prim == Prim::rsqrt || prim == Prim::log || prim == Prim::log2)
        x = abs(x) + 0.25;
      if (prim == Prim::log1p) x = abs(x);
      if (prim == Prim::reciprocal) x = abs(x) + 0.5;
      if (prim == Prim::exp || prim == Prim::exp2 || prim == Prim::expm1) x = clamp(x, 8);
      if (prim == Prim::sin || prim == Prim::cos) x = clamp(x, 50);
      if (prim == Prim::tan) x = clamp(x, 1.25);
    }
    return k_.apply(prim, {x});
  }

  Value clamp(const Value& v, double limit) { return max(min(v, limit), -limit); }

  Value combine(const Value& a, const Value& b) {
    static const std::vector<Prim> kAll{Prim::add, Prim::add, Prim::sub, Prim::mul, Prim::mul,  Prim::min,
                                        Prim::max, Prim::div, Prim::rem, Prim::pow, Prim::atan2};
    const Prim prim = pick(kAll);
    if (prim == Prim::div || prim == Prim::rem) return k_.apply(prim, {a, abs(b) + 0.75});
    if (prim == Prim::pow) return k_.apply(prim, {abs(clamp(a, 4)) + 0.25, clamp(b, 4)});
    if (prim == Prim::mul && chance(30)) return fma(a, b, number());
    return k_.apply(prim, {a, b});
  }

  void binary() {
    const Value a = any_float();
    if (chance(25)) return add(combine(a, k_.literal(a.dtype(), number())));
    add(combine(a, partner(a)));
  }

  Value condition(const Value& a, const Value& b) {
    static const std::vector<Prim> kTests{Prim::lt, Prim::le, Prim::gt, Prim::ge, Prim::eq, Prim::ne};
    Value c = k_.apply(pick(kTests), {a, b});
    if (chance(20)) c = c | k_.apply(Prim::isnan, {a});
    if (chance(20)) c = ~c;
    return c;
  }

  void choose() {
    const Value a = any_float(), b = partner(a);
    const Value c = condition(a, b);
    bools_.push_back(c);
    add(where(c, b, number()));
    const auto mask = std::find_if(bools_.begin(), bools_.end(),
                                   [&](const Value& m) { return m.type().shape == c.type().shape; });
    if (chance(30)) add(k_.cast(c & *mask, a.dtype()));
  }

  void through_narrow() {
    static const std::vector<DType> kNarrow{DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2};
    const Value v = any_float();
    if (options_.wide && chance(25))
      return add(k_.cast(v, v.dtype() == DType::f64 ? DType::f32 : DType::f64));
    add(k_.cast(k_.cast(v, pick(kNarrow)), v.dtype()));
  }

  // Integer arithmetic that wraps, shifts and masks.
  void whole() {
    static const std::vector<DType> kTypes{DType::i32, DType::i8, DType::u8, DType::i64};
    const DType dtype = options_.wide ? pick(kTypes) : DType::i32;
    const bool cast_float = wholes_.empty() || chance(30);
    const Value v = cast_float ? k_.cast(any_float(), dtype) : pick(wholes_);
    static const std::vector<Prim> kAll{Prim::add,    Prim::sub,     Prim::mul, Prim::div,
                                        Prim::rem,    Prim::min,     Prim::max, Prim::bit_and,
                                        Prim::bit_or, Prim::bit_xor, Prim::shl, Prim::shr};
    const Value w = k_.apply(pick(kAll), {v, k_.literal_int(v.dtype(), wrap_to(v.dtype(), below(19) - 6))});
    const Value u = chance(40) ? k_.apply(chance(50) ? Prim::abs : Prim::bit_not, {w}) : w;
    wholes_.push_back(u);
    add(clamp(k_.cast(u, DType::f32), 256));
  }

  void reduce() {
    static const std::vector<Monoid> kAll{Monoid::sum,  Monoid::sum,    Monoid::max,   Monoid::min,
                                          Monoid::prod, Monoid::argmax, Monoid::argmin};
    Value v = any_tile();
    const Monoid monoid = pick(kAll);
    if (monoid == Monoid::prod) v = clamp(v, 1.5);
    const int axis = static_cast<int>(below(v.rank()));
    const Value r = k_.reduce(monoid, v, axis);
    const Value real = k_.cast(r, v.dtype());
    add(real);
    // Back against the tile it came from, as in a normalisation.
    if (chance(60)) add(combine(v, v.rank() == 2 ? k_.expand(real, axis) : real));
  }

  void scan() {
    if (chance(30)) return argsort();
    static const std::vector<Monoid> kAll{Monoid::sum, Monoid::max, Monoid::min, Monoid::prod};
    const Monoid monoid = pick(kAll);
    const Value v = any_tile();
    add(k_.scan(monoid, monoid == Monoid::prod ? clamp(v, 1.25) : v, static_cast<int>(below(v.rank()))));
  }

  void argsort() {
    const Value v = any_tile();
    const Order order = chance(50) ? Order::ascending : Order::descending;
    add(k_.cast(k_.argsort(v, static_cast<int>(below(v.rank())), order), DType::f32));
  }

  // Values of a block are visible in it only.
  template <class Body>
  auto inside(const Body& body) {
    const std::size_t pool = pool_.size(), bools = bools_.size(), wholes = wholes_.size();
    auto result = body();
    pool_.resize(pool);
    bools_.resize(bools);
    wholes_.resize(wholes);
    return result;
  }

  // A value of the type of `like`, made from one of the pool.
  Value shaped_like(const Value& like) {
    const Values fits = pool_where([&](const Value& v) {
      const auto joined = tilewright::broadcast(Shape(v.type().shape), Shape(like.type().shape));
      return v.dtype() == like.dtype() && joined && joined->extents() == like.type().shape;
    });
    return k_.broadcast(pick(fits), like.type().shape);
  }

  void loop(int depth) {
    const Values initial = chance(50) ? Values{any_float()} : Values{any_float(), any_float()};
    const Index step_size = 1 + below(3);
    const bool by_program = chance(25), by_scalar = !scalars_.empty() && chance(30);
    const Value count = by_program  ? program_[0] % 3 + 1
                        : by_scalar ? k_.extent(inputs_[0], 0) % 4
                                    : k_.literal_int(DType::i64, below(5));
    const Values last = k_.loop(below(3), count, step_size, initial, [&](Value i, const Values& carried) {
      return inside([&] {
        for (const Value& v : carried) add(v);
        add(k_.cast(i, DType::f32));
        if (chance(40)) add(load_part(i));
        for (Index n = 1 + below(3); n > 0; --n) step(depth);
        Values next;
        for (const Value& v : carried) {
          const Value fresh = shaped_like(v);
          next.push_back(chance(70) ? clamp(v * 0.5 + fresh, 64) : fresh);
        }
        if (next.size() == 2 && next[0].type() == next[1].type() && chance(30)) std::swap(next[0], next[1]);
        return next;
      });
    });
    for (const Value& v : last) add(v);
  }

  // A block of the first input that moves with the loop and may leave the view.
  Value load_part(const Value& i) {
    std::vector<tile::Operand> starts(starts_.begin(), starts_.end());
    starts.back() = starts_.back() + i * 2 - 1;
    tile::LoadOptions load{.shape = {tile_.back()}, .fill = 0.0};
    if (tile_.size() == 2 && chance(50)) load = {.shape = {tile_[1], tile_[0]}, .dims = {1, 0}, .fill = 1.0};
    const Value v = k_.load(inputs_[0], starts, load);
    return is_computed(v.dtype()) && (options_.wide || v.dtype() == DType::f32) ? v : k_.cast(v, DType::f32);
  }

  void branch(int depth) {
    const bool by_data = chance(40);
    const Values scalars = pool_where([](const Value& v) { return v.rank() == 0 && is_computed(v.dtype()); });
    const Value c = by_data ? pick(scalars) > number() : program_[0] % 2 == below(2);
    const Value like = any_float();
    const auto side = [&] {
      return inside([&] {
        for (Index n = 1 + below(2); n > 0; --n) step(depth);
        return Values{shaped_like(like)};
      });
    };
    for (const Value& v : k_.branch(c, side, side)) add(v);
  }

  // Elements of an input at computed indices; those outside are masked.
  void gather() {
    const View view = pick(inputs_);
    const Index count = pick(options_.extents);
    const Value i = k_.arange(count);
    std::vector<tile::Operand> indices;
    Value mask;
    for (std::size_t d = 0; d < tile_.size(); ++d) {
      Value index = (i * (1 + below(5)) + below(7) + program_[0]) % (extents_[d] + below(3));
      if (chance(30)) index = index - 1;
      if (!wholes_.empty() && chance(30))
        index = k_.cast(k_.reduce(Monoid::max, flat(pick(wholes_)), 0), DType::i64) + i;
      indices.emplace_back(index);
      const Value inside_view = (index >= 0) & (index < k_.extent(view, static_cast<int>(d)));
      mask = d == 0 ? inside_view : mask & inside_view;
    }
    const bool real = is_float(k_.param(view).dtype);
    const Value g = k_.gather(view, indices, {.mask = mask, .fill = real ? number() : 1.0});
    add_converted(g);
  }

  Value flat(const Value& v) { return k_.reshape(v, {v.type().size()}); }

  void dot() {
    static const std::vector<DType> kTypes{DType::f32, DType::bf16, DType::f16};
    const Values tiles = pool_where([](const Value& v) { return v.rank() == 2 && v.dtype() == DType::f32; });
    if (tiles.empty()) return binary();
    const Value a = pick(tiles);
    const Values meets = pool_where([&](const Value& v) {
      return v.rank() == 2 && v.dtype() == DType::f32 && v.type().shape[1] == a.type().shape[1] &&
             v.type().shape[0] * a.type().shape[0] <= options_.max_tile;
    });
    if (meets.empty()) return reduce();
    const Value b = k_.transpose(pick(meets));
    const DType dtype = pick(kTypes);
    const Value acc =
        k_.literal(DType::f32, chance(50) ? 0 : number(), {a.type().shape[0], b.type().shape[1]});
    const bool tf32 = dtype == DType::f32 && acc.id() % 2 == 0;
    add(k_.dot(k_.cast(clamp(a, 8), dtype), k_.cast(clamp(b, 8), dtype), acc,
               tf32 ? tile::DotPrecision::tf32 : tile::DotPrecision::exact));
  }

  void noise() {
    const Index count = pick(options_.extents);
    const Value word =
        k_.random(k_.literal_int(DType::i64, below(1000)), k_.arange(count) + program_[0] * 1000);
    add(k_.cast(k_.apply(Prim::shr, {word, 8}), DType::f32) * 0x1p-24);
  }

  void reshape() {
    const Value v = any_tile();
    if (v.rank() == 2 && chance(60)) return add(k_.transpose(v));
    if (v.rank() == 2) return add(k_.reshape(v, {v.type().size()}));
    add(k_.expand(v, static_cast<int>(below(2))));
  }

  // --- results

  void close() {
    if (in_place_.defined()) overwrite();
    // Latest first: they depend on most of the others.
    const Index count = 2 + below(4), size = static_cast<Index>(pool_.size());
    for (Index i = 0; i < std::min(count, size); ++i) store(pool_[static_cast<std::size_t>(size - 1 - i)], i);
    if (options_.scatters && chance(25)) scatter();
    if (options_.atomics && chance(20)) add_atomically();
  }

  // Before the other stores, which may use what was read there.
  void overwrite() {
    const Values fits =
        pool_where([&](const Value& v) { return v.dtype() == DType::f32 && v.type().shape == tile_; });
    k_.store(in_place_, {starts_.begin(), starts_.end()}, pick(fits), {.bounded = true});
  }

  // The program's own cell in front of further dims.
  std::vector<Builder::SizeArg> cells(const std::vector<Index>& shape) {
    std::vector<Builder::SizeArg> sizes;
    sizes.reserve(programs_.size());
    for (Index n : programs_) sizes.emplace_back(n);
    for (Index n : shape) sizes.emplace_back(n);
    return sizes;
  }

  void store(const Value& value, Index i) {
    static const std::vector<DType> kTypes{DType::f32, DType::bf16, DType::f16, DType::f8e5m2, DType::i32};
    const Value v = chance(40) ? k_.cast(value, pick(kTypes)) : value;
    const std::string name = "out" + std::to_string(i);
    if (v.type().shape == tile_) {
      tile::ViewOptions options{.align_bytes = static_cast<Index>(size_bytes(v.dtype()))};
      const View view = k_.view(name, v.dtype(), sizes_, options);
      return k_.store(view, {starts_.begin(), starts_.end()}, v, {.bounded = true});
    }
    const View view = k_.view(name, v.dtype(), cells(v.type().shape),
                              {.align_bytes = static_cast<Index>(size_bytes(v.dtype()))});
    std::vector<tile::Operand> starts(program_.begin(), program_.end());
    for (int d = 0; d < v.rank(); ++d) starts.emplace_back(0);
    k_.store(view, starts, v);
  }

  void scatter() {
    const Value v = flat(any_tile());
    const Index n = v.type().size();
    const View view = k_.view("scattered", v.dtype(), cells({n}));
    std::vector<tile::Operand> indices(program_.begin(), program_.end());
    const Value i = k_.arange(n);
    indices.emplace_back(n - 1 - i);
    k_.scatter(view, indices, v, i % 5 != 2);
  }

  void add_atomically() {
    const Value v = flat(any_tile());
    const bool real = chance(60) && v.dtype() == DType::f32;
    const View view = k_.view("added", real ? DType::f32 : DType::i32, {5});
    const Value i = k_.arange(v.type().size());
    const Value what = clamp(v, 4);
    k_.atomic_add(view, {i % 5}, real ? what : k_.cast(floor(what), DType::i32), i % 3 != 1);
  }

  const RandomKernelOptions& options_;
  std::mt19937_64 engine_;
  Builder k_;
  std::vector<Index> tile_, extents_, programs_;  // of the program's tile; of the inputs; of the grid
  std::vector<Builder::SizeArg> sizes_;
  std::vector<std::int64_t> scalars_;
  std::vector<std::vector<std::pair<Builder::SizeArg, Index>>> grid_;
  Values program_, starts_;
  std::vector<View> inputs_;
  View in_place_;
  Values pool_, bools_, wholes_;  // f32 and f64; bool; integers
};

}  // namespace

RandomKernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace tilewright::test
