"""Indexing, normalisation, losses, products and attention of torch_ops.py. What an op does not use (rows past a count, pages
unseen, scores masked away) takes no part here, so that NaN in it reaches nothing."""
import math
import types

import torch

import program as text
from torch_ops import Value, is_float, promote
from torch_views import extreme_of


def wide(d):
    return "f64" if d == "f64" else "f32"


# --- indexing: outside [0, extent) zero is read and nothing added

def taken(m, operands, options, values):
    x, index = operands
    axis = int(options["axis"]) % x.t.dim()
    flat = index.t.reshape(-1)
    inside = (flat >= 0) & (flat < x.t.shape[axis])
    found = x.t.index_select(axis, torch.where(inside, flat, torch.zeros_like(flat))) if x.t.shape[axis] > 0 else None
    shaped = inside.reshape([-1 if i == axis else 1 for i in range(x.t.dim())])
    found = torch.where(shaped, found, torch.zeros_like(found))
    return Value(t=found.reshape(x.t.shape[:axis] + index.t.shape + x.t.shape[axis + 1:]), d=x.d)


def taken_along(m, operands, options, values):
    x, index = operands
    axis = int(options["axis"]) % x.t.dim()
    inside = (index.t >= 0) & (index.t < x.t.shape[axis])
    found = torch.gather(x.t, axis, torch.where(inside, index.t, torch.zeros_like(index.t)))
    return Value(t=torch.where(inside, found, torch.zeros_like(found)), d=x.d)


def scattered(m, operands, options, values):
    index, update = operands
    shape = text.integers(options["shape"])
    axis = int(options["axis"]) % len(shape)
    flat = index.t.reshape(-1)
    rank = index.t.dim()
    t = m.off(update.t, wide(update.d)) if is_float(update.d) else update.t
    t = t.reshape(t.shape[:axis] + (flat.numel(),) + t.shape[axis + rank:])
    inside = torch.nonzero((flat >= 0) & (flat < shape[axis])).reshape(-1)
    result = torch.zeros(shape, dtype=t.dtype).index_add(axis, flat[inside], t.index_select(axis, inside))
    return m.made(result, update.d)


def embedded(m, operands, options, values):
    return taken(m, operands, {"axis": "0"}, values)


def one_hots(m, operands, options, values):
    hit = operands[0].t.unsqueeze(-1) == torch.arange(int(options["classes"]))
    d = options["dtype"]
    return Value(t=hit.to(torch.float64 if is_float(d) else torch.bool if d == "bool" else torch.int64), d=d)


def elements(m, operands, options, values):
    table, *indices = operands
    at = torch.broadcast_tensors(*[index.t for index in indices])
    inside = torch.ones_like(at[0], dtype=torch.bool)
    for axis, index in enumerate(at):
        inside = inside & (index >= 0) & (index < table.t.shape[axis])
    found = table.t[tuple(torch.where(inside, index, torch.zeros_like(index)) for index in at)]
    return Value(t=torch.where(inside, found, torch.zeros_like(found)), d=table.d)


# --- normalisation and losses

def softmax_of(m, t, d, axis, log=False):
    shifted = m.off(t - extreme_of(t, d, [axis], True, largest=True).detach(), d)
    powers = m.off(torch.exp(shifted), d)
    total = m.off(powers.sum(axis, keepdim=True), d)
    return shifted - torch.log(total) if log else powers / total


def softmaxes(log):
    def f(m, operands, options, values):
        t, d = m.real(operands[0])
        return m.made(softmax_of(m, t, d, int(options.get("axis", "-1")), log), d)
    return f


def layer_norms(m, operands, options, values):
    t, d = m.real(operands[0])
    t = m.off(t, d)
    centred = m.off(t - m.added(t, d, lambda each: each.mean(-1, keepdim=True)), d)
    t = centred * m.off(torch.rsqrt(m.off((centred * centred).mean(-1, keepdim=True), d) + float(options.get("epsilon", "1e-5"))), d)
    if len(operands) > 1:
        t = t * operands[1].t
    if len(operands) > 2:
        t = t + operands[2].t
    return m.made(t, d)


def rms_norms(m, operands, options, values):
    t, d = m.real(operands[0])
    t = m.off(t, d)
    t = t * m.off(torch.rsqrt(m.off((t * t).mean(-1, keepdim=True), d) + float(options.get("epsilon", "1e-5"))), d)
    return m.made(t * operands[1].t if len(operands) > 1 else t, d)


def entropy(m, logits, d, labels):
    picked = torch.gather(softmax_of(m, logits, d, -1, log=True), -1, labels.t.unsqueeze(-1))
    return m.made(m.off(-picked, d).mean(), d)


def cross_entropies(m, operands, options, values):
    return entropy(m, operands[0].t, wide(operands[0].d), operands[1])


def linear_cross_entropies(m, operands, options, values):
    x, w, labels = operands
    d = wide(promote(x.d, w.d))
    # "The gradient that reaches 16-bit operands is rounded to their type."
    logits = m.off(torch.matmul(m.off(x.t, d), m.off(w.t, d).transpose(-1, -2)), d, back=promote(x.d, w.d))
    return entropy(m, logits, d, labels)


