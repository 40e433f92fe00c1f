"""What a contender runs: the lab's workloads in PyTorch, how each is compiled, and programs that come as a text. Lies beside
peer.py, which asks for them by `program`."""
import functools, math

import torch
import torch.nn.functional as F

import loading, training
from truth import in_float64


# --- the workloads, as people write them. Each takes the inputs in the pair's order and returns its outputs.

def elu(x):
    return torch.where(x > 0, x, torch.exp(x) - 1)


def sincos10(x):
    for _ in range(10):
        x = torch.sin(x) + torch.cos(x)
    return x


def layernorm_gelu(x, w, b):
    return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b), approximate="tanh")


def add_rmsnorm(x, r, w):
    s = x + r
    if hasattr(F, "rms_norm"):
        return F.rms_norm(s, (s.shape[-1],), w, 1e-5)
    return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-5) * w


def optimizer_step(p, g, m, v):
    """AdamW as lab/pairs/optimizer_step writes it: masters in f32, moments rounded to their type."""
    rate, beta1, beta2, decay = 6e-4, 0.9, 0.95, 0.1
    started1, started2 = 1 - beta1**100, 1 - beta2**100
    g, types = g.float(), (m.dtype, v.dtype)
    m, v = m.float() * beta1 + g * (1 - beta1), v.float() * beta2 + g * g * (1 - beta2)
    along = m / (v.sqrt() / math.sqrt(started2) + 1e-8)
    return p * (1 - rate * decay) - along * (rate / started1), m.to(types[0]), v.to(types[1])


def cross_entropy_loss(logits, labels):
    return F.cross_entropy(logits.float(), labels)


def linear_loss(x, w, labels):
    return F.cross_entropy(F.linear(x, w).float(), labels)


def linear_with_gradients(loss_function):
    def run(x, w, labels):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        loss = loss_function(x, w, labels)
        return (loss.detach(), *torch.autograd.grad(loss, (x, w)))
    return run


def chunked_linear_loss():
    """Chunks of rows, each with its gradient at once: no more logits are alive than those of a chunk."""
    def of_chunk(x, w, labels, rows):
        logits = F.linear(x, w).float()
        lse = torch.logsumexp(logits, -1)
        loss = (lse - logits.gather(1, labels[:, None])[:, 0]).sum() / rows
        d = torch.exp(logits - lse[:, None]) / rows
        d = d.scatter_add(1, labels[:, None], torch.full_like(labels[:, None], -1 / rows, dtype=d.dtype)).to(x.dtype)
        return loss, d @ w, d.t() @ x

    keep = {}

    def run(x, w, labels):
        if "of_chunk" not in keep:
            keep["of_chunk"] = compiler("torch.compile")(of_chunk) if hasattr(torch, "compile") else of_chunk
        each = max(256, min(len(x), 2 * x.numel() // w.shape[0]))
        loss, dx, dw = 0, [], torch.zeros_like(w, dtype=torch.float32)
        for part, of_part in zip(x.split(each), labels.split(each)):
            l, d, g = keep["of_chunk"](part, w, of_part, len(x))
            loss = loss + l
            dx.append(d)
            dw += g
        return loss, torch.cat(dx), dw.to(w.dtype)

    return run


def with_gradient(loss_function):
    def both(logits, labels):
        logits = logits.detach().requires_grad_()
        loss = loss_function(logits, labels)
        return loss.detach(), torch.autograd.grad(loss, logits)[0]
    return both


def product(a, b, parameters):
    return torch.matmul(a, b if parameters["b_order"] == "rows" else b.t())


def gemm_batched(a, b, parameters):
    if parameters["form"] == "one_by_one":
        return torch.stack([x @ y for x, y in zip(a, b)])
    if parameters["form"] == "strided":
        return torch.matmul(a.transpose(0, 1), b.transpose(0, 1)).transpose(0, 1).contiguous()
    return torch.matmul(a, b)


def gemm_bias_gelu(a, b, bias, parameters):
    return F.gelu(torch.addmm(bias, a, b if parameters["b_order"] == "rows" else b.t()), approximate="tanh")


def gemm_fp8(a, b, scale_a, scale_b, parameters):
    by_rows_of_a = scale_a.t() if parameters["scaling"] == "block" else scale_a
    return torch._scaled_mm(a, b.t(), by_rows_of_a, scale_b.t(), out_dtype=torch.bfloat16)


def swiglu_mlp(x, w1, w3, w2):
    return (F.silu(x @ w1) * (x @ w3)) @ w2


# Masks are made once, at the first call: no peer is timed making what it can keep. `rest`: the places of queries
# and of keys, and the documents' ids, where there is a mask at all.

def sees(parameters, rest):
    if not rest:
        return None
    query, key = rest[0][:, None], rest[1][None, :]
    mask = torch.ones(len(rest[0]), len(rest[1]), dtype=torch.bool, device=rest[0].device)
    if parameters["causal"] == "yes":
        mask &= query >= key
    if int(parameters["window"]) > 0:
        mask &= query - key < int(parameters["window"])
    if parameters["documents"] == "yes":
        mask &= rest[2][:, None] == rest[2][None, :]
    return mask


def repeated(x, heads):
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def written_attention(q, k, v, mask):
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, -1) @ v


def fused_attention(q, k, v, mask, causal):
    shared = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, **shared)


