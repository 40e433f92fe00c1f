// The table of meanings: a row per primitive with a function on float64 and one on integers, `kNone` where
// the primitive is not defined on the type. The array forms are loops over the same functions.
#include "tile/prim_eval.h"

#include <tilewright/base/error.h>

#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tilewright::tile {

namespace {

using I = std::int64_t;
using U = std::uint64_t;

struct None {};
constexpr None kNone;

template <class F, class G>
struct Row {
  Prim prim;
  F real;   // (double…) → double, or → bool for tests
  G whole;  // (int bits, int64…) → int64 before wrapping
};

double sign_of(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
// The sigmoid, without overflow on either side.
double sigmoid_of(double a) { return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a)); }
I divide(I a, I b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<I>(-static_cast<U>(a)) : a / b;
}
I remainder_of(I a, I b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}

// Integer arithmetic goes through unsigned numbers, where wrapping around is defined.
#define TW_F(expression) [](double a) -> double { return expression; }
#define TW_FF(expression) [](double a, double b) -> double { return expression; }
#define TW_TEST(expression) [](double a, double b) -> bool { return expression; }
#define TW_I(expression) [](int, I a) -> I { return static_cast<I>(expression); }
#define TW_II(expression) [](int, I a, I b) -> I { return static_cast<I>(expression); }
constexpr std::tuple kMeaning{
    Row{Prim::add, TW_FF(a + b), TW_II(U(a) + U(b))},
    Row{Prim::sub, TW_FF(a - b), TW_II(U(a) - U(b))},
    Row{Prim::mul, TW_FF(a* b), TW_II(U(a) * U(b))},
    Row{Prim::div, TW_FF(a / b), TW_II(divide(a, b))},
    Row{Prim::rem, TW_FF(std::fmod(a, b)), TW_II(remainder_of(a, b))},
    Row{Prim::min, TW_FF(a < b || std::isnan(a) ? a : b), TW_II(a < b ? a : b)},
    Row{Prim::max, TW_FF(a > b || std::isnan(a) ? a : b), TW_II(a > b ? a : b)},
    Row{Prim::pow, TW_FF(std::pow(a, b)), kNone},
    Row{Prim::atan2, TW_FF(std::atan2(a, b)), kNone},
    Row{Prim::neg, TW_F(-a), TW_I(-U(a))},
    Row{Prim::abs, TW_F(std::abs(a)), TW_I(a < 0 ? -U(a) : U(a))},
    Row{Prim::sign, TW_F(sign_of(a)), TW_I((a > 0) - (a < 0))},
    Row{Prim::floor, TW_F(std::floor(a)), kNone},
    Row{Prim::ceil, TW_F(std::ceil(a)), kNone},
    Row{Prim::round, TW_F(std::nearbyint(a)), kNone},
    Row{Prim::trunc, TW_F(std::trunc(a)), kNone},
    Row{Prim::sqrt, TW_F(std::sqrt(a)), kNone},
    Row{Prim::rsqrt, TW_F(1 / std::sqrt(a)), kNone},
    Row{Prim::reciprocal, TW_F(1 / a), kNone},
    Row{Prim::exp, TW_F(std::exp(a)), kNone},
    Row{Prim::exp2, TW_F(std::exp2(a)), kNone},
    Row{Prim::expm1, TW_F(std::expm1(a)), kNone},
    Row{Prim::log, TW_F(std::log(a)), kNone},
    Row{Prim::log2, TW_F(std::log2(a)), kNone},
    Row{Prim::log1p, TW_F(std::log1p(a)), kNone},
    Row{Prim::sin, TW_F(std::sin(a)), kNone},
    Row{Prim::cos, TW_F(std::cos(a)), kNone},
    Row{Prim::tan, TW_F(std::tan(a)), kNone},
    Row{Prim::tanh, TW_F(std::tanh(a)), kNone},
    Row{Prim::erf, TW_F(std::erf(a)), kNone},
    Row{Prim::sigmoid, TW_F(sigmoid_of(a)), kNone},
    Row{Prim::fma, [](double a, double b, double c) -> double { return std::fma(a, b, c); }, kNone},
    Row{Prim::select, kNone, kNone},  // mixes a bool with any type: the interpreter's own loop
    Row{Prim::eq, TW_TEST(a == b), TW_II(a == b)},
    Row{Prim::ne, TW_TEST(a != b), TW_II(a != b)},
    Row{Prim::lt, TW_TEST(a < b), TW_II(a < b)},
    Row{Prim::le, TW_TEST(a <= b), TW_II(a <= b)},
    Row{Prim::gt, TW_TEST(a > b), TW_II(a > b)},
    Row{Prim::ge, TW_TEST(a >= b), TW_II(a >= b)},
    Row{Prim::isnan, [](double a) -> bool { return std::isnan(a); }, kNone},
    Row{Prim::bit_and, kNone, TW_II(a& b)},
    Row{Prim::bit_or, kNone, TW_II(a | b)},
    Row{Prim::bit_xor, kNone, TW_II(a ^ b)},
    Row{Prim::bit_not, kNone, [](int bits, I a) -> I { return bits == 1 ? a ^ 1 : ~a; }},
    Row{Prim::shl, kNone, [](int bits, I a, I b) -> I { return static_cast<I>(U(a) << (b & (bits - 1))); }},
    Row{Prim::shr, kNone, [](int bits, I a, I b) -> I { return a >> (b & (bits - 1)); }},
};
#undef TW_F
#undef TW_FF
#undef TW_TEST
#undef TW_I
#undef TW_II

