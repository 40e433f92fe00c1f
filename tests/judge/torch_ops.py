"""What each op of a program means, in PyTorch: written from docs/ops.md and the comments of the public headers, without a look
at how our library computes. Everything float is computed in float64. Rounding is a random relative error, of the size that the
type allows, wherever a value may be rounded: how far results move by it says how far another order of rounding may move them."""
import math
import random
import types

import numpy
import torch

import program as text

Value = types.SimpleNamespace  # t: the tensor, float64, int64 or bool; d: the name of its type

NAMES = {"i64": 64, "i32": 32, "i8": 8, "u8": 8}


def is_float(d):
    return d in text.FLOATS


def wrap(t, d):
    """Integers modulo 2^bits."""
    if d == "i64" or d not in NAMES:
        return t
    if d == "u8":
        return t & 255
    half = 1 << (NAMES[d] - 1)
    return torch.remainder(t + half, 2 * half) - half


def promote(a, b):
    """The table of docs/ops.md."""
    if a == b:
        return a
    if is_float(a) and is_float(b):
        pair = {a, b}
        for wide in ("f64", "f32"):
            if wide in pair:
                return wide
        if pair in ({"f16", "bf16"}, {"f8e4m3", "f8e5m2"}):
            return "f32"
        return "f16" if "f16" in pair else "bf16"
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if "i64" in (a, b):
        return "i64"
    return "i32"


class Rounded(torch.autograd.Function):
    """Rounds to a type; to gradients it is the identity."""

    @staticmethod
    def forward(ctx, t, d):
        return torch.from_numpy(numpy.asarray(text.round_to(d, t.detach().numpy())))

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def noise_of(t, salt):
    """In [-1, 1), at random, but the same for the same number: equal numbers are rounded alike, and sums of them are off together."""
    x = (t.detach().contiguous().view(torch.int64) ^ salt) * -7046029254386353131  # the multipliers of SplitMix64
    x = (x ^ (x >> 27)) * -4658895280553007687
    return ((x ^ (x >> 31)) >> 10).to(torch.float64) * 2.0**-53


class Off(torch.autograd.Function):
    """Off by a random relative error and by a part of the smallest number, and so are the gradients that come back, of any order:
    beyond `largest` a
    rounding may overflow. `there` and `back` are these three."""

    @staticmethod
    def forward(ctx, t, random, there, back):
        ctx.of = random, back, there
        error, smallest, largest = there
        # What is 1 in float64 is 1 in every type: tanh, erf and sigmoid end there, and 1 - tanh is 0 beyond.
        noise = noise_of(t, random.getrandbits(62)) * (t.abs() != 1)
        off = t * (1 + noise * error) + noise * smallest
        return torch.where(t.abs() > largest, off * math.inf, off)

    @staticmethod
    def backward(ctx, gradient):
        return Off.apply(gradient, *ctx.of), None, None, None


class Meaning:
    """Runs statements. With a seed, every value is off by up to a few roundings of its type."""

    def __init__(self, seed=None):
        self.random = None if seed is None else random.Random(seed)

    # --- rounding

    # An op may be a few roundings off where the type is computed in; a narrow type is rounded once.
    ERRORS = {"f64": 2.0**-51, "f32": 2.0**-22, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}
    SMALLEST = {"f64": 0.0, "f32": 2.0**-149, "f16": 2.0**-25, "bf16": 2.0**-134, "f8e4m3": 2.0**-10, "f8e5m2": 2.0**-17}

    def off(self, t, d="f32", back=None):
        """t, off by what computing it in d may be; its gradient by what the type `back` may be, d if there is none."""
        if self.random is None or not t.is_floating_point():
            return t
        there, back = ((self.ERRORS[each], self.SMALLEST[each], text.FORMATS[each][2] / 4) for each in (d, back or d))
        return Off.apply(t, self.random, there, back)

    def made(self, t, d):
        if is_float(d):
            return Value(t=self.off(t, d), d=d)
        return Value(t=t if d == "bool" else wrap(t, d), d=d)

    # --- operands

    def literal(self, word):
        """Its number, and whether it is real."""
        real = any(c in word for c in ".en")
        return (float(word), True) if real else (int(word), False)

    def pair(self, a, b, arithmetic=False):
        """Both in one type; either may be a literal."""
        if isinstance(a, str) or isinstance(b, str):
            word, v = (a, b) if isinstance(a, str) else (b, a)
            number, real = self.literal(word)
            d = v.d
            if real and not is_float(d):
                d = "f32"
            if d == "bool" and arithmetic:
                d = "i32"
            scalar = self.constant(number, d)
            v = self.converted(v, d)
            return (scalar, v, d) if isinstance(a, str) else (v, scalar, d)
        d = promote(a.d, b.d)
        if d == "bool" and arithmetic:
            d = "i32"
        return self.converted(a, d), self.converted(b, d), d

    def constant(self, number, d):
        if is_float(d):
            # "of a narrow float type it keeps f32 precision"
            number = float(text.round_to("f64" if d == "f64" else "f32", numpy.array(float(number))))
            return torch.tensor(number, dtype=torch.float64)
        if d == "bool":
            return torch.tensor(bool(number))
        return wrap(torch.tensor(int(number)), d)

    def converted(self, v, d):
        """The tensor in the type d, as cast does it."""
        if v.d == d:
            return v.t
        if is_float(d):
            if not is_float(v.d):
                return Rounded.apply(v.t.to(torch.float64), d)
            widens = text.FORMATS[d][0] >= text.FORMATS[v.d][0] and text.FORMATS[d][1] <= text.FORMATS[v.d][1]
            return v.t if widens else Rounded.apply(v.t, d)
        if d == "bool":
            return v.t != 0
        if not is_float(v.d):
            return wrap(v.t.to(torch.int64), d)
        limits = {"i64": (-(2.0**63), 2.0**63 - 1024), "i32": (-(2.0**31), 2.0**31 - 1), "i8": (-128, 127), "u8": (0, 255)}[d]
        t = torch.where(torch.isnan(v.t), torch.zeros_like(v.t), v.t).detach()
        return torch.clamp(torch.trunc(t), *limits).to(torch.int64)

    def real(self, v):
        """For functions of floats: integers give f32."""
        return (v.t, v.d) if is_float(v.d) else (self.converted(v, "f32"), "f32")

    # --- running

    def run(self, statements, values, literals):
        for s in statements:
            words = [literals.get(word, word) for word in s.operands]
            operands = [values.get(word, word) for word in words]
            named = types.SimpleNamespace(values=values, options=s.options, op=s.op)
            values[s.result] = self.evaluate(s.op, operands, named)
        return values

    def evaluate(self, op, operands, named):
        import torch_products
        for table, run in ((BINARY, self.binary), (COMPARE, self.compare), (UNARY, self.unary), (BITS, self.bits),
                           (torch_products.TABLE, self.other), (OTHERS, self.other)):
            if op in table:
                return run(table[op], operands, named)
        raise KeyError(f"no op has the name {op}")

    def binary(self, f, operands, named):
        a, b, d = self.pair(*operands, arithmetic=named.op in ("add", "sub", "mul"))
        if not is_float(d) and named.op in ("div", "pow", "atan2"):
            a, b, d = a.to(torch.float64), b.to(torch.float64), "f32"
        return self.made(f(a, b), d)

    def compare(self, f, operands, named):
        a, b, _ = self.pair(*operands)
        return Value(t=f(a, b), d="bool")

    def unary(self, f, operands, named):
        v = operands[0]
        if named.op in ("neg", "abs", "sign", "square", "relu") and not is_float(v.d):
            return self.made(f(v.t), v.d)
        t, d = self.real(v)
        return self.made(f(t), d)

    def bits(self, f, operands, named):
        a, b, d = self.pair(*operands)
        return Value(t=wrap(f(a, b, d), d) if d != "bool" else f(a, b, d), d=d)

    def other(self, f, operands, named):
        return f(self, operands, named.options, named.values)


