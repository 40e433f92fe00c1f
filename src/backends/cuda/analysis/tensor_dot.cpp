// What tensor cores and copy engine can take.
#include "backends/cuda/analysis/tensor_dot.h"

#include "backends/cuda/analysis/dot_loop.h"

#include <fmt/format.h>

namespace tilewright::cuda {

using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;

namespace {

class TensorDotFinder {
 public:
  TensorDotFinder(const Kernel& kernel, DotUnit unit) : kernel_(kernel), unit_(unit), reader_(kernel, unit) {}

  Result<TensorDot> run() const {
    const Op* loop = nullptr;
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot || op.kind == OpKind::branch) return refuse_dot("outside of a loop of dots");
      if (op.kind != OpKind::loop) continue;
      if (loop) return refuse_dot("several loops");
      loop = &op;
    }
    if (!loop) return refuse_dot("no loop");
    const auto found = find_dot_loop(kernel_, *loop);
    if (!found || !found->only_dots || found->dots.size() != 1 || loop->results.size() != 1)
      return refuse_dot("the loop does more than one dot");
    const Dot& dot = found->dots[0];
    if (!dot.a.load || !dot.b.load) return refuse_dot("something is computed on an operand");
    TensorDot out{.loop = loop, .dot = dot.op};
    out.dtype = kernel_.type(dot.a.value).dtype;
    const DType other = kernel_.type(dot.b.value).dtype;
    const bool of_f8 = is_f8(out.dtype) && is_f8(other);
    out.two_level = of_f8 || dot.op->precision == tile::DotPrecision::two_level;
    if (out.two_level && unit_ != DotUnit::wgmma && unit_ != DotUnit::fma_blocks)
      return refuse_dot("wgmma alone adds each block's products by themselves");
    if ((other != out.dtype && !of_f8) || !takes(*dot.op, out.dtype) ||
        kernel_.type(dot.op->results[0]).dtype != (out.dtype == DType::i8 ? DType::i32 : DType::f32))
      return refuse_dot(types_taken());
    auto a = reader_.read(*dot.a.load, dot.a.transposed ? 1 : 0);
    if (!a) return a.error();
    auto b = reader_.read(*dot.b.load, dot.b.transposed ? 0 : 1);
    if (!b) return b.error();
    out.a = *a, out.b = *b;
    out.trips = reader_.trips(*loop);
    out.from_zero = !out.two_level && out.trips > 0 && reader_.is_zero_tile(loop->operands[3]);
    return out;
  }

 private:
  bool takes(const Op& dot, DType dtype) const {
    if (unit_ == DotUnit::fma_blocks) return dtype == DType::f32;
    const bool of8 = is_f8(dtype) || dtype == DType::i8;
    return dtype == DType::bf16 || dtype == DType::f16 || (of8 && unit_ == DotUnit::wgmma) ||
           dot.precision == tile::DotPrecision::tf32;
  }
  const char* types_taken() const {
    return unit_ == DotUnit::fma_blocks
               ? "fma_blocks multiplies f32"
               : "tensor cores multiply bf16 or f16 into f32, f32 where it may be tf32, "
                 "wgmma 8-bit floats and integers, too";
  }

  const Kernel& kernel_;
  DotUnit unit_;
  OperandReader reader_;
};

}  // namespace

Result<TensorDot> find_tensor_dot(const Kernel& kernel, DotUnit unit) {
  return TensorDotFinder(kernel, unit).run();
}

}  // namespace tilewright::cuda
