// Norms, linear layers, losses and attention, as several families use them.
#include "sweep/families/parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::sweep {

namespace {

constexpr const char* kRmsNorm =
    "def rms_norm(x, weight, eps=1e-5):\n"
    "    if hasattr(F, \"rms_norm\"):  # since PyTorch 2.4\n"
    "        return F.rms_norm(x, (x.shape[-1],), weight, eps)\n"
    "    return x * (x.float().square().mean(-1, keepdim=True) + eps).rsqrt().to(x.dtype) * weight\n";

}  // namespace

std::string last_axis_norm(Draft& d, const std::string& x, Index columns, bool rms,
                           const std::string& suffix) {
  const std::string gamma = d.factor("gamma" + suffix, columns);
  if (rms) {
    const std::string y = d.ours("rms_norm", {x, gamma}, {{"epsilon", "1e-5"}});
    d.torch_helper(kRmsNorm);
    d.torch(y, fmt::format("rms_norm({}, {})", x, gamma));
    return y;
  }
  const std::string beta = d.addend("beta" + suffix, columns);
  const std::string y = d.ours("layer_norm", {x, gamma, beta}, {{"epsilon", "1e-5"}});
  d.torch(y, fmt::format("F.layer_norm({}, ({},), {}, {})", x, columns, gamma, beta));
  return y;
}

std::vector<std::string> norm_weights(bool rms, const std::string& suffix) {
  std::vector<std::string> names = {"gamma" + suffix};
  if (!rms) names.push_back("beta" + suffix);
  return names;
}

std::string linear(Draft& d, const std::string& x, const std::string& name, Index n, Index k,
                   const std::string& bias) {
  const std::string w = d.weight(name, Shape({n, k}), k);
  std::string y = d.ours("matmul", {x, d.ours("swap_axes", {w}, {{"a", "0"}, {"b", "1"}})});
  if (!bias.empty()) y = d.ours("add", {y, d.addend(bias, n)});
  d.torch(y, bias.empty() ? fmt::format("F.linear({}, {})", x, w)
                          : fmt::format("F.linear({}, {}, {})", x, w, bias));
  return y;
}

// What the mean's division takes from the gradient of each element is given back, as far as a loss of a few
// units stays finite in f16.
std::string scaled_loss(Draft& d, const std::string& loss, Index elements) {
  if (d.dtype() != DType::f16) return loss;
  return d.add("mul", {loss, elements < Index{1} << 20 ? "1024" : "16384"});
}

std::string mse_loss(Draft& d, const std::string& y, const Shape& shape) {
  const std::string target = d.input("target", shape);
  const std::string value = d.ours("mean", {d.ours("square", {d.ours("sub", {y, target})})}, {{"keep", "0"}});
  d.torch(value, fmt::format("F.mse_loss({}, {})", y, target));
  return scaled_loss(d, value, shape.size());
}

namespace {

// Attention written out, for PyTorch before 2.0; enable_gqa is of 2.5.
constexpr const char* kWrittenAttention =
    "def written_attention(q, k, v, attn_mask=None, is_causal=False, enable_gqa=False):\n"
    "    if enable_gqa:\n"
    "        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))\n"
    "    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])\n"
    "    if is_causal:\n"
    "        attn_mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()\n"
    "    if attn_mask is not None:\n"
    "        scores = scores.masked_fill(~attn_mask, -math.inf)\n"
    "    return torch.softmax(scores, -1) @ v\n"
    "\n"
    "attend = getattr(F, \"scaled_dot_product_attention\", written_attention)\n";

// Made once: people keep masks that do not change.
constexpr const char* kKeptMask =
    "kept = {}\n"
    "\n"
    "def band(queries, keys, before, device):\n"
    "    if \"mask\" not in kept:\n"
    "        i = torch.arange(queries, device=device)[:, None] + keys - queries\n"
    "        j = torch.arange(keys, device=device)[None, :]\n"
    "        kept[\"mask\"] = (j <= i) & (i - j <= before)\n"
    "    return kept[\"mask\"]\n";

constexpr const char* kLengthMask =
    "def up_to(lengths, keys):\n"
    "    return (torch.arange(keys, device=lengths.device) < lengths[:, None])[:, None, None, :]\n";

// Query-key pairs that a mask leaves nobody to compute, of each head.
double unseen_pairs(const AttentionShape& at, MaskKind mask, Index before) {
  const auto q = static_cast<double>(at.queries), k = static_cast<double>(at.keys);
  if (mask == MaskKind::lengths) return 0.5 * q * k;  // at most, by the lengths' lower end
  double seen = q * k;
  if (mask == MaskKind::causal || mask == MaskKind::window) {
    seen = 0;
    for (Index i = 0; i < at.queries; ++i) {
      const Index last = i + at.keys - at.queries;
      const Index first = mask == MaskKind::window ? std::max(Index{0}, last - before) : 0;
      seen += static_cast<double>(last - first + 1);
    }
  }
  return q * k - seen;
}

}  // namespace

std::string attention_of(Draft& d, const std::string& q, const std::string& k, const std::string& v,
                         const AttentionShape& at, MaskKind mask) {
  const Index before =
      std::max(Index{1}, static_cast<Index>(static_cast<double>(at.keys) * (0.05 + 0.3 * d.sizes.unit())));
  Options options;
  std::string given;
  d.torch_helper(kWrittenAttention);
  if (mask == MaskKind::causal) {
    options["masks"] = fmt::format("causal:{}", at.keys - at.queries);
    // Its own mask ends both at the first key; a single query sees all of them.
    if (at.keys == at.queries) {
      given = ", is_causal=True";
    } else if (at.queries > 1) {
      d.torch_helper(kKeptMask);
      given = fmt::format(", attn_mask=band({}, {}, {}, {}.device)", at.queries, at.keys, at.keys, q);
    }
  } else if (mask == MaskKind::window) {
    options["masks"] = fmt::format("window:{}:0:{}", before, at.keys - at.queries);
    d.torch_helper(kKeptMask);
    given = fmt::format(", attn_mask=band({}, {}, {}, {}.device)", at.queries, at.keys, before, q);
  } else if (mask == MaskKind::lengths) {
    const std::string lengths =
        d.integers("lengths", Shape({at.batch}), at.keys + 1, std::max(Index{1}, at.keys / 2));
    options["masks"] = fmt::format("prefix:{}", lengths);
    for (const std::string& half : {k, v})
      if (d.is_input(half))
        d.reads_of(half, 0.5 * static_cast<double>(at.batch * at.kv_heads * at.keys * at.depth));
    d.torch_helper(kLengthMask);
    given = fmt::format(", attn_mask=up_to({}, {})", lengths, at.keys);
  }
  if (at.kv_heads != at.heads) given += ", enable_gqa=True";
  const std::string y = d.ours("attention", {q, k, v}, options);
  d.torch(y, fmt::format("attend({}, {}, {}{})", q, k, v, given));
  d.unseen_flops(4 * static_cast<double>(at.batch * at.heads * at.depth) * unseen_pairs(at, mask, before));
  return y;
}

}  // namespace tilewright::sweep
