"""Steps of random programs: each adds a statement or more to what a Grower has, or none."""
from grower import one_of

FLOATING = {"f32": 5, "f64": 3, "f16": 1, "bf16": 1}
NARROW = {"f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1}
ANY = {"f32": 6, "f64": 2, "f16": 1, "bf16": 1, "f8e4m3": 0.5, "f8e5m2": 0.5, "i64": 1, "i32": 1.5, "i8": 0.7, "u8": 0.7, "bool": 0.7}


def times(g, low, high, step):
    for _ in range(g.r.randint(low, high)):
        step(g)


# --- steps, each a statement more or none

def unary(g):
    x = g.pick_float()
    if x is None:
        return None
    op = g.r.choice(["neg", "abs", "sin", "cos", "tanh", "sigmoid", "erf", "exp", "square", "relu", "silu", "softplus", "gelu",
                     "gelu_tanh", "elu", "expm1", "sign", "floor", "round", "ceil", "trunc", "tan", "exp2", "clamp", "positive"])
    if op == "positive":
        safe = g.add("add", g.add("abs", x), "0.5")
        return safe and g.add(g.r.choice(["log", "sqrt", "rsqrt", "reciprocal", "log2", "log1p"]), safe)
    if op == "clamp":
        return g.add("clamp", x, low=-0.75, high=0.5)
    return g.add(op, x)


def binary(g):
    x, y = g.pick(), g.pick()
    if g.chance(0.2):
        y = g.r.choice(["2", "0.5", "-1.25", "3", "1"])
        if g.dtype(x) == "bool":
            return None
    op = one_of(g.r, add=4, sub=3, mul=4, minimum=1.5, maximum=1.5, div=1, lt=0.3, ge=0.3, ne=0.3, eq=0.3, atan2=0.5)
    if op == "div" and not y[-1].isdigit() or op == "div" and y.startswith("v"):
        y = g.add("add", g.add("abs", y) or y, "1") if g.is_float(y) else "2"
        if y is None:
            return None
    if op == "atan2":
        if not y.startswith("v") or not g.is_float(y) or not g.is_float(x):
            return None
        y = g.add("add", g.add("abs", y) or y, "0.5")
    return y and g.add(op, x, y)


def choose(g):
    x, y = g.pick(), g.pick()
    condition = g.add(g.r.choice(["gt", "le"]), x, y)
    return condition and g.add("where", condition, g.pick(), g.r.choice([g.pick(), "0"]))


def axis_of(g, x):
    rank = len(g.shape(x))
    return g.r.randrange(-rank, rank) if rank else None


def view(g):
    x = g.pick()
    shape = g.shape(x)
    rank = len(shape)
    op = g.r.choice(["reshape", "swap_axes", "transpose", "broadcast_to", "unsqueeze", "squeeze", "slice", "select", "pad", "concat",
                     "stack", "split", "flip"])
    if op == "reshape":
        return g.add("reshape", x, shape=regrouped(g, shape))
    if op == "unsqueeze":
        return g.add(op, x, axis=g.r.randint(0, rank))
    if op == "broadcast_to":
        stretched = tuple(g.extent() if n == 1 else n for n in shape)
        return g.add(op, x, shape=((g.extent(),) if g.chance(0.5) else ()) + stretched)
    if op in ("concat", "stack"):
        return join(g, op)
    if rank == 0:
        return None
    axis = axis_of(g, x)
    n = shape[axis]
    if op == "swap_axes":
        return g.add(op, x, a=axis, b=axis_of(g, x))
    if op == "transpose":
        return g.add(op, x, perm=g.r.sample(range(rank), rank))
    if op == "squeeze":
        return g.add(op, x, axis=axis) if n == 1 else None
    if op == "select":
        return g.add(op, x, axis=axis, position=g.r.randrange(n)) if n else None
    if op == "pad":
        return g.add(op, x, axis=axis, low=g.r.randint(0, 2), high=g.r.randint(0, 2), value=g.r.choice(["0", "0", "1"]))
    if op == "split":
        first = g.r.randint(0, n)
        return g.add(op, x, axis=axis, extents=(first, n - first), part=g.r.randint(0, 1)) if 0 < first < n else None
    if op == "flip":
        return g.add(op, x, axes=g.r.sample(range(rank), g.r.randint(1, rank)))
    return cut(g, x, axis)


def cut(g, x, axis):
    ends = {}
    if g.chance(0.5):
        ends["start"] = g.r.randint(-4, 4)
    if g.chance(0.5):
        ends["stop"] = g.r.randint(-4, 8)
    name = g.add("slice", x, axis=axis, **ends, step=g.r.choice([1, 1, 2, 3, -1, -2]))
    return name


def join(g, op=None):
    """The same value several times, or others of its shape: concats nest."""
    x = g.pick()
    rank = len(g.shape(x))
    op = op or g.r.choice(["concat", "concat", "stack"])
    if op == "concat" and rank == 0:
        return None
    parts = [x]
    for _ in range(g.r.randint(1, 2)):
        parts.append(x if g.chance(0.5) else g.pick(lambda name: g.shape(name) == g.shape(x)))
    return g.add(op, *parts, axis=g.r.randrange(rank) if op == "concat" else g.r.randint(0, rank))


def regrouped(g, shape):
    """The same number of elements in other groups: merged, split, exchanged between neighbours."""
    size = 1
    for n in shape:
        size *= n
    if size == 0:
        return shape
    factors = []
    rest = size
    while rest > 1:
        divisor = next(d for d in range(2, rest + 1) if rest % d == 0)
        factors.append(divisor)
        rest //= divisor
    g.r.shuffle(factors)
    groups = [1] * g.r.randint(1, 4)
    for factor in factors:
        groups[g.r.randrange(len(groups))] *= factor
    return tuple(groups)


def reduction(g):
    x = g.pick()
    rank = len(g.shape(x))
    axes = [axis for axis in range(rank) if g.chance(0.5)]
    keep = g.r.randint(0, 1)
    op = g.r.choice(["sum", "sum", "mean", "max", "min", "prod", "var", "logsumexp", "any", "all", "argmax", "argmin", "cumsum"])
    if op in ("any", "all"):
        return g.add(op, x, axes=axes, keep=keep) if g.dtype(x) == "bool" else None
    if op in ("argmax", "argmin", "cumsum"):
        if rank == 0 or g.dtype(x) == "bool":
            return None
        return g.add(op, x, axis=axis_of(g, x), **({} if op == "cumsum" else {"keep": keep}))
    if g.dtype(x) == "bool" and op not in ("sum", "mean") or op in ("prod", "var", "logsumexp") and not g.is_float(x):
        return None
    return g.add(op, x, axes=axes, keep=keep)


def norm(g):
    x = g.pick_float()
    if x is None or not g.shape(x):
        return None
    op = g.r.choice(["softmax", "log_softmax", "layer_norm", "rms_norm"])
    if op.endswith("softmax"):
        return g.add(op, x, axis=axis_of(g, x))
    scales = [g.input(g.dtype(x), g.shape(x)[-1:])] if g.chance(0.4) else []
    if op == "layer_norm" and scales and g.chance(0.6):
        scales.append(g.input(g.dtype(x), g.shape(x)[-1:]))
    return g.add(op, x, *scales, epsilon=g.r.choice(["0.1", "0.01"]))


def gather(g):
    x = g.pick(lambda name: len(g.shape(name)) > 0 and g.shape(name)[0] > 0)
    if x is None:
        return None
    shape = g.shape(x)
    axis = g.r.randrange(len(shape))
    n = shape[axis]
    if n == 0:
        return None
    # Now and then one lies beyond the end, where zero is read.
    outside = g.chance(0.15)
    g.outside = g.outside or outside
    below = n + (1 if outside else 0)
    op = g.r.choice(["take", "take", "take_along", "scatter_add", "embedding", "one_hot"])
    d = g.r.choice(["i64", "i32"])
    if op == "take":
        return g.add(op, x, g.input(d, g.r.choice([(), (g.extent(),), (g.extent(), g.extent())]), pickable=False, below=below), axis=axis)
    if op == "take_along":
        other = tuple(g.extent() if i == axis else m for i, m in enumerate(shape))
        return g.add(op, x, g.input(d, other, pickable=False, below=below), axis=axis)
    if op == "scatter_add":
        to = g.extent()
        return g.dtype(x) != "bool" and g.add(op, g.input(d, (n,), pickable=False, below=to), x, axis=axis,
                                              shape=shape[:axis] + (to,) + shape[axis + 1:])
    if op == "embedding":
        return len(shape) == 2 and g.add(op, x, g.input(d, (g.extent(),), pickable=False, below=shape[0]))
    return g.add(op, g.input(d, (g.extent(),), pickable=False, below=4), classes=4, dtype=g.r.choice(["f32", "i32", "bf16"]))


def convert(g):
    return g.add("cast", g.pick(), dtype=one_of(g.r, **ANY))


def whole_numbers(g):
    x = g.pick(lambda name: not g.is_float(name) and g.dtype(name) != "bool")
    if x is None:
        return None
    y = g.r.choice([g.pick(lambda name: not g.is_float(name) and g.dtype(name) != "bool"), "3", "1"])
    op = g.r.choice(["bit_and", "bit_or", "bit_xor", "shl", "shr", "trunc_div", "rem", "add", "mul", "sub", "minimum", "div"])
    return g.add(op, x, g.r.choice(["1", "3", "2"]) if op in ("shl", "shr") else y)


def product(g):
    x, y = g.pick_float(), g.pick_float()
    if x is None:
        return None
    kind = g.r.random()
    if kind < 0.3 and len(g.shape(x)) >= 2:
        y = g.input(g.dtype(x), g.shape(x)[-1:] + ((g.extent(),) if g.chance(0.8) else ()))
    elif kind < 0.5 and len(g.shape(x)) >= 2:
        y = g.add("swap_axes", x if g.chance(0.5) else y, a=-1, b=-2) or y
    return g.add("matmul", x, y)


def residual(g):
    return g.add(g.r.choice(["add", "sub", "mul"]), g.pick_float(), g.pick_float())


def reshape(g):
    x = g.pick_float()
    return g.add("reshape", x, shape=regrouped(g, g.shape(x)))


def batch_sum(g):
    x = g.pick(lambda name: len(g.shape(name)) > 2)
    return x and g.add(g.r.choice(["sum", "sum", "mean", "max"]), x, axes=g.r.choice([0, 0, 1]), keep=g.r.randint(0, 1))


def norm_plain(g):
    x = g.pick(lambda name: g.is_float(name) and len(g.shape(name)) > 0)
    return g.add(g.r.choice(["softmax", "log_softmax"]), x, axis=-1)


def reduce_kept(g):
    x = g.pick(lambda name: g.is_float(name) and len(g.shape(name)) > 0)
    return g.add(g.r.choice(["sum", "mean", "max", "logsumexp"]), x, axes=g.r.choice([0, -1]), keep=g.r.randint(0, 1))


def mixture(**shares):
    steps = {name: globals()[name] for name in shares}
    return lambda g: steps[one_of(g.r, **shares)](g)
