// The operators and functions on tile values: each is one call of Builder::apply.
#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include "base/no_value.h"

namespace tilewright::tile {

namespace {
// The builder of the first operand that has one. If none has, throws what apply() would say.
Builder& builder_of(Prim prim, std::initializer_list<const Operand*> operands, const Location& where) {
  int number = 0, undefined = -1;
  for (const Operand* o : operands) {
    if (!o->is_literal() && o->value.defined()) return o->value.builder(where);
    if (!o->is_literal() && undefined < 0) undefined = number;
    ++number;
  }
  if (undefined < 0)
    throw Error(fmt::format("{}: at least one operand must be a value", info(prim).name), where);
  throw Error(fmt::format("{}: operand {} {}", info(prim).name, undefined, kNoValue), where);
}
Value unary(Prim prim, const Operand& a, const Location& where) {
  return builder_of(prim, {&a}, where).apply(prim, {a}, where);
}
Value binary(Prim prim, const Operand& a, const Operand& b, const Location& where) {
  return builder_of(prim, {&a, &b}, where).apply(prim, {a, b}, where);
}
}  // namespace

Value operator+(const Operand& a, const Operand& b) { return binary(Prim::add, a, b, a.where); }
Value operator-(const Operand& a, const Operand& b) { return binary(Prim::sub, a, b, a.where); }
Value operator*(const Operand& a, const Operand& b) { return binary(Prim::mul, a, b, a.where); }
Value operator/(const Operand& a, const Operand& b) { return binary(Prim::div, a, b, a.where); }
Value operator%(const Operand& a, const Operand& b) { return binary(Prim::rem, a, b, a.where); }
Value operator-(const Operand& a) { return unary(Prim::neg, a, a.where); }
Value operator<(const Operand& a, const Operand& b) { return binary(Prim::lt, a, b, a.where); }
Value operator<=(const Operand& a, const Operand& b) { return binary(Prim::le, a, b, a.where); }
Value operator>(const Operand& a, const Operand& b) { return binary(Prim::gt, a, b, a.where); }
Value operator>=(const Operand& a, const Operand& b) { return binary(Prim::ge, a, b, a.where); }
Value operator==(const Operand& a, const Operand& b) { return binary(Prim::eq, a, b, a.where); }
Value operator!=(const Operand& a, const Operand& b) { return binary(Prim::ne, a, b, a.where); }
Value operator&(const Operand& a, const Operand& b) { return binary(Prim::bit_and, a, b, a.where); }
Value operator|(const Operand& a, const Operand& b) { return binary(Prim::bit_or, a, b, a.where); }
Value operator~(const Operand& a) { return unary(Prim::bit_not, a, a.where); }

Value where(Value condition, const Operand& a, const Operand& b, const Location& l) {
  const Operand first(std::move(condition), l);
  return builder_of(Prim::select, {&first, &a, &b}, l).apply(Prim::select, {first, a, b}, l);
}
Value min(const Operand& a, const Operand& b, const Location& l) { return binary(Prim::min, a, b, l); }
Value max(const Operand& a, const Operand& b, const Location& l) { return binary(Prim::max, a, b, l); }
Value fma(const Operand& a, const Operand& b, const Operand& c, const Location& l) {
  return builder_of(Prim::fma, {&a, &b, &c}, l).apply(Prim::fma, {a, b, c}, l);
}

Value exp(Value a, const Location& l) { return unary(Prim::exp, Operand(std::move(a), l), l); }
Value exp2(Value a, const Location& l) { return unary(Prim::exp2, Operand(std::move(a), l), l); }
Value expm1(Value a, const Location& l) { return unary(Prim::expm1, Operand(std::move(a), l), l); }
Value log(Value a, const Location& l) { return unary(Prim::log, Operand(std::move(a), l), l); }
Value log2(Value a, const Location& l) { return unary(Prim::log2, Operand(std::move(a), l), l); }
Value log1p(Value a, const Location& l) { return unary(Prim::log1p, Operand(std::move(a), l), l); }
Value sin(Value a, const Location& l) { return unary(Prim::sin, Operand(std::move(a), l), l); }
Value cos(Value a, const Location& l) { return unary(Prim::cos, Operand(std::move(a), l), l); }
Value tanh(Value a, const Location& l) { return unary(Prim::tanh, Operand(std::move(a), l), l); }
Value erf(Value a, const Location& l) { return unary(Prim::erf, Operand(std::move(a), l), l); }
Value sigmoid(Value a, const Location& l) { return unary(Prim::sigmoid, Operand(std::move(a), l), l); }
Value sqrt(Value a, const Location& l) { return unary(Prim::sqrt, Operand(std::move(a), l), l); }
Value rsqrt(Value a, const Location& l) { return unary(Prim::rsqrt, Operand(std::move(a), l), l); }
Value abs(Value a, const Location& l) { return unary(Prim::abs, Operand(std::move(a), l), l); }
Value floor(Value a, const Location& l) { return unary(Prim::floor, Operand(std::move(a), l), l); }
Value ceil(Value a, const Location& l) { return unary(Prim::ceil, Operand(std::move(a), l), l); }
Value round(Value a, const Location& l) { return unary(Prim::round, Operand(std::move(a), l), l); }

Value cdiv(const Operand& a, Index b) {
  if (b < 1) throw Error(fmt::format("cdiv: the divisor {} is not positive", b), a.where);
  const Operand sum(binary(Prim::add, a, b - 1, a.where), a.where);
  return binary(Prim::div, sum, b, a.where);
}

}  // namespace tilewright::tile
