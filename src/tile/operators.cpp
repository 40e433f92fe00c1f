// The operators and functions on tile values: each is one call of Builder::apply.
#include <tilewright/tile/builder.h>

namespace tilewright::tile {

namespace {
Builder& builder_of(std::initializer_list<const Operand*> operands) {
  for (const Operand* o : operands)
    if (!o->is_literal()) return o->value.builder();
  throw Error("tile: an operator needs at least one tile value");
}
Value binary(Prim prim, const Operand& a, const Operand& b, const Location& where) {
  return builder_of({&a, &b}).apply(prim, {a, b}, where);
}
}  // namespace

Value operator+(const Operand& a, const Operand& b) { return binary(Prim::add, a, b, a.where); }
Value operator-(const Operand& a, const Operand& b) { return binary(Prim::sub, a, b, a.where); }
Value operator*(const Operand& a, const Operand& b) { return binary(Prim::mul, a, b, a.where); }
Value operator/(const Operand& a, const Operand& b) { return binary(Prim::div, a, b, a.where); }
Value operator%(const Operand& a, const Operand& b) { return binary(Prim::rem, a, b, a.where); }
Value operator-(const Value& a) { return a.builder().apply(Prim::neg, {a}); }
Value operator<(const Operand& a, const Operand& b) { return binary(Prim::lt, a, b, a.where); }
Value operator<=(const Operand& a, const Operand& b) { return binary(Prim::le, a, b, a.where); }
Value operator>(const Operand& a, const Operand& b) { return binary(Prim::gt, a, b, a.where); }
Value operator>=(const Operand& a, const Operand& b) { return binary(Prim::ge, a, b, a.where); }
Value operator==(const Operand& a, const Operand& b) { return binary(Prim::eq, a, b, a.where); }
Value operator!=(const Operand& a, const Operand& b) { return binary(Prim::ne, a, b, a.where); }
Value operator&(const Operand& a, const Operand& b) { return binary(Prim::bit_and, a, b, a.where); }
Value operator|(const Operand& a, const Operand& b) { return binary(Prim::bit_or, a, b, a.where); }
Value operator~(const Value& a) { return a.builder().apply(Prim::bit_not, {a}); }

Value where(Value condition, const Operand& a, const Operand& b, const Location& l) {
  return condition.builder().apply(Prim::select, {condition, a, b}, l);
}
Value min(const Operand& a, const Operand& b, const Location& l) { return binary(Prim::min, a, b, l); }
Value max(const Operand& a, const Operand& b, const Location& l) { return binary(Prim::max, a, b, l); }
Value fma(const Operand& a, const Operand& b, const Operand& c, const Location& l) {
  return builder_of({&a, &b, &c}).apply(Prim::fma, {a, b, c}, l);
}

Value exp(Value a, const Location& l) { return a.builder().apply(Prim::exp, {a}, l); }
Value exp2(Value a, const Location& l) { return a.builder().apply(Prim::exp2, {a}, l); }
Value expm1(Value a, const Location& l) { return a.builder().apply(Prim::expm1, {a}, l); }
Value log(Value a, const Location& l) { return a.builder().apply(Prim::log, {a}, l); }
Value log2(Value a, const Location& l) { return a.builder().apply(Prim::log2, {a}, l); }
Value log1p(Value a, const Location& l) { return a.builder().apply(Prim::log1p, {a}, l); }
Value sin(Value a, const Location& l) { return a.builder().apply(Prim::sin, {a}, l); }
Value cos(Value a, const Location& l) { return a.builder().apply(Prim::cos, {a}, l); }
Value tanh(Value a, const Location& l) { return a.builder().apply(Prim::tanh, {a}, l); }
Value erf(Value a, const Location& l) { return a.builder().apply(Prim::erf, {a}, l); }
Value sigmoid(Value a, const Location& l) { return a.builder().apply(Prim::sigmoid, {a}, l); }
Value sqrt(Value a, const Location& l) { return a.builder().apply(Prim::sqrt, {a}, l); }
Value rsqrt(Value a, const Location& l) { return a.builder().apply(Prim::rsqrt, {a}, l); }
Value abs(Value a, const Location& l) { return a.builder().apply(Prim::abs, {a}, l); }
Value floor(Value a, const Location& l) { return a.builder().apply(Prim::floor, {a}, l); }
Value ceil(Value a, const Location& l) { return a.builder().apply(Prim::ceil, {a}, l); }
Value round(Value a, const Location& l) { return a.builder().apply(Prim::round, {a}, l); }

Value cdiv(const Operand& a, Index b) { return (a + (b - 1)) / b; }

}  // namespace tilewright::tile
