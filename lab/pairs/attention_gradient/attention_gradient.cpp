// attention_gradient: attention and its gradients, y, dq, dk and dv from q, k, v and dy, as a step of
// training needs them: 14 FLOPs for each query, key it sees and element of depth, 4 forward and 10 backward.
#include "pairs/attention_gradient_reference.h"
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

#include <tilewright/tensor/gradient.h>

namespace tilewright::lab {

namespace {

// The inputs are q, k, v, dy, then those of the mask.
std::vector<Tensor> without_dy(const std::vector<Tensor>& in) {
  std::vector<Tensor> out(in.begin(), in.begin() + 3);
  out.insert(out.end(), in.begin() + 4, in.end());
  return out;
}

std::vector<Tensor> gradients(const std::vector<Tensor>& in, const AttentionWork& work) {
  const auto loss = [&](const std::vector<Tensor>& x) {
    const Tensor y = attention(x[0], x[1], x[2], {.mask = mask_function(work, without_dy(x))});
    return std::vector{sum(cast(y, DType::f32) * cast(x[3], DType::f32)), y};
  };
  const std::vector<Tensor> all = tensors_of(value_and_grad(loss, {0, 1, 2})(in));  // loss, y, dq, dk, dv
  return {all.begin() + 1, all.end()};
}

// The same by separate calls.
std::vector<Tensor> gradients_by_calls(const std::vector<Tensor>& in, const AttentionWork& work) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], &dy = in[3];
  const double scale = work.sizes.scale();
  const Tensor p = softmax(masked(matmul(q, swap_axes(k, 2, 3)) * scale, work, without_dy(in)));
  const Tensor dp = matmul(dy, swap_axes(v, 2, 3));
  const Tensor ds = p * (dp - sum(p * dp, {-1}, Keep::yes));
  return {matmul(p, v), matmul(ds, k) * scale, matmul(swap_axes(ds, 2, 3), q) * scale,
          matmul(swap_axes(p, 2, 3), dy)};
}

Result<PairInstance> make_attention_gradient(const Knobs& knobs, LabDevice& device) {
  const Index length = knobs.integer("length");
  AttentionWork work = attention_work("attention_gradient", knobs, length, length);
  work.mask.causal = knobs.text("causal") == "yes";
  if (work.sizes.kv_heads != work.sizes.heads) throw Error("attention_gradient: as many heads of k as of q");
  TensorWorkload w = attention_workload(work);
  const AttentionSizes& s = work.sizes;
  const std::vector<SeenKeys> seen = seen_keys(s, work.mask);
  const DType dtype = work.dtype;
  w.inputs.insert(w.inputs.begin() + 3, normal_input("dy", s.of_queries(), dtype));
  const ToleranceRule rule{.storage = dtype, .reduction = s.depth + s.keys + s.queries, .operations = 20};
  w.outputs = {{"y", dtype, s.of_queries(), rule},
               {"dq", dtype, s.of_queries(), rule},
               {"dk", dtype, s.of_keys(), rule},
               {"dv", dtype, s.of_keys(), rule}};
  w.cost = product_cost({w.inputs.begin(), w.inputs.begin() + 4}, w.outputs,
                        14.0 / 4 * attention_flops(s, seen), dtype);
  w.function = [work](const std::vector<Tensor>& in) { return gradients(in, work); };
  w.eager = [work](const std::vector<Tensor>& in) { return gradients_by_calls(in, work); };
  const ErrorScale scale(rule, s.of_queries().size());
  w.reference = [s, seen = seen[0], scale](const HostArrays& in, ThreadPool& pool) {
    return attention_gradient_reference(in, s, seen, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair attention_gradient_pair() {
  std::vector<Knob> knobs = {batch_knob(1)};
  for (Knob& knob : head_knobs(4, 16, 64, 128)) knobs.push_back(std::move(knob));
  knobs.push_back(
      {.name = "length", .values = {Index{1024}}, .doc = "positions", .cuda_values = {Index{4096}}});
  knobs.push_back(causal_knob("yes"));
  knobs.push_back(product_dtype_knob());
  return {.name = "attention_gradient",
          .doc = "attention and its gradients with respect to q, k and v",
          .knobs = std::move(knobs),
          .make = make_attention_gradient,
          .tiny = {{"heads=2", "length=70,130", "depth=19", "causal=no,yes", "dtype=f32,bf16"}},
          .suites = {{"products", {"length=256"}}}};
}

}  // namespace tilewright::lab