def sdpa(parameters, fused=fused_attention):
    """scaled_dot_product_attention, or what it stands for where PyTorch is older."""
    plain = parameters["window"] == "0" and parameters["documents"] == "no"
    keep = {}

    def run(q, k, v, *rest):
        known = not rest or (plain and q.shape[2] == k.shape[2])  # its kernels know this mask without reading it
        has_fused = hasattr(F, "scaled_dot_product_attention")
        if "mask" not in keep:
            keep["mask"] = None if known and has_fused else sees(parameters, rest)
        if has_fused:
            return fused(q, k, v, keep["mask"], bool(rest) and known)
        return written_attention(q, k, v, keep["mask"])

    return run


def cudnn_attention(parameters):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    run = sdpa(parameters)

    def with_cudnn(*inputs):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return run(*inputs)

    return with_cudnn


def flex_attention(parameters):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as flex
    compiled_flex, keep = compiler("torch.compile")(flex), {}
    window = int(parameters["window"])

    def run(q, k, v, *rest):
        if rest and "mask" not in keep:
            offset, ids = k.shape[2] - q.shape[2], rest[2] if parameters["documents"] == "yes" else None

            def mask(b, h, i, j):
                seen = i + offset >= j if parameters["causal"] == "yes" else j >= 0
                if window > 0:
                    seen = seen & (i + offset - j < window)
                return seen & (ids[i] == ids[j]) if ids is not None else seen

            keep["mask"] = create_block_mask(mask, None, None, q.shape[2], k.shape[2], device=q.device)
        return compiled_flex(q, k, v, block_mask=keep.get("mask"), enable_gqa=q.shape[1] != k.shape[1])

    return run


def with_gradients(forward):
    def run(q, k, v, dy, *rest):
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        y = forward(q, k, v, *rest)
        return (y.detach(), *torch.autograd.grad(y, (q, k, v), dy))
    return run


# --- groups of rows, a matrix each

def grouped_gemm(x, w, which, parameters):
    if parameters["form"] == "masked":
        rows = torch.arange(x.shape[1], device=x.device)
        return (x @ w).masked_fill(rows[None, :, None] >= which[:, None, None], 0)
    # As loops over experts are written: the groups' ids lie sorted, so each group is a slice.
    each = x.shape[0] // len(which)
    y = torch.zeros(x.shape[0], w.shape[2], dtype=x.dtype, device=x.device)
    row = 0
    for group, blocks in zip(*(t.tolist() for t in torch.unique_consecutive(which, return_counts=True))):
        if 0 <= group < w.shape[0]:
            torch.mm(x[row:row + blocks * each], w[group], out=y[row:row + blocks * each])
        row += blocks * each
    return y


def torch_grouped_mm(parameters):
    """One call for all groups, in bf16 on newer GPUs: takes where each group ends."""
    if parameters["form"] == "masked":
        raise ValueError("torch._grouped_mm wants groups one after another")
    keep = {}

    def run(x, w, which):
        if parameters["form"] == "ragged":
            keep.setdefault("ends", which.to(torch.int32))
        if "ends" not in keep:
            each = x.shape[0] // len(which)
            sizes = torch.bincount(which, minlength=w.shape[0]) * each
            keep["ends"] = torch.cumsum(sizes, 0).to(torch.int32)
        return torch._grouped_mm(x, w, offs=keep["ends"])

    return run


def gpt2_block(heads, tokens, targets, positions, wte, wpe, ln1w, ln1b, qkvw, qkvb, ow, ob, ln2w, ln2b, fcw, fcb, pw,
               pb, lnfw, lnfb):
    B, T = tokens.shape
    C = wte.shape[1]
    norm = lambda x, w, b: F.layer_norm(x, (C,), w, b)
    x = F.embedding(tokens, wte) + wpe
    qkv = norm(x, ln1w, ln1b) @ qkvw + qkvb
    q, k, v = qkv.view(B, T, 3, heads, C // heads).permute(2, 0, 3, 1, 4)
    if hasattr(F, "scaled_dot_product_attention"):
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(C // heads)
        past = positions[:, None] >= positions[None, :]
        mixed = torch.softmax(torch.where(past, scores, torch.tensor(-math.inf)), -1) @ v
    x = x + (mixed.transpose(1, 2).reshape(B, T, C) @ ow + ob)
    wide = F.gelu(norm(x, ln2w, ln2b) @ fcw + fcb, approximate="tanh")
    x = x + (wide @ pw + pb)
    logits = norm(x, lnfw, lnfb) @ wte.t()
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1)), logits


