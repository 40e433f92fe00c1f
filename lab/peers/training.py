"""Steps of trainings in PyTorch, as people write them: autograd, autocast, torch.optim. Lies beside programs.py, which asks for them by
the workload's name.

A step of torch.optim writes over parameters and moments. Such a program works on copies of its own, and its `restore` makes
them the inputs again (peer.py)."""
import contextlib, inspect, math

import torch
import torch.nn.functional as F

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def narrow(precision, device):
    if precision not in TYPES:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=TYPES[precision])


# --- steps in place

def adamw(groups, **options):
    """Fused, where this PyTorch has it on the parameters' device."""
    try:
        return torch.optim.AdamW(groups, fused=True, **options)
    except (RuntimeError, TypeError):
        return torch.optim.AdamW(groups, **options)


class Own:
    """Copies of parameters and both moments, with an AdamW that moves them."""

    def __init__(self, groups_of, options, make=adamw):
        self.groups_of, self.options, self.make, self.p = groups_of, options, make, None

    def restore(self, p, m, v, steps):
        if self.p is None:
            self.p = [torch.nn.Parameter(torch.empty_like(x)) for x in p]
            self.optimizer = self.make(self.groups_of(self.p), **self.options)
            for own, m_own, v_own in zip(self.p, m, v):
                self.optimizer.state[own] = {"step": torch.zeros((), device=own.device), "exp_avg": torch.empty_like(m_own),
                                             "exp_avg_sq": torch.empty_like(v_own)}
        with torch.no_grad():
            for own, *values in zip(self.p, p, m, v):
                state = self.optimizer.state[own]
                for to, value in zip((own, state["exp_avg"], state["exp_avg_sq"]), values):
                    to.copy_(value)
                state["step"].fill_(steps)

    def results(self):
        states = [self.optimizer.state[own] for own in self.p]
        return (*(x.detach() for x in self.p), *(s["exp_avg"] for s in states), *(s["exp_avg_sq"] for s in states))


def stepping(step, restore, own):
    """`step` as a program with `restore`, both of the inputs."""
    def run(*inputs):
        if own.p is None:
            restore(*inputs)
        return step(*inputs)
    run.restore = restore
    return run


def fused_adamw():
    if "fused" not in inspect.signature(torch.optim.AdamW).parameters:
        raise ValueError(f"PyTorch {torch.__version__} has no fused AdamW")
    own = Own(lambda p: p, {"lr": 6e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "fused": True}, torch.optim.AdamW)

    def restore(p, g, m, v):
        if not p.dtype == g.dtype == m.dtype == v.dtype:
            raise ValueError("torch.optim.AdamW has gradients and moments of the parameters' type")
        own.restore([p], [m], [v], 99)

    def step(p, g, m, v):
        own.p[0].grad = g
        own.optimizer.step()
        return own.results()

    return stepping(step, restore, own)


# --- a stack of layers (lab/pairs/mlp_stack.h)

def mlp_layer(x, w1, w2):
    return x + F.gelu(x @ w1, approximate="tanh") @ w2


def mlp_loss(precision, layer=mlp_layer):
    def loss(x, target, *weights):
        with narrow(precision, x.device):
            for w1, w2 in zip(weights[::2], weights[1::2]):
                x = layer(x, w1, w2)
            return F.mse_loss(x, target)
    return loss


def checkpointed_layer(x, w1, w2):
    from torch.utils.checkpoint import checkpoint
    return checkpoint(mlp_layer, x, w1, w2, use_reentrant=False)


def gradient_of(loss, parts=1):
    """The loss and the gradients of the weights, added up over parts of the rows."""
    def run(x, target, *weights):
        weights = [w.detach().requires_grad_() for w in weights]
        total = 0
        for own, goal in zip(x.chunk(parts), target.chunk(parts)):
            value = loss(own, goal, *weights) / parts
            value.backward()
            total = total + value.detach()
        return (total, *(w.grad for w in weights))
    return run


def loss_scaling(loss):
    own = Own(lambda p: p, {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1})
    keep = {}

    def parts_of(inputs):
        count = (len(inputs) - 5) // 3
        return [inputs[2 + i * count:2 + (i + 1) * count] for i in range(3)]

    def restore(*inputs):
        *_, steps, scale, good = inputs
        own.restore(*parts_of(inputs), steps.item())
        device = inputs[0].device
        keep["scaler"] = torch.amp.GradScaler(device.type, init_scale=scale.item())
        keep["scaler"].scale(torch.zeros((), device=device))  # its tensors are made at the first use
        keep["scaler"]._growth_tracker.fill_(int(good.item()))

    def step(x, target, *_):
        scaler = keep["scaler"]
        own.optimizer.zero_grad()
        value = loss(x, target, *own.p)
        scaler.scale(value).backward()
        scaler.step(own.optimizer)
        scaler.update()
        return (value.detach(), *own.results(), scaler._scale.clone(), scaler._growth_tracker.float())

    return stepping(step, restore, own)


