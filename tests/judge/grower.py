"""Grows a random program statement by statement. PyTorch runs each at once: so shapes and types are known, and a statement whose
values are not moderate is taken back."""
import random

import torch

import program as text
import torch_ops

# Beyond these a type is too near its end for a comparison to say much.
MODERATE = {"f64": 300, "f32": 300, "f16": 300, "bf16": 300, "f8e4m3": 60, "f8e5m2": 300}
SMALL = [1, 1, 2, 2, 3, 3, 4, 5]
MIDDLE = [1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 40]


class Grower:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.p = text.Program(seed=seed)
        self.meaning = torch_ops.Meaning()
        self.values = {}
        self.order = []  # names that may be picked, the latest last
        self.limit = 3000  # elements of any value
        self.outside = False  # some index lies outside: zero is read, but eager code may refuse it
        # Half of all programs are of tiny and one-wide things.
        self.extents = SMALL if self.r.random() < 0.5 else MIDDLE

    def chance(self, p):
        return self.r.random() < p

    def extent(self):
        return self.r.choice(self.extents)

    def new_name(self):
        return f"v{len(self.values)}"

    def input(self, dtype, shape, pickable=True, **holds):
        name = self.new_name()
        each = text.Input(name, dtype, tuple(shape), {key: str(value) for key, value in holds.items()})
        self.p.inputs.append(each)
        t = torch.from_numpy(text.values_of(text.Program(self.p.seed, inputs=[each]), 0)[name].copy())
        self.values[name] = torch_ops.Value(t=t != 0 if dtype == "bool" else t, d=dtype)
        if pickable:
            self.order.append(name)
        return name

    def add(self, op, *operands, **options):
        """The statement's name; None, and nothing is changed, where it would not be legal or not moderate."""
        return self.add_if(self.is_moderate, op, *operands, **options)

    def is_moderate(self, v):
        if not torch_ops.is_float(v.d) or v.t.numel() == 0:
            return True
        return bool(torch.isfinite(v.t).all()) and float(v.t.abs().max()) <= MODERATE[v.d]

    def add_if(self, accepted, op, *operands, **options):
        name = self.new_name()
        options = {key: ",".join(map(str, to)) if isinstance(to, (list, tuple)) else str(to) for key, to in options.items()}
        statement = text.Statement(name, op, [str(operand) for operand in operands], options)
        values = dict(self.values)
        try:
            self.meaning.run([statement], values, self.p.literals)
        except (RuntimeError, IndexError, ValueError):
            return None
        v = values[name]
        if v.t.numel() > self.limit or v.t.dim() > 6 or not accepted(v):
            return None
        self.values = values
        self.p.statements.append(statement)
        self.order.append(name)
        return name

    def call(self, changed):
        """Another call, if the program is legal with these shapes."""
        self.p.calls.append(changed)
        try:
            given = text.values_of(self.p, len(self.p.calls))
            values = {each.name: torch_ops.Value(t=torch.from_numpy(given[each.name]), d=each.dtype) for each in self.p.inputs}
            self.meaning.run(self.p.statements, values, self.p.literals)
        except (RuntimeError, IndexError, ValueError):
            self.p.calls.pop()

    def shape(self, name):
        return tuple(self.values[name].t.shape)

    def dtype(self, name):
        return self.values[name].d

    def is_float(self, name):
        return torch_ops.is_float(self.dtype(name))

    def pick(self, wanted=lambda name: True):
        names = [name for name in self.order if wanted(name)]
        return names[max(self.r.randrange(len(names)), self.r.randrange(len(names)))] if names else None

    def pick_float(self):
        return self.pick(self.is_float)

    # --- ends

    def moderate(self, name):
        """The value drawn towards what sums can bear."""
        return self.add(self.r.choice(["sin", "tanh"]), name) or name

    def scalar(self):
        """A scalar of a few of the values."""
        floats = [name for name in self.order if self.is_float(name)]
        chosen = self.r.sample(floats[-6:], min(len(floats[-6:]), self.r.randint(1, 3)))
        if floats[-1] not in chosen:
            chosen.append(floats[-1])
        total = None
        for name in chosen:
            kind = self.r.random()
            if kind < 0.4:
                name = self.add("mul", name, self.add("sin", name) or name) or name
            elif kind < 0.8:
                name = self.add("mul", name, name) or name
            part = self.add("sum", name) if self.chance(0.8) else self.add("mean", name)
            if part is not None:
                total = part if total is None else self.add("add", total, part) or total
        return total

    def finish(self, wanted=None, results=None):
        """Values, a gradient or a second derivative; None where there is nothing to ask for."""
        wanted = wanted or self.r.choice(["out", "grad", "hess"])
        by = [i for i, each in enumerate(self.p.inputs) if each.dtype in text.FLOATS]
        if wanted == "out" or not by:
            computed = [s.result for s in self.p.statements]
            if not computed:
                return None
            results = results or self.r.sample(computed, min(len(computed), self.r.randint(1, 4)))
            self.p.results = results if computed[-1] in results else [computed[-1]] + results
            return self.p
        total = self.scalar()
        if total is None:
            return None
        self.p.wanted, self.p.results = wanted, [total]
        chosen = sorted(self.r.sample(by, self.r.randint(1, len(by))))
        self.p.wrt = chosen
        return self.p

    def how(self, *more):
        self.p.how += list(more)
        kind = self.r.random()
        for share, word in ((0.08, "unfused"), (0.08, "recompute"), (0.06, "deterministic"), (0.06, "eager")):
            if kind < share:
                if word not in self.p.how and not (word == "eager" and self.outside):
                    self.p.how.append(word)
                return
            kind -= share


def one_of(random_, **shares):
    """A key, as often as its share of the sum says."""
    kind = random_.random() * sum(shares.values())
    for key, share in shares.items():
        kind -= share
        if kind < 0:
            return key
    return key