def copy_into():
    out = {}
    def copy(x):  # preallocated, as copy_ is used
        y = out.setdefault("y", torch.empty_like(x))
        y.copy_(x)
        return y
    return copy


def eager(work, parameters):
    if work.startswith("attention"):
        run = sdpa(parameters)
        return with_gradients(run) if work == "attention_gradient" else run
    bound = {"gpt2_block": lambda *inputs: gpt2_block(int(parameters["heads"]), *inputs),
             "gemm": lambda a, b: product(a, b, parameters),
             "gemm_batched": lambda a, b: gemm_batched(a, b, parameters),
             "gemm_bias_gelu": lambda a, b, bias: gemm_bias_gelu(a, b, bias, parameters),
             "gemm_fp8": lambda a, b, scale_a, scale_b: gemm_fp8(a, b, scale_a, scale_b, parameters),
             "grouped_gemm": lambda x, w, which: grouped_gemm(x, w, which, parameters)}
    if work in bound:
        return bound[work]
    return {"copy": copy_into(), "sum": torch.sum, "transpose": lambda x: x.t().contiguous(),
            "embedding": lambda table, index: F.embedding(index, table), "elu": elu, "sincos10": sincos10,
            "softmax": lambda x: torch.softmax(x, -1), "layernorm_gelu": layernorm_gelu, "add_rmsnorm": add_rmsnorm,
            "gemv": torch.matmul, "swiglu_mlp": swiglu_mlp,
            "optimizer_step": optimizer_step,
            "cross_entropy": with_gradient(cross_entropy_loss),
            "linear_cross_entropy": linear_with_gradients(linear_loss)}[work]


def compiler(mode):
    """What makes a function the mode's. Its kernels are for the shapes it meets: without dynamic=False a second shape of
    the same function has them made for any."""
    name, _, option = mode.partition(":")
    if name != "torch.compile":
        return None
    return functools.partial(torch.compile, dynamic=False, **({"mode": option} if option else {}))


def compiled(work, parameters, compile_with):
    if work == "cross_entropy":
        return with_gradient(compile_with(cross_entropy_loss))
    if work == "linear_cross_entropy":
        return linear_with_gradients(compile_with(linear_loss))
    if work.startswith("attention"):
        run = sdpa(parameters, compile_with(fused_attention))
        return with_gradients(run) if work == "attention_gradient" else run
    return compile_with(eager(work, parameters))


def triton_elu():
    import triton
    import triton.language as tl

    @triton.jit
    def elu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        m = o < n
        x = tl.load(x_ptr + o, mask=m)
        tl.store(y_ptr + o, tl.where(x > 0, x, tl.exp(x) - 1), mask=m)

    out = {}
    def run(x):
        y = out.setdefault("y", torch.empty_like(x))
        elu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
    return run


# --- programs that come as a text

def from_source(source, compile_with):
    """The text's `program`; with `gradients_of` its output is a loss, and the gradients of these inputs follow it."""
    space = {"torch": torch, "math": math, "F": F}
    exec(source, space)
    run, wanted = space["program"], space.get("gradients_of")
    if compile_with:
        run = compile_with(run)
    if wanted is None:
        return run

    def with_gradients_of(*inputs):
        inputs = [x.detach().requires_grad_() if i in wanted else x for i, x in enumerate(inputs)]
        loss = run(*inputs)
        return (loss.detach(), *torch.autograd.grad(loss, [inputs[i] for i in wanted]))

    return with_gradients_of


def program(mode, work, parameters, source=""):
    compile_with = compiler(mode)
    if source:
        run = from_source(source, compile_with)
        return in_float64(run, parameters["dtype"]) if mode == "float64" else run
    if step := training.program(work, parameters, compile_with, mode):
        return step
    if loader := loading.program(work, parameters, mode):
        return loader
    if mode == "torch":
        return eager(work, parameters)
    if compile_with:
        return compiled(work, parameters, compile_with)
    if mode == "triton" and work == "elu":
        return triton_elu()
    if mode in ("cudnn", "flex_attention") and work.startswith("attention"):
        run = cudnn_attention(parameters) if mode == "cudnn" else flex_attention(parameters)
        return with_gradients(run) if work == "attention_gradient" else run
    if mode == "torch, in chunks" and work == "linear_cross_entropy":
        return chunked_linear_loss()
    if mode == "torch._grouped_mm" and work == "grouped_gemm":
        return torch_grouped_mm(parameters)
    raise ValueError(f"{mode} has no {work}")