# --- a product and its gradients

def scaled(t, dtype):
    scale = t.abs().max().float() / torch.finfo(dtype).max
    return (t.float() / scale).to(dtype), scale


def by_columns(t):
    return t.t().contiguous().t()


def fp8_training_matmul(x, w, dy):
    (x, sx), (w, sw) = scaled(x, torch.float8_e4m3fn), scaled(w, torch.float8_e4m3fn)
    dy, sdy = scaled(dy, torch.float8_e5m2)
    mm = lambda a, b, sa, sb: torch._scaled_mm(a, b, sa, sb, out_dtype=torch.bfloat16)
    return mm(x, by_columns(w), sx, sw), mm(dy, w.t(), sdy, sw), mm(x.t().contiguous(), by_columns(dy), sx, sdy)


def bf16_training_matmul(x, w, dy):
    w = w.bfloat16()
    return x @ w, dy @ w.t(), x.t() @ dy


# --- GPT-2

def causal_attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):  # since PyTorch 2.0
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    unseen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(unseen, -math.inf), -1) @ v


def gpt2_loss(heads, precision):
    def loss(tokens, targets, p):
        B, T = tokens.shape
        p = list(p)
        wte, wpe, lnfw, lnfb = *p[:2], *p[-2:]
        C = wte.shape[1]
        norm = lambda x, w, b: F.layer_norm(x, (C,), w, b)
        with narrow(precision, tokens.device):
            x = F.embedding(tokens, wte) + wpe[:T]
            for i in range(2, len(p) - 2, 12):
                ln1w, ln1b, qkvw, qkvb, ow, ob, ln2w, ln2b, fcw, fcb, pw, pb = p[i:i + 12]
                qkv = torch.addmm(qkvb, norm(x, ln1w, ln1b).view(-1, C), qkvw)
                q, k, v = qkv.view(B, T, 3, heads, C // heads).permute(2, 0, 3, 1, 4)
                mixed = causal_attention(q, k, v)
                x = x + torch.addmm(ob, mixed.transpose(1, 2).reshape(-1, C), ow).view(B, T, C)
                wide = F.gelu(torch.addmm(fcb, norm(x, ln2w, ln2b).view(-1, C), fcw), approximate="tanh")
                x = x + torch.addmm(pb, wide, pw).view(B, T, C)
            logits = norm(x, lnfw, lnfb) @ wte.t()
            return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))
    return loss


def train_step_gpt2(loss):
    def groups(p):
        matrices = [x for x in p if x.dim() > 1]
        return [{"params": matrices}, {"params": [x for x in p if x.dim() < 2], "weight_decay": 0.0}]

    own = Own(groups, {"lr": 6e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1})

    def restore(tokens, targets, steps, *state):
        count = len(state) // 3
        own.restore(state[:count], state[count:2 * count], state[2 * count:], steps.item())

    def step(tokens, targets, *_):
        own.optimizer.zero_grad()
        value = loss(tokens, targets, own.p)
        value.backward()
        torch.nn.utils.clip_grad_norm_(own.p, 1.0)
        own.optimizer.step()
        return (value.detach(), *own.results())

    return stepping(step, restore, own)


def program(work, parameters, compile_with, mode):
    """The program of a workload, or None where it is none of these."""
    compiled = compile_with or (lambda f: f)
    precision = parameters.get("precision", "f32")
    if work == "optimizer_step" and mode == "torch fused AdamW":
        return fused_adamw()
    if work == "gradient_accumulation":
        return gradient_of(compiled(mlp_loss(precision)), int(parameters["parts"]))
    if work == "activation_checkpointing":
        layer = checkpointed_layer if mode == "torch checkpoint" else mlp_layer
        return gradient_of(compiled(mlp_loss(precision, layer)))
    if work == "loss_scaling":
        return loss_scaling(compiled(mlp_loss(precision)))
    if work == "fp8_training_matmul":
        return compiled(fp8_training_matmul if precision == "fp8" else bf16_training_matmul)
    if work == "train_step_gpt2":
        return train_step_gpt2(compiled(gpt2_loss(int(parameters["heads"]), precision)))
    return None
