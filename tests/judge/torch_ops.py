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
        return torch.from_numpy(numpy.asarray(text.round_to(d, t.detach().numpy(force=True))))

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def noise_of(t, salt):
    """In [-1, 1), at random, but the same for the same number: equal numbers are rounded alike, and sums of them are off together."""
    def shifted(x, by):
        """To the right, zeros coming in: `>>` brings in the sign, and a sign meeting itself is never negative."""
        return (x >> by) & ((1 << (64 - by)) - 1)
    x = (t.detach().contiguous().view(torch.int64) ^ salt) * -7046029254386353131  # the multipliers of SplitMix64
    x = (x ^ shifted(x, 27)) * -4658895280553007687
    return ((x ^ shifted(x, 31)) >> 10).to(torch.float64) * 2.0**-53


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


class FromResult(torch.autograd.Function):
    """A function's result y as it was rounded, where the gradient is computed from y: 1 - y² of a tanh near 1 is off by y's rounding."""

    @staticmethod
    def forward(ctx, t, y, slope):
        ctx.slope = slope
        y = y.clone()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * ctx.slope(y), None, None


# Functions whose gradient is computed from their result, and how.
SLOPES = {torch.tanh: lambda y: 1 - y * y, torch.sigmoid: lambda y: y * (1 - y)}


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

    def applied(self, f, t, d):
        """f(t) of one operand."""
        if self.random is None or f not in SLOPES:
            return f(t)
        return FromResult.apply(t, self.off(f(t.detach()), d), SLOPES[f])

    def added(self, t, d, f):
        """f(t), which adds elements of t in any order: n roundings of partial sums, at random, are off by sqrt(n) of one of all
        (Higham and Mary, SIAM J. Sci. Comput. 41, 2019)."""
        total = f(self.off(t, d))
        if self.random is None or t.numel() == 0:
            return total
        terms = max(1, t.numel() // max(1, total.numel()))
        error = self.ERRORS[d] / 4 * math.sqrt(terms)
        return total + noise_of(total, self.random.getrandbits(62)) * error * f(t.detach().abs())

    def used(self, v):
        """The value in one place that reads it: of a narrow type, the gradient from each of them may be rounded."""
        if self.random is None or v.d in ("f64", "f32") or not v.t.requires_grad:
            return v
        return Value(t=self.off(v.t, "f64", back=v.d), d=v.d)

    def compared(self, t, d):
        """t where a comparison or a choice looks at it: a narrow value may be off by a few roundings of what it is computed
        from, as results may (judging.FACTOR). Its gradient is not."""
        if self.random is None or not is_float(d) or d in ("f64", "f32"):
            return t
        off = t.detach()
        for _ in range(8):
            off = self.off(off, d)
        moved = off - t.detach()
        return t + torch.where(torch.isfinite(moved), moved, torch.zeros_like(moved))

    def made(self, t, d):
        if is_float(d):
            # In some draws a narrow result is the nearest number of its type: comparisons with it may be ties.
            if self.random is not None and d not in ("f64", "f32") and self.random.random() < 0.25:
                return Value(t=Rounded.apply(t, d), d=d)
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
        t = self.compared(v.t, v.d).detach()
        t = torch.where(torch.isnan(t), torch.zeros_like(t), t)
        return torch.clamp(torch.trunc(t), *limits).to(torch.int64)

    def real(self, v):
        """For functions of floats: integers give f32."""
        return (v.t, v.d) if is_float(v.d) else (self.converted(v, "f32"), "f32")

    # --- running

    def run(self, statements, values, literals):
        for s in statements:
            words = [literals.get(word, word) for word in s.operands]
            operands = [self.used(values[word]) if word in values else word for word in words]
            named = types.SimpleNamespace(values=values, options=s.options, op=s.op)
            values[s.result] = self.evaluate(s.op, operands, named)
        return values

    def evaluate(self, op, operands, named):
        import torch_products  # these use this file
        import torch_views
        for table, run in ((BINARY, self.binary), (COMPARE, self.compare), (UNARY, self.unary), (BITS, self.bits),
                           (torch_products.TABLE, self.other), (torch_views.TABLE, self.other)):
            if op in table:
                return run(table[op], operands, named)
        raise KeyError(f"no op has the name {op}")

    def binary(self, f, operands, named):
        a, b, d = self.pair(*operands, arithmetic=named.op in ("add", "sub", "mul", "div", "pow", "atan2"))
        if not is_float(d) and named.op in ("div", "pow", "atan2"):
            a, b, d = a.to(torch.float64), b.to(torch.float64), "f32"
        if is_float(d) and named.op in ("trunc_div", "rem"):
            # The quotient is a choice of a whole number.
            jump = (torch.trunc(self.compared(a, d) / self.compared(b, d)) - torch.trunc(a / b)).detach()
            moved = jump if named.op == "trunc_div" else -jump * b
            return self.made(torch.where(torch.isfinite(jump) & (jump != 0), f(a, b) + moved, f(a, b)), d)
        return self.made(f(a, b), d)

    def compare(self, f, operands, named):
        a, b, d = self.pair(*operands)
        return Value(t=f(self.compared(a, d), self.compared(b, d)), d="bool")

    def unary(self, f, operands, named):
        v = operands[0]
        if named.op in ("neg", "abs", "sign", "square", "relu") and not is_float(v.d):
            return self.made(f(v.t), v.d)
        t, d = self.real(v)
        if named.op in STEPS:
            t = self.compared(t, d)
        return self.made(self.applied(f, t, d), d)

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
# What jumps where its operand passes a number.
STEPS = {"sign", "floor", "ceil", "round", "trunc"}
UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
         "trunc": torch.trunc, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "square": torch.square,
         "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2, "log1p": torch.log1p,
         "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid,
         "relu": torch.relu}