def truncated(a, b):
    """Division toward zero; x / 0 = 0 of integers."""
    if a.is_floating_point():
        return torch.trunc(a / b)
    safe = torch.where(b == 0, torch.ones_like(b), b)
    return torch.where(b == 0, torch.zeros_like(a * b), torch.div(a, safe, rounding_mode="trunc"))


def remainder(a, b):
    if a.is_floating_point():
        return torch.fmod(a, b)
    return a - truncated(a, b) * b


def shift(a, b, d, left):
    b = b % NAMES[d]
    return a << b if left else a >> b


BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.true_divide, "trunc_div": truncated,
          "rem": remainder, "pow": torch.pow, "atan2": torch.atan2, "minimum": torch.minimum, "maximum": torch.maximum}
COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
           "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor}
BITS = {"bit_and": lambda a, b, d: a & b, "bit_or": lambda a, b, d: a | b, "bit_xor": lambda a, b, d: a ^ b,
        "shl": lambda a, b, d: shift(a, b, d, True), "shr": lambda a, b, d: shift(a, b, d, False)}
UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
         "trunc": torch.trunc, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "square": torch.square,
         "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2, "log1p": torch.log1p,
         "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid,
         "relu": torch.relu}


# --- everything else: functions of (meaning, operands, options, values)
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
    t = m.off(v.t, "f64" if d == "f64" else "f32") if is_float(d) else v.t.to(torch.int64)
    return m.made(t.sum(axes, keepdim=keeps(options)) if axes else t, d)


def prods(m, operands, options, values):
    v = operands[0]
    t = m.off(v.t, "f64" if v.d == "f64" else "f32") if is_float(v.d) else v.t.to(torch.int64)
    return m.made(over(axes_of(v, options), t, keeps(options), lambda t, axis: t.prod(axis)), v.d if is_float(v.d) else "i64")


def extreme(largest):
    def f(m, operands, options, values):
        v = operands[0]
        axes = axes_of(v, options)
        g = torch.amax if largest else torch.amin
        return Value(t=g(v.t, axes, keepdim=keeps(options)) if axes else v.t, d=v.d)
    return f


def means(m, operands, options, values):
    t, d = m.real(operands[0])
    axes = axes_of(operands[0], options)
    return m.made(m.off(t, "f64" if d == "f64" else "f32").mean(axes, keepdim=keeps(options)) if axes else t, d)


def variances(m, operands, options, values):
    t, d = m.real(operands[0])
    axes = axes_of(operands[0], options)
    if not axes:
        return m.made(t * 0, d)
    count = math.prod(t.shape[axis] for axis in axes)
    centred = m.off(t - m.off(t.mean(axes, keepdim=True), d), d)
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
        t = operands[0].t.detach()
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
    t = m.off(v.t, "f64" if d == "f64" else "f32") if is_float(d) else v.t.to(torch.int64)
    return m.made(t.cumsum(int(options["axis"])), d)


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


OTHERS = {
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