# --- products

def product_type(d):
    """8-bit floats give f32, 8-bit integers i32."""
    return {"f8e4m3": "f32", "f8e5m2": "f32", "i8": "i32", "u8": "i32", "bool": "i32"}.get(d, d)


def product_operands(m, a, b):
    d = promote(a.d, b.d)
    at, bt = m.converted(a, d), m.converted(b, d)
    if is_float(d):
        at, bt = m.off(at, wide(d)), m.off(bt, wide(d))
    else:
        at, bt = at.to(torch.int64), bt.to(torch.int64)
    return at, bt, product_type(d)


def rounded_back(m, t, operands):
    """"The gradient that reaches 16-bit operands is rounded to their type", and so is that of narrower ones."""
    return m.off(t, "f64", back=promote(operands[0].d, operands[1].d)) if t.is_floating_point() else t


def matmuls(m, operands, options, values):
    a, b, d = product_operands(m, *operands)
    return m.made(rounded_back(m, torch.matmul(a, b), operands), d)


def einsums(m, operands, options, values):
    """Axes of one operand alone that the result lacks are summed first, into a value of the operands' type."""
    a, b, d = product_operands(m, *operands)
    letters, result = options["spec"].split("->")
    of_a, of_b = letters.split(",")

    def summed(t, own, other):
        kept = "".join(c for c in own if c in other + result)
        if kept == own:
            return t, own
        t = torch.einsum(f"{own}->{kept}", t)
        return (m.off(t, promote(operands[0].d, operands[1].d)) if t.is_floating_point() else t), kept

    (a, of_a), (b, of_b) = summed(a, of_a, of_b), summed(b, of_b, of_a)
    return m.made(rounded_back(m, torch.einsum(f"{of_a},{of_b}->{result}", a, b), operands), d)


def by_rows(m, x, w, group_of_row):
    """Row by row: each with the matrix of its group, or zeros where it has none."""
    a, b, d = product_operands(m, x, w)
    rows = [torch.matmul(a[i], b[g]) if 0 <= g < b.shape[0] else torch.zeros(b.shape[2], dtype=b.dtype)
            for i, g in enumerate(group_of_row)]
    return m.made(rounded_back(m, torch.stack(rows), [x, w]) if rows else torch.zeros((0, b.shape[2]), dtype=b.dtype), d)


def grouped(m, operands, options, values):
    x, w, groups = operands
    height = x.t.shape[0] // max(groups.t.numel(), 1)
    return by_rows(m, x, w, [int(g) for g in groups.t for _ in range(height)])


def ragged(m, operands, options, values):
    x, w, ends = operands
    ends = [int(end) for end in ends.t]
    return by_rows(m, x, w, [next((g for g, end in enumerate(ends) if i < end), -1) for i in range(x.t.shape[0])])


def masked(m, operands, options, values):
    x, w, counts = operands
    parts = []
    for g, count in enumerate(counts.t.tolist()):
        part = Value(t=x.t[g], d=x.d)
        parts.append(by_rows(m, part, w, [g if i < count else -1 for i in range(x.t.shape[1])]))
    return Value(t=torch.stack([part.t for part in parts]), d=parts[0].d)


def stretched(scale, shape):
    """A scale for each element: along each axis one for all, one for each, or one for each block of 128."""
    for axis, (have, want) in enumerate(zip(scale.shape, shape)):
        if have != want:
            each = want if have == 1 else 128
            scale = scale.repeat_interleave(each, axis).narrow(axis, 0, want)
    return scale


def scaled(m, operands, options, values):
    a, scale_a, b, scale_b = operands
    d = "f64" if "f64" in (scale_a.d, scale_b.d) else "f32"
    left = m.off(a.t.to(torch.float64) * stretched(scale_a.t, a.t.shape), d)
    return m.made(torch.matmul(left, m.off(b.t.to(torch.float64) * stretched(scale_b.t, b.t.shape), d)), d)


def packed(m, operands, options, values):
    low, high = operands[0].t.chunk(2, -1)
    byte = (low & 15) | ((high & 15) << 4)
    return Value(t=torch.where(byte > 127, byte - 256, byte), d="i8")


def unpacked(m, operands, options, values):
    byte = operands[0].t & 255
    both = torch.cat([byte & 15, byte >> 4], -1)
    return Value(t=torch.where(both > 7, both - 16, both), d="i8")


