// Every pointwise row: what `lower` writes means what `eval` computes, on ordinary and odd numbers of each
// type. The two are written independently; the tile side runs on the primitives' meaning in tile/prim_eval.h.
#include "support/op_samples.h"

#include "ops/ops.h"
#include "tile/prim_eval.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace tilewright::test {
namespace {

constexpr Index kCount = 64;

// A kernel of one program: loads the operands, casts narrow floats to f32, applies the row.
tile::Kernel kernel_of(const ir::Op& op, const OpSample& sample, DType result) {
  tile::Builder k("row");
  std::vector<tile::Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    const DType dtype = sample.operands[i].dtype;
    const tile::View view = k.view(fmt::format("x{}", i), dtype, {kCount});
    operands.push_back(k.cast(k.load(view, {0}, {.shape = {kCount}}), compute_dtype(dtype)));
  }
  const tile::View out = k.view("y", compute_dtype(result), {kCount});
  k.store(out, {0}, op.lower(k, operands, sample.attrs));
  return k.finish({{{1, 1}}});
}

// Runs such a kernel in float64 and int64.
class Interpreter {
 public:
  Interpreter(const tile::Kernel& kernel, const std::vector<ir::HostTensor>& views) : kernel_(kernel) {
    for (const tile::Op& op : kernel.body.ops) run(op, views);
  }
  ir::HostTensor result;

 private:
  using Data = ir::HostTensor;
  const Data& in(const tile::Op& op, std::size_t i) { return data_.at(op.operands[i]); }

  void run(const tile::Op& op, const std::vector<ir::HostTensor>& views) {
    if (op.kind == tile::OpKind::store) {
      result = in(op, 0);
      return;
    }
    data_[op.results[0]] = computed(op, views);
  }

  Data computed(const tile::Op& op, const std::vector<ir::HostTensor>& views) {
    if (op.kind == tile::OpKind::load) return views[static_cast<std::size_t>(op.param)];
    if (op.kind == tile::OpKind::broadcast) return in(op, 0);
    Data out{.type = {kernel_.type(op.results[0]).dtype, {kCount}}};
    const std::size_t floats = is_float(out.type.dtype) ? kCount : 0;
    out.f.assign(floats, op.number.f);
    out.i.assign(kCount - floats, op.number.i);
    if (op.kind == tile::OpKind::cast)  // a narrow float in f32: the same number
      out.f = in(op, 0).f;
    else if (op.kind == tile::OpKind::apply)
      apply(op, out);
    else
      EXPECT_EQ(op.kind, tile::OpKind::constant) << "a row lowers to " << name(op.kind);
    return out;
  }

  void apply(const tile::Op& op, Data& out) {
    for (std::size_t n = 0; n < kCount; ++n) {
      const Data& a = in(op, op.prim == tile::Prim::select ? 1 : 0);
      auto real = [&](std::size_t i) { return i < op.operands.size() ? in(op, i).f[n] : 0.0; };
      auto whole = [&](std::size_t i) { return i < op.operands.size() ? in(op, i).i[n] : 0; };
      if (op.prim == tile::Prim::select) {
        const Data& chosen = in(op, 0).i[n] != 0 ? in(op, 1) : in(op, 2);
        if (is_float(out.type.dtype))
          out.f[n] = chosen.f[n];
        else
          out.i[n] = chosen.i[n];
      } else if (is_float(a.type.dtype)) {
        if (is_bool(out.type.dtype))
          out.i[n] = tile::eval_test(op.prim, real(0), real(1));
        else
          out.f[n] = tile::eval_f64(op.prim, real(0), real(1), real(2));
      } else {
        out.i[n] = tile::eval_i64(op.prim, a.type.dtype, whole(0), whole(1));
      }
    }
  }

  const tile::Kernel& kernel_;
  std::map<tile::ValueId, Data> data_;
};

TEST(PointwiseRows, LowerMeansWhatEvalComputes) {
  int checked = 0;
  Random random(3);
  for (const ir::Op* op : ops::all_ops()) {
    if (op->kind != ir::OpClass::pointwise) continue;
    for (DType dtype : kAllDTypes) {
      OpSample sample{std::vector<ir::Type>(static_cast<std::size_t>(op->arity), {dtype, {kCount}}), {}};
      if (op->name == "where") sample.operands[0].dtype = DType::boolean;
      ir::Type type;
      try {
        type = op->infer(sample.operands, sample.attrs);
      } catch (const Error&) {
        continue;
      }
      for (Values values : {Values::ordinary, Values::odd}) {
        const auto operands = sample_operands(*op, sample, random, values);
        std::vector<const ir::HostTensor*> pointers;
        pointers.reserve(operands.size());
        for (const ir::HostTensor& t : operands) pointers.push_back(&t);
        ir::HostTensor wanted = op->eval(pointers, sample.attrs, type);
        wanted.type.dtype = compute_dtype(type.dtype);
        const tile::Kernel kernel = kernel_of(*op, sample, type.dtype);
        const Interpreter run(kernel, operands);
        EXPECT_EQ(difference(run.result, wanted, {1e-15, 0}), "") << op->name << " " << name(dtype);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 600);
}

TEST(Rows, OnlyPointwiseOnesHaveALoweringOfTheirOwn) {
  for (const ir::Op* op : ops::all_ops())
    EXPECT_EQ(op->lower == ir::structural, op->kind != ir::OpClass::pointwise) << op->name;
}

}  // namespace
}  // namespace tilewright::test
