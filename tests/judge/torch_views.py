"""Compositions, views, casts, reductions and scans of torch_ops.py: functions of (meaning, operands, options, values)."""
import math

import torch

import program as text
from torch_ops import NAMES, Value, is_float, promote, wrap


def axes_of(v, options):
    named = text.integers(options.get("axes", ""))
    return [axis % v.t.dim() for axis in named] if named else list(range(v.t.dim()))


def keeps(options):
    return int(options.get("keep", "0")) != 0


def over(axes, t, keep, f):
    """f of one axis after another."""
    for axis in sorted(axes, reverse=True):
        t = f(t, axis)
        if keep:
            t = t.unsqueeze(axis)
    return t


def sums(m, operands, options, values):
    v = operands[0]
    axes = axes_of(v, options)
    d = v.d if is_float(v.d) else "i64"
    def total(t):
        return t.sum(axes, keepdim=keeps(options)) if axes else t
    return m.made(m.added(v.t, "f64" if d == "f64" else "f32", total) if is_float(d) else total(v.t.to(torch.int64)), d)


class RoundedProduct(torch.autograd.Function):
    """The product along an axis, which stays; its gradient is the product, rounded, over each element. The second derivative
    is then off by a rounding where terms of it cancel: v·u/u - v of u·v. `again` are the elements as they are when the product
    is taken for that: a narrow type may be rounded there and not here (docs/numerics.md)."""

    @staticmethod
    def forward(ctx, t, axis, again, off):
        ctx.axis, ctx.again, ctx.off = axis, again, off
        ctx.save_for_backward(t)
        return t.prod(axis, keepdim=True)

    @staticmethod
    def backward(ctx, gradient):
        (t,) = ctx.saved_tensors
        product = RoundedProduct.apply(ctx.again(t), ctx.axis, ctx.again, ctx.off)
        return ctx.off(gradient * ctx.off(product)) / t, None, None, None


def prods(m, operands, options, values):
    v = operands[0]
    d = v.d if is_float(v.d) else "i64"
    wide = "f64" if v.d == "f64" else "f32"

    def product(t, axis):
        # Zeros have gradients of their own, which nothing cancels in.
        if m.random is None or not is_float(v.d) or t.shape[axis] == 0 or (t == 0).any():
            return t.prod(axis)
        return RoundedProduct.apply(t, axis, lambda x: m.off(x, v.d), lambda x: m.off(x, wide)).squeeze(axis)

    t = m.off(v.t, wide) if is_float(v.d) else v.t.to(torch.int64)
    return m.made(over(axes_of(v, options), t, keeps(options), product), d)


def extreme_of(t, d, axes, keep, largest):
    """Over axes; of nothing an infinity, or the type's last integer."""
    if all(t.shape[axis] > 0 for axis in axes):
        return (torch.amax if largest else torch.amin)(t, axes, keepdim=keep)
    ends = (-math.inf, math.inf) if is_float(d) else (0, 255) if d == "u8" else (-(1 << (NAMES[d] - 1)), (1 << (NAMES[d] - 1)) - 1)
    return torch.full_like(t.detach().sum(axes, keepdim=keep), ends[0 if largest else 1])


def extreme(largest):
    def f(m, operands, options, values):
        v = operands[0]
        axes = axes_of(v, options)
        if not axes:
            return v
        # Which elements get the gradient is a comparison; the value is not.
        value, chosen = (extreme_of(t, v.d, axes, keeps(options), largest) for t in (v.t, m.compared(v.t, v.d)))
        if is_float(v.d):
            value = chosen + torch.where(chosen == value, torch.zeros_like(value), value - chosen).detach()
        return Value(t=value, d=v.d)
    return f


def means(m, operands, options, values):
    t, d = m.real(operands[0])
    axes = axes_of(operands[0], options)
    def mean(t):
        return t.mean(axes, keepdim=keeps(options)) if axes else t
    return m.made(m.added(t, "f64" if d == "f64" else "f32", mean), d)


def variances(m, operands, options, values):
    t, d = m.real(operands[0])
    axes = axes_of(operands[0], options)
    if not axes:
        return m.made(t * 0, d)
    count = math.prod(t.shape[axis] for axis in axes)
    centred = m.off(t - m.added(t, d, lambda each: each.mean(axes, keepdim=True)), d)
    total = (m.off(centred, d) * centred).sum(axes, keepdim=keeps(options))
    return m.made(m.off(total, d) / (count - int(options.get("ddof", "0"))), d)


def any_all(g):
    def f(m, operands, options, values):
        v = operands[0]
        t = v.t != 0
        return Value(t=over(axes_of(v, options), t, keeps(options), lambda t, axis: g(t, dim=axis)), d="bool")
    return f


def log_sums(m, operands, options, values):
    t, d = m.real(operands[0])
    axes = axes_of(operands[0], options)
    return m.made(torch.logsumexp(m.off(t, d), axes, keepdim=keeps(options)) if axes else t, d)


def position(largest):
    def f(m, operands, options, values):
        t = m.compared(operands[0].t.detach(), operands[0].d)
        axis = int(options["axis"]) % t.dim()
        best = t.max(axis, keepdim=True)[0] if largest else t.min(axis, keepdim=True)[0]
        hit = (t == best) | (torch.isnan(t) & torch.isnan(best)) if t.is_floating_point() else t == best
        # The first: argmax of 0/1 does not promise it, the smallest place among the hits does.
        place = torch.arange(t.shape[axis]).reshape([-1 if i == axis else 1 for i in range(t.dim())])
        first = torch.where(hit, place, torch.full_like(place, t.shape[axis])).amin(axis, keepdim=keeps(options))
        return Value(t=first, d="i64")
    return f


