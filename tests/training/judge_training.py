#!/usr/bin/env python3
"""PyTorch as the judge of GPT-2's and Llama's logits, loss and gradients, and of optimizers over 100 steps. It takes parameters and tokens
from the file that training_steps writes, computes in float64 by its own operations, and compares.
Usage: judge_training.py TRAINING_STEPS [DEVICE]

  judge_training.py TRAINING_STEPS curves [--seeds 3] [--steps 300] [--precisions f32,bf16,fp8,fp8-block] [--device cpu]
trains a small GPT-2 on a text beside it, from the same parameters and on the same batches, in f32, in bf16 and in 8 bits, which PyTorch is taught here. f32 must
have the same loss at each of the first 50 steps; narrow products must end where f32 does, as near as seeds are to one another.

Bounds: results of f32 are rounded at each of about 60 operations behind one another, so that they are within some hundreds of
f32's units of the largest magnitude of the tensor; over the steps errors add up, and the optimizer's own arithmetic with them."""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch

UNIT = 2.0 ** -24
HEADS, LLAMA_HEADS, CURVE_HEADS = 3, 6, 4
TEXT = pathlib.Path(__file__).resolve().parent.parent.parent / "lab" / "data" / "tinyshakespeare.txt"
TYPES = {"F32": (torch.float32, 4), "I64": (torch.int64, 8)}


def load(path):
    """{name: tensor} of a safetensors file: eight bytes of length, a JSON header, elements."""
    data = bytearray(pathlib.Path(path).read_bytes())
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        dtype, size = TYPES[entry["dtype"]]
        first, last = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=dtype, count=(last - first) // size, offset=8 + length + first)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def part(tensors, prefix):
    return {name[len(prefix):]: t for name, t in tensors.items() if name.startswith(prefix)}