// --- the table is complete

template <int P>
constexpr auto& row = std::get<P>(kMeaning);
template <class F>
constexpr bool is_some = !std::is_same_v<std::remove_cvref_t<F>, None>;

template <int P>
constexpr bool row_fits() {
  constexpr PrimInfo prim = kPrims[P];
  const bool real = prim.operands != PrimClass::integral;
  const bool whole = prim.operands != PrimClass::floating;
  return row<P>.prim == prim.prim &&
         (prim.prim == Prim::select ||
          (is_some<decltype(row<P>.real)> == real && is_some<decltype(row<P>.whole)> == whole));
}
template <int... P>
constexpr bool all_rows_fit(std::integer_sequence<int, P...>) {
  return (row_fits<P>() && ...);
}
static_assert(std::tuple_size_v<decltype(kMeaning)> == kPrimCount, "kMeaning has a row for each primitive");
static_assert(all_rows_fit(std::make_integer_sequence<int, kPrimCount>()),
              "kMeaning is in the order of Prim and defines each primitive on the types it takes");

// --- loops

template <class T, class F, class... Operands>
void each(std::size_t count, T* out, const F& f, const Operands*... operands) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(f(operands[i]...));
}

template <class T, class Result, class F>
void apply_row(const F& f, const T* a, const T* b, const T* c, Result* out, std::size_t count) {
  if constexpr (std::is_invocable_v<F, T, T, T>) {
    each(count, out, f, a, b, c);
  } else if constexpr (std::is_invocable_v<F, T, T>) {
    each(count, out, f, a, b);
  } else {
    each(count, out, f, a);
  }
}

using RealLoop = void (*)(const double*, const double*, const double*, double*, std::size_t);
using TestLoop = void (*)(const double*, const double*, I*, std::size_t);
using WholeLoop = void (*)(DType, const I*, const I*, I*, std::size_t);

// Whether the function on floats yields a bool.
template <class F>
constexpr bool is_test() {
  if constexpr (std::is_invocable_v<F, double, double>) {
    return std::is_same_v<std::invoke_result_t<F, double, double>, bool>;
  } else if constexpr (std::is_invocable_v<F, double>) {
    return std::is_same_v<std::invoke_result_t<F, double>, bool>;
  } else {
    return false;
  }
}