def quantized(m, operands, options, values):
    x, weights, scales = operands
    rows, groups = weights.t.shape[0], scales.t.shape[0]
    each = scales.t.repeat_interleave(rows // groups, 0)
    return m.made(torch.matmul(m.off(x.t, wide(x.d)), m.off(weights.t.to(torch.float64) * each, wide(x.d))), x.d)


# --- attention

def mask_of(words, at, values):
    number = [int(word) if word.lstrip("-").isdigit() else word for word in words[1:]]
    query, key = at
    kind = words[0]
    if kind == "causal":
        return key <= query + (number[0] if number else 0)
    if kind == "window":
        before, after, offset = (number + [0, 0])[:3]
        return (key >= query + offset - before) & (key <= query + offset + after)
    if kind == "prefix":
        if isinstance(number[0], str):
            return key < values[number[0]].t.reshape(-1, 1, 1, 1)
        return key < number[0]
    if kind in ("doc", "doc2"):
        ids = [values[name].t for name in (number if kind == "doc2" else number * 2)]
        # (T) or (B, T): positions of queries and keys are the first of them
        first, second = (each if each.dim() == 2 else each.unsqueeze(0) for each in ids)
        return (first[:, : query.shape[0]].unsqueeze(-1) == second[:, : key.shape[0]].unsqueeze(1)).unsqueeze(1)
    if kind == "mod":
        return torch.remainder(query + key, number[0]) == 0
    raise KeyError(kind)


def score_of(words, score, at, values):
    query, key = at
    if words[0] == "alibi":
        return score + values[words[1]].t.reshape(1, -1, 1, 1) * (key - query)
    if words[0] == "cap":
        return float(words[1]) * torch.tanh(score / float(words[1]))
    if words[0] == "bias":
        return score + values[words[1]].t
    raise KeyError(words[0])


def attended(m, operands, options, values):
    q, k, v = operands
    f = wide(q.d)
    heads = q.t.shape[1] // k.t.shape[1]
    qt, kt, vt = q.t, k.t.repeat_interleave(heads, 1), v.t.repeat_interleave(heads, 1)
    at = torch.arange(qt.shape[2]).unsqueeze(-1), torch.arange(kt.shape[2])
    shape = qt.shape[:3] + (kt.shape[2],)
    seen = torch.ones(shape, dtype=torch.bool)
    masks = [mask_of(part.split(":"), at, values) for part in options.get("masks", "").split(";") if part]
    if masks:
        joined = masks[0]
        for mask in masks[1:]:
            joined = joined | mask if options.get("join") == "any" else joined & mask
        seen = joined.expand(shape)
    # A key that no query sees takes no part.
    unseen = ~seen.any(2).unsqueeze(-1)
    kt, vt = (torch.where(unseen, torch.zeros_like(t), t) for t in (kt, vt))
    scale = float(options["scale"]) if "scale" in options else 1 / math.sqrt(qt.shape[-1])
    score = m.off(torch.matmul(m.off(qt, f), m.off(kt, f).transpose(-1, -2)) * scale, f)
    for part in filter(None, options.get("scores", "").split(";")):
        score = m.off(score_of(part.split(":"), score, at, values), f)
    lowest = extreme_of(torch.where(seen, score, torch.full_like(score, -math.inf)), q.d, [-1], True, largest=True).detach()
    lowest = torch.where(torch.isinf(lowest), torch.zeros_like(lowest), lowest)
    powers = torch.where(seen, m.off(torch.exp(m.off(torch.where(seen, score - lowest, torch.zeros_like(score)), f)), f),
                         torch.zeros_like(score))
    total = m.off(powers.sum(-1, keepdim=True), f)
    some = total > 0
    safe = torch.where(some, total, torch.ones_like(total))
    # Divided after the product with v, as flash attention does; the gradient by the total then reads the rounded product.
    return types.SimpleNamespace(powers=m.off(powers, v.d), v=m.off(vt, f), total=safe, largest=lowest, some=some, d=q.d)


def attention(m, operands, options, values):
    a = attended(m, operands, options, values)
    return m.made(m.off(torch.matmul(a.powers, a.v), a.d) / a.total, product_type(a.d))


def attention_lse(m, operands, options, values):
    a = attended(m, operands, options, values)
    lse = torch.log(a.total) + a.largest
    return m.made(torch.where(a.some, lse, torch.full_like(lse, -math.inf)).squeeze(-1), wide(a.d))


def from_pages(m, operands, options, values):
    pages, table = operands
    found = taken(m, [pages, table], {"axis": "0"}, values).t  # (B, N, S, Hkv, D)
    b, n, s, h, d = found.shape
    return Value(t=found.reshape(b, n * s, h, d).transpose(1, 2), d=pages.d)


TABLE = {
    "take": taken, "take_along": taken_along, "scatter_add": scattered, "embedding": embedded, "one_hot": one_hots,
    "element": elements, "softmax": softmaxes(False), "log_softmax": softmaxes(True), "layer_norm": layer_norms,
    "rms_norm": rms_norms, "cross_entropy": cross_entropies, "linear_cross_entropy": linear_cross_entropies,
    "matmul": matmuls, "einsum": einsums, "grouped_matmul": grouped, "ragged_matmul": ragged, "masked_matmul": masked,
    "scaled_matmul": scaled, "pack_int4": packed, "unpack_int4": unpacked, "quantized_matmul": quantized,
    "attention": attention, "attention_lse": attention_lse, "from_pages": from_pages,
}