def norm(x, p, name):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def turned(x):
    """Rotary embeddings of x (B, H, T, D): elements i and i + D/2 are a plane."""
    half = x.shape[-1] // 2
    speed = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * speed
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def llama_logits_of(p, tokens):
    batch, length = tokens.shape
    x = p["model.embed_tokens.weight"][tokens]
    width = x.shape[-1]
    head = width // LLAMA_HEADS
    unseen = torch.ones(length, length, dtype=torch.bool).triu(1)
    layers = 1 + max(int(name.split(".")[2]) for name in p if name.startswith("model.layers."))
    for i in range(layers):
        at = f"model.layers.{i}."
        h = rms_norm(x, p[at + "input_layernorm.weight"])
        q, k, v = ((h @ p[at + f"self_attn.{n}_proj.weight"].T).view(batch, length, -1, head).transpose(1, 2) for n in "qkv")
        q, k = turned(q), turned(k)
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
        scores = (q @ k.transpose(2, 3) / math.sqrt(head)).masked_fill(unseen, -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + y @ p[at + "self_attn.o_proj.weight"].T
        h = rms_norm(x, p[at + "post_attention_layernorm.weight"])
        gate, up = (h @ p[at + f"mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (gate * torch.sigmoid(gate) * up) @ p[at + "mlp.down_proj.weight"].T
    return rms_norm(x, p["model.norm.weight"]) @ p["lm_head.weight"].T


def logits_of(p, tokens, heads=HEADS, product=torch.matmul):
    if "lm_head.weight" in p:
        return llama_logits_of(p, tokens)
    batch, length = tokens.shape
    x = p["wte.weight"][tokens] + p["wpe.weight"][:length]
    width = x.shape[-1]
    unseen = torch.ones(length, length, dtype=torch.bool).triu(1)
    layers = 1 + max(int(name.split(".")[1]) for name in p if name.startswith("h."))
    for i in range(layers):
        at = f"h.{i}."
        qkv = product(norm(x, p, at + "ln_1"), p[at + "attn.c_attn.weight"]) + p[at + "attn.c_attn.bias"]
        q, k, v = (t.view(batch, length, heads, width // heads).transpose(1, 2) for t in qkv.split(width, 2))
        scores = (q @ k.transpose(2, 3) / math.sqrt(width // heads)).masked_fill(unseen, -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + product(y, p[at + "attn.c_proj.weight"]) + p[at + "attn.c_proj.bias"]
        h = product(norm(x, p, at + "ln_2"), p[at + "mlp.c_fc.weight"]) + p[at + "mlp.c_fc.bias"]
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))
        x = x + product(h, p[at + "mlp.c_proj.weight"]) + p[at + "mlp.c_proj.bias"]
    return norm(x, p, "ln_f") @ p["wte.weight"].T


def loss_of(p, tensors):
    logits = logits_of(p, tensors["tokens"])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tensors["targets"].flatten())


def compare(what, got, want, units, mistakes):
    error = (got.double() - want).abs().max().item()
    bound = units * UNIT * max(want.abs().max().item(), 1e-3)
    if not error <= bound:
        mistakes.append(f"{what}: off by {error:.3g}, and may be by {bound:.3g}")


def optimizer_of(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01)
    return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)


def judge(tensors, name):
    mistakes = []
    p = {n: t.double().requires_grad_() for n, t in part(tensors, "model.").items()}
    compare("logits", tensors["logits"], logits_of(p, tensors["tokens"]).detach(), 300, mistakes)
    loss = loss_of(p, tensors)
    compare("loss", tensors["loss"], loss.detach(), 300, mistakes)
    loss.backward()
    for n, t in part(tensors, "gradient.").items():
        compare("gradient of " + n, t, p[n].grad, 1000, mistakes)
    optimizer = optimizer_of(name, list(p.values()))
    losses = []
    for _ in range(len(tensors["losses"])):
        optimizer.zero_grad()
        loss = loss_of(p, tensors)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
    compare("losses", tensors["losses"], torch.tensor(losses, dtype=torch.float64), 5000, mistakes)
    for n, t in part(tensors, "after.").items():
        want = p[n].detach()
        if n.endswith("c_attn.bias"):
            # What is added to all keys alike changes no weight of attention: the gradient of the keys' bias is 0 but for
            # rounding, and AdamW goes steps of whole size along that.
            third = len(want) // 3
            t, want = (torch.cat([x[:third], x[2 * third:]]) for x in (t, want))
        compare("after 100 steps " + n, t, want, 30000, mistakes)
    fell = losses[0] - losses[-1]
    if fell < 0.5:
        mistakes.append(f"the loss fell by {fell:.3g} alone: the comparison proves little")
    return mistakes, losses


# --- curves of losses

EQUAL_STEPS, EQUAL = 50, 1e-4  # of f32
END = 20  # steps whose mean loss is where a training ends


def eight_bits(x, dtype, rows, columns):
    """The matrix as a product in 8 bits reads it: rounded behind a scale for each block of so many rows and columns; 0: all."""
    down, across = rows or x.shape[0], columns or x.shape[1]
    filled = torch.nn.functional.pad(x.float(), (0, -x.shape[1] % across, 0, -x.shape[0] % down))
    blocks = filled.view(filled.shape[0] // down, down, filled.shape[1] // across, across)
    scale = blocks.abs().amax((1, 3), keepdim=True).clamp(min=2.0 ** -100) / torch.finfo(dtype).max
    return ((blocks / scale).to(dtype).float() * scale).view(filled.shape)[:x.shape[0], :x.shape[1]]


def product_in_8_bits(precision):
    """x w whose three products, forward and of the gradient, are of 8-bit floats as CompileOptions::precision says."""
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    if precision == "fp8":
        of_x = of_xt = of_w = lambda t: eight_bits(t, e4m3, 0, 0)
        of_dy = of_dy_of_dw = lambda t: eight_bits(t, e5m2, 0, 0)
    else:
        of_x = of_dy = lambda t: eight_bits(t, e4m3, 1, 128)
        of_xt = of_x
        of_w = of_dy_of_dw = lambda t: eight_bits(t, e4m3, 128, 128)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            with torch.autocast("cpu", enabled=False):
                return (of_x(x.flatten(0, -2)) @ of_w(w)).view(*x.shape[:-1], w.shape[1])

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            dy, rows = dy.flatten(0, -2), x.flatten(0, -2)
            with torch.autocast("cpu", enabled=False):
                return (of_dy(dy) @ of_w(w).T).view(x.shape), of_xt(rows.T) @ of_dy_of_dw(dy)

    return Product.apply


def curve(tensors, precision):
    """The losses of PyTorch's own training, in f32 or under autocast, and with products of weights in 8 bits."""
    product = product_in_8_bits(precision) if precision.startswith("fp8") else torch.matmul
    p = {n: t.clone().requires_grad_() for n, t in part(tensors, "model.").items()}
    matrices = [t for t in p.values() if t.dim() > 1]
    groups = [{"params": matrices}, {"params": [t for t in p.values() if t.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    losses = []
    for tokens, targets, rate in zip(tensors["tokens"], tensors["targets"], tensors["rates"].tolist()):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision != "f32"):
            logits = logits_of(p, tokens, CURVE_HEADS, product)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def end_of(losses):
    return losses[-END:].double().mean().item()


def judge_curves(program, seeds, steps, precisions, device, text):
    """The losses of both sides at each precision and seed, and what is wrong with them."""
    mistakes, ends = [], {}
    for seed in range(1, seeds + 1):
        for precision in precisions:
            with tempfile.TemporaryDirectory() as folder:
                path = folder + "/curve.safetensors"
                subprocess.run([program, path, "curve", text, precision, str(seed), str(steps), device], check=True)
                tensors = load(path)
            ours = tensors["losses"]
            ends["ours", precision, seed] = end_of(ours)
            torchs = curve(tensors, precision)
            ends["torch", precision, seed] = end_of(torchs)
            apart = (ours - torchs).abs()
            print(f"seed {seed} {precision}: from {ours[0]:.4f}; ours ends at {end_of(ours):.4f}, PyTorch's at {end_of(torchs):.4f}; apart by at"
                  f" most {apart[:EQUAL_STEPS].max():.2g} in the first {EQUAL_STEPS} steps, {apart.max():.2g} in all", flush=True)
            if precision == "f32" and not apart[:EQUAL_STEPS].max().item() <= EQUAL:
                mistakes.append(f"seed {seed}: losses of f32 are apart by {apart[:EQUAL_STEPS].max():.3g} within {EQUAL_STEPS} steps")
            if not end_of(ours) < ours[0].item() - 0.5:
                mistakes.append(f"seed {seed} {precision}: the loss fell by {ours[0].item() - end_of(ours):.3g} alone")
    if seeds > 1:
        wide = [ends["torch", "f32", seed] for seed in range(1, seeds + 1)]
        spread = max(wide) - min(wide)
        print(f"PyTorch's f32 ends within {spread:.4f} of itself over {seeds} seeds")
        for (side, precision, seed), end in ends.items():
            if not abs(end - ends["torch", "f32", seed]) <= spread:
                mistakes.append(f"seed {seed} {precision}, {side}: ends at {end:.4f}, and f32 at {ends['torch', 'f32', seed]:.4f}")
    return mistakes


def main_of_curves(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("curves")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--precisions", default="f32,bf16,fp8,fp8-block")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--text", default=str(TEXT))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}")
    mistakes = judge_curves(options.program, options.seeds, options.steps, options.precisions.split(","), options.device,
                            options.text)
    print(f"{len(mistakes)} mistakes" + "".join(f"\n  {m}" for m in mistakes))
    return 1 if mistakes else 0


def main():
    if sys.argv[2:3] == ["curves"]:
        return main_of_curves(sys.argv[1:])
    program, device = sys.argv[1], (sys.argv[2:] or ["cpu"])[0]
    failed = 0
    for model, name in (("gpt2", "adamw"), ("gpt2", "sgd"), ("llama", "adamw")):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/steps.safetensors"
            subprocess.run([program, path, model, name, device], check=True)
            mistakes, losses = judge(load(path), name)
        print(f"{model}, {name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, {len(mistakes)} mistakes")
        print("".join(f"  {m}\n" for m in mistakes), end="")
        failed += bool(mistakes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