template <int P>
constexpr RealLoop real_loop() {
  using F = std::remove_cvref_t<decltype(row<P>.real)>;
  if constexpr (!is_some<F> || is_test<F>()) {
    return nullptr;
  } else {
    return [](const double* a, const double* b, const double* c, double* out, std::size_t count) {
      apply_row(row<P>.real, a, b, c, out, count);
    };
  }
}

template <int P>
constexpr TestLoop test_loop() {
  using F = std::remove_cvref_t<decltype(row<P>.real)>;
  if constexpr (!is_test<F>()) {
    return nullptr;
  } else {
    return [](const double* a, const double* b, I* out, std::size_t count) {
      apply_row(row<P>.real, a, b, a, out, count);
    };
  }
}

// Calls body with the wrap-around of `dtype` and its width as a constant, so that the loop inside is plain.
template <class Body>
void with_wrap(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::i32:
      return body([](I v) { return static_cast<I>(static_cast<std::int32_t>(v)); },
                  std::integral_constant<int, 32>());
    case DType::i8:
      return body([](I v) { return static_cast<I>(static_cast<std::int8_t>(v)); },
                  std::integral_constant<int, 8>());
    case DType::u8:
      return body([](I v) { return static_cast<I>(static_cast<std::uint8_t>(v)); },
                  std::integral_constant<int, 8>());
    case DType::boolean:
      return body([](I v) { return static_cast<I>(v != 0); }, std::integral_constant<int, 1>());
    default:
      return body([](I v) { return v; }, std::integral_constant<int, 64>());
  }
}

template <int P>
constexpr WholeLoop whole_loop() {
  using G = std::remove_cvref_t<decltype(row<P>.whole)>;
  if constexpr (!is_some<G>) {
    return nullptr;
  } else {
    return [](DType dtype, const I* a, const I* b, I* out, std::size_t count) {
      with_wrap(dtype, [&](auto wrap, auto bits) {
        if constexpr (std::is_invocable_v<G, int, I, I>) {
          each(count, out, [&](I x, I y) { return wrap(row<P>.whole(bits, x, y)); }, a, b);
        } else {
          each(count, out, [&](I x) { return wrap(row<P>.whole(bits, x)); }, a);
        }
      });
    };
  }
}

struct Loops {
  RealLoop real;
  TestLoop test;
  WholeLoop whole;
};
template <int... P>
constexpr std::array<Loops, kPrimCount> make_loops(std::integer_sequence<int, P...>) {
  return {Loops{real_loop<P>(), test_loop<P>(), whole_loop<P>()}...};
}
constexpr auto kLoops = make_loops(std::make_integer_sequence<int, kPrimCount>());

const Loops& loops(Prim prim) { return kLoops[static_cast<std::size_t>(prim)]; }

}  // namespace

void eval_f64(Prim prim, const double* a, const double* b, const double* c, double* out, std::size_t count) {
  TW_CHECK(loops(prim).real, std::string(name(prim)) + " has no float result");
  loops(prim).real(a, b, c, out, count);
}

void eval_i64(Prim prim, DType dtype, const I* a, const I* b, I* out, std::size_t count) {
  TW_CHECK(loops(prim).whole, std::string(name(prim)) + " is not defined on integers");
  // A comparison's result is a bool whatever it compares.
  loops(prim).whole(info(prim).to_bool ? DType::boolean : dtype, a, b, out, count);
}

void eval_test(Prim prim, const double* a, const double* b, I* out, std::size_t count) {
  TW_CHECK(loops(prim).test, std::string(name(prim)) + " does not test floats");
  loops(prim).test(a, b, out, count);
}

double eval_f64(Prim prim, double a, double b, double c) {
  double out = 0;
  eval_f64(prim, &a, &b, &c, &out, 1);
  return out;
}

I eval_i64(Prim prim, DType dtype, I a, I b) {
  I out = 0;
  eval_i64(prim, dtype, &a, &b, &out, 1);
  return out;
}

bool eval_test(Prim prim, double a, double b) {
  I out = 0;
  eval_test(prim, &a, &b, &out, 1);
  return out != 0;
}

}  // namespace tilewright::tile
