// The row of matmul: [.., M, K] x [.., K, N] with equal batch axes.
#include "ops/row_parts.h"

#include "ops/dgemm.h"
#include "ops/promote.h"

namespace tilewright::ops {

namespace {

// Floats keep their type, 8-bit floats give f32 and 8-bit integers i32, unless `dtype` says otherwise.
DType result_dtype(Types operands, const Attrs& attrs) {
  if (attrs.has("dtype")) return attrs.dtype("dtype");
  const DType dtype = promote(operands[0].dtype, operands[1].dtype);
  if (is_f8(dtype)) return DType::f32;
  return dtype == DType::i8 || dtype == DType::u8 ? DType::i32 : dtype;
}

Type infer_matmul(Types operands, const Attrs& attrs) {
  const Shape& a = operands[0].shape;
  const Shape& b = operands[1].shape;
  const DType x = operands[0].dtype;
  const DType y = operands[1].dtype;
  if ((x != y && !(is_f8(x) && is_f8(y))) || is_bool(x))
    throw Error(fmt::format("operand types do not meet, {} and {}", name(x), name(y)));
  if (a.rank() < 2 || a.rank() != b.rank())
    throw Error(
        fmt::format("wants two ranks that are equal and at least 2, {} x {}", to_string(a), to_string(b)));
  const int rank = a.rank();
  if (a[rank - 1] != b[rank - 2])
    throw Error(fmt::format("inner dims differ, {} x {}", to_string(a), to_string(b)));
  for (int i = 0; i + 2 < rank; ++i)
    if (a[i] != b[i]) throw Error(fmt::format("batch dims differ, {} x {}", to_string(a), to_string(b)));
  Shape shape = a;
  shape[rank - 1] = b[rank - 1];
  const DType dtype = result_dtype(operands, attrs);
  if (is_float(dtype) != is_float(x) || is_bool(dtype))
    throw Error(fmt::format("{} operands cannot give {}", name(x), name(dtype)));
  return {dtype, shape};
}

void multiply(const std::int64_t* a, const std::int64_t* b, std::int64_t* c, Index m, Index n, Index k) {
  for (Index i = 0; i < m; ++i)
    for (Index p = 0; p < k; ++p)
      for (Index j = 0; j < n; ++j)
        c[i * n + j] =
            static_cast<std::int64_t>(modular(c[i * n + j]) + modular(a[i * k + p]) * modular(b[p * n + j]));
}

void multiply(const double* a, const double* b, double* c, Index m, Index n, Index k) {
  dgemm(a, b, c, m, n, k);
}

HostTensor eval_matmul(HostTensors x, const Attrs&, const Type& type) {
  HostTensor out = empty_host(type);
  const Shape& a = x[0]->type.shape;
  const int rank = a.rank();
  const Index m = a[rank - 2];
  const Index k = a[rank - 1];
  const Index n = type.shape[rank - 1];
  if (type.shape.size() == 0 || k == 0) return out;
  for (Index batch = 0; batch < type.shape.size() / (m * n); ++batch) {
    if (is_float(type.dtype))
      multiply(x[0]->f.data() + batch * m * k, x[1]->f.data() + batch * k * n, out.f.data() + batch * m * n,
               m, n, k);
    else
      multiply(x[0]->i.data() + batch * m * k, x[1]->i.data() + batch * k * n, out.i.data() + batch * m * n,
               m, n, k);
  }
  wrap_values(out);
  return out;
}

// Beside 16-bit operands the gradient is cast to their type, whatever the result's was: its products are
// 16-bit ones, too, summed in f32 and rounded once. Else it keeps its precision where it is wider.
Grads vjp_matmul(Args x, const Attrs&, Value, Value g) {
  const auto operand_dtype = [&](Value other) {
    const bool narrow = is_float(other.dtype()) && size_bytes(other.dtype()) == 2;
    return narrow ? other.dtype() : promote(g.dtype(), other.dtype());
  };
  const auto times = [](Value a, Value b, DType at, DType dtype) {
    return cast(matmul(cast(a, at), cast(b, at)), dtype);
  };
  return {times(g, swap_axes(x[1], -1, -2), operand_dtype(x[1]), x[0].dtype()),
          times(swap_axes(x[0], -1, -2), g, operand_dtype(x[0]), x[1].dtype())};
}

}  // namespace

constexpr ir::Op kMatmul = checked(
    {.name = "matmul",
     .arity = 2,
     .kind = OpClass::matmul,
     .doc = "Matrix product of the last two axes, batched over the others. 8-bit floats give f32, 8-bit "
            "integers i32, unless `dtype` names the result's type. The gradient that reaches 16-bit operands "
            "is rounded to their type; products with it are summed in f32 and rounded once.",
     .infer = infer_matmul,
     .eval = eval_matmul,
     .vjp = vjp_matmul,
     .lower = structural});

}  // namespace tilewright::ops