def running_sum(m, operands, options, values):
    v = operands[0]
    d = v.d if is_float(v.d) else "i64"
    def running(t):
        return t.cumsum(int(options["axis"]))
    return m.made(m.added(v.t, "f64" if d == "f64" else "f32", running) if is_float(d) else running(v.t.to(torch.int64)), d)


def chosen(m, operands, options, values):
    condition, a, b = operands
    if isinstance(a, str) and isinstance(b, str):
        raise KeyError("where of two literals")
    a, b, d = m.pair(a, b)
    return Value(t=torch.where(condition.t, a, b), d=d)


def clamped(m, operands, options, values):
    t, d = operands[0].t, operands[0].d
    low, high = m.constant(float(options["low"]), d), m.constant(float(options["high"]), d)
    return m.made(torch.minimum(torch.maximum(t, low), high), d)


def cast(m, operands, options, values):
    return m.made(m.converted(operands[0], options["dtype"]), options["dtype"])


def elus(m, operands, options, values):
    t, d = m.real(operands[0])
    alpha = float(options.get("alpha", "1"))
    low = torch.exp(torch.minimum(t, torch.zeros_like(t)))
    return m.made(torch.where(t > 0, t, alpha * (m.off(low, d) - 1)), d)


def inner(f):
    """A composition: f(off, x), off rounding what it is given to the type of x, which a value between two kernels has."""
    def g(m, operands, options, values):
        t, d = m.real(operands[0])
        return m.made(f(lambda x: m.off(x, d), t), d)
    return g


def view(f):
    def g(m, operands, options, values):
        return Value(t=f(operands[0].t, options), d=operands[0].d)
    return g


def shape(options):
    return text.integers(options["shape"])


def sliced(t, options):
    axis = int(options["axis"])
    ends = [int(options[key]) if key in options else None for key in ("start", "stop")]
    return t.index_select(axis, torch.tensor(list(range(*slice(*ends, int(options.get("step", "1"))).indices(t.shape[axis]))),
                                             dtype=torch.int64))


def padded(t, options):
    axis = int(options["axis"]) % t.dim()

    def block(count):
        value = float(options.get("value", "0"))
        return torch.full([count if i == axis else n for i, n in enumerate(t.shape)], value).to(t.dtype)
    return torch.cat([block(int(options["low"])), t, block(int(options["high"]))], axis)


def joined(f):
    def g(m, operands, options, values):
        d = operands[0].d
        for v in operands[1:]:
            d = promote(d, v.d)
        return Value(t=f([m.converted(v, d) for v in operands], int(options["axis"])), d=d)
    return g


def part(t, options):
    return t.split(text.integers(options["extents"]), int(options["axis"]))[int(options["part"])]


TABLE = {
    "sum": sums, "prod": prods, "max": extreme(True), "min": extreme(False), "mean": means, "var": variances,
    "any": any_all(torch.any), "all": any_all(torch.all), "logsumexp": log_sums, "argmax": position(True),
    "argmin": position(False), "cumsum": running_sum, "where": chosen, "clamp": clamped, "cast": cast, "elu": elus,
    "silu": inner(lambda off, x: x * off(torch.sigmoid(x))),
    "softplus": inner(lambda off, x: torch.logaddexp(off(x), torch.zeros_like(x))),
    "gelu": inner(lambda off, x: x * 0.5 * off(1 + off(torch.erf(off(x / math.sqrt(2)))))),
    "gelu_tanh": inner(lambda off, x: 0.5 * x * off(1 + off(torch.tanh(off(math.sqrt(2 / math.pi) * off(x + 0.044715 * x**3)))))),
    "isnan": lambda m, v, o, _: Value(t=torch.isnan(v[0].t), d="bool"),
    "isinf": lambda m, v, o, _: Value(t=torch.isinf(v[0].t), d="bool"),
    "isfinite": lambda m, v, o, _: Value(t=torch.isfinite(v[0].t), d="bool"),
    "bit_not": lambda m, v, o, _: Value(t=wrap(~v[0].t, v[0].d), d=v[0].d),
    "logical_not": lambda m, v, o, _: Value(t=torch.logical_not(v[0].t), d="bool"),
    "stop_gradient": lambda m, v, o, _: Value(t=v[0].t.detach(), d=v[0].d),
    "zeros_like": lambda m, v, o, _: Value(t=torch.zeros_like(v[0].t), d=v[0].d),
    "full_like": lambda m, v, o, _: Value(t=m.constant(float(o["value"]), v[0].d).expand(v[0].t.shape), d=v[0].d),
    "reshape": view(lambda t, o: t.reshape(shape(o))), "broadcast_to": view(lambda t, o: t.expand(shape(o))),
    "transpose": view(lambda t, o: t.permute(text.integers(o["perm"]))),
    "swap_axes": view(lambda t, o: t.transpose(int(o["a"]), int(o["b"]))),
    "unsqueeze": view(lambda t, o: t.unsqueeze(int(o["axis"]))), "squeeze": view(lambda t, o: t.squeeze(int(o["axis"]))),
    "slice": view(sliced), "select": view(lambda t, o: t.select(int(o["axis"]), int(o["position"]))),
    "pad": view(padded), "split": view(part), "flip": view(lambda t, o: t.flip(text.integers(o["axes"]))),
    "concat": joined(torch.cat), "stack": joined(torch.stack),
}
