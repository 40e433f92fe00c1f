// The list of families.
#include "sweep/families.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

namespace tilewright::sweep {

namespace {

constexpr Family kFamilies[] = {
    {"pointwise", "a chain of elementwise ops with broadcast operands", 1.5, pointwise},
    {"views", "slices, pads, concats and permutes with arithmetic between them", 1.5, views},
    {"softmax", "softmax or log_softmax over any axis or several, scaled or masked", 1.2, softmax_rows},
    {"norm", "layer_norm, rms_norm or l2 over last, middle, first or several axes, with a residual", 1.2,
     norm},
    {"norm_gradient", "a loss through layer_norm or rms_norm, and its gradients", 0.8, norm_gradient},
    {"channel_norm", "batch, group or instance norm of NCHW, with an activation", 1, channel_norm},
    {"reduction", "sum, mean, max, var or logsumexp over any axes, with a prologue", 1.5, reduction},
    {"scan", "cumsum over any axis, with a prologue", 0.7, scan},
    {"argmax", "argmax or argmin over any axis", 0.7, argmax_rows},
    {"matmul", "a product, M, N, K of any kind, transposed operands, prologue and epilogue", 2.5, matmul},
    {"matmul_batched", "the same for each matrix of a batch", 1.5, matmul_batched},
    {"matmul_gradient", "a loss through a product, and its gradients", 1, matmul_gradient},
    {"rotary", "rotary embeddings of queries or keys, halves or pairs", 0.8, rotary},
    {"attention", "attention: causal, windows, key lengths, shared heads, decoding", 1.5, attention},
    {"attention_gradient", "a loss through attention, and its gradients", 1, attention_gradient},
    {"embedding", "rows of a table, positions added, perhaps a norm", 0.8, embedding},
    {"embedding_gradient", "the gradient of a table", 0.7, embedding_gradient},
    {"loss", "cross entropy, mse, binary cross entropy, KL", 0.8, loss},
    {"loss_gradient", "the same with gradients", 0.8, loss_gradient},
    {"optimizer", "AdamW, or SGD with momentum", 0.8, optimizer},
    {"mlp", "two or three products with gelu, relu or swiglu", 1, mlp},
    {"mlp_gradient", "a loss through one, and its gradients", 1, mlp_gradient},
    {"block", "a transformer block", 0.8, block},
    {"block_gradient", "a loss through one, and its gradients", 0.8, block_gradient},
};

}  // namespace

std::span<const Family> all_families() { return kFamilies; }

const Family& family_named(const std::string& name) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (name == family.name) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  throw Error(fmt::format("no family is called '{}'; there are {}", name, known));
}

}  // namespace tilewright::sweep
