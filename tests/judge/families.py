"""The families of random programs: each a function that makes a Grower grow one."""
from grower import SMALL, Grower, one_of

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


def mixture(**shares):
    steps = {name: globals()[name] for name in shares}
    return lambda g: steps[one_of(g.r, **shares)](g)


# --- families

def square_chain(g, steps):
    """Products of products of square matrices with residuals, sums over the batch and stretched operands."""
    k, b = g.extent(), g.extent()
    while k * k * b > 1500:
        k, b = max(1, k // 2), max(1, b // 2)
    dtype = one_of(g.r, f64=5, f32=4, f16=0.5, bf16=0.5)
    for _ in range(g.r.randint(1, 3)):
        g.input(dtype if g.chance(0.9) else g.r.choice(["f32", "f64"]), g.r.choice([(b, k, k), (1, k, k), (k, k), (b, k, k)]))

    def step(g):
        x = g.pick()
        kind = one_of(g.r, matmul=5, residual=3, batch=2, stretch=1.5, swap=1.5, flip=0.5, scale=0.7, wave=1, sums=0.7)
        if kind == "matmul":
            return g.add("matmul", x, g.pick())
        if kind == "residual":
            return residual(g)
        if kind == "batch":
            return batch_sum(g)
        if kind == "stretch":
            return g.add("broadcast_to", x, shape=(b,) + g.shape(x)[-2:])
        if kind == "swap":
            return g.add("swap_axes", x, a=-1, b=-2)
        if kind == "flip":
            return g.add("flip", x, axes=g.r.randrange(len(g.shape(x))))
        if kind == "scale":
            return g.add("mul", x, g.r.choice(["0.5", "3", "-1.25"]))
        if kind == "wave":
            return g.add(g.r.choice(["sin", "tanh", "abs", "exp"]), x)
        return g.add("sum", x, axes=g.r.choice([-1, -2]), keep=1)
    for _ in range(steps):
        step(g)


def products(g):
    square_chain(g, g.r.randint(2, 9))
    g.how()
    return g.finish()


def reshaped(g):
    """Reshapes, transposes and slices before and after products."""
    d = one_of(g.r, **FLOATING)
    shape = tuple(g.extent() for _ in range(g.r.randint(2, 4)))
    g.input(d, shape)
    g.input(d, regrouped(g, shape))
    times(g, 3, 8, mixture(reshape=4, product=4, view=2, residual=1, unary=0.7, batch_sum=0.7))
    x = g.add("reshape", g.order[0], shape=regrouped(g, shape))
    if x and len(g.shape(x)) >= 2 and g.chance(0.7):
        w = g.input(d, (g.shape(x)[-1], g.extent()))
        g.add("matmul", x, w)
    g.how()
    return g.finish(one_of(g.r, out=3, grad=3, hess=1))


def second(g):
    """Second derivatives of anything smooth."""
    d = g.r.choice(["f64", "f64", "f32"])
    for _ in range(g.r.randint(1, 3)):
        g.input(d, tuple(g.extent() for _ in range(g.r.randint(1, 3))))
    times(g, 2, 8, mixture(unary=3, binary=3, product=2, reduction=1.5, view=2, norm=1, residual=1, gather=0.5))
    g.how()
    return g.finish("hess")


def joined(g):
    """Concats and stacks of concats and stacks."""
    d = one_of(g.r, f64=3, f32=4, f16=1, i32=1)
    for _ in range(g.r.randint(1, 2)):
        g.input(d, tuple(g.r.choice(SMALL) for _ in range(g.r.randint(1, 2))))
    times(g, 3, 9, mixture(join=5, view=1.5, unary=1, residual=1.5, reduction=0.7, product=0.5))
    g.how()
    return g.finish()


def mixed(g):
    """Everything, of all types and shapes."""
    for _ in range(g.r.randint(1, 3)):
        g.input(one_of(g.r, **ANY), tuple(g.extent() for _ in range(g.r.randint(0, 4))) if g.chance(0.95) else (0, 3))
    if not g.pick_float():
        g.input("f32", (g.extent(),))
    times(g, 3, 14, mixture(unary=3, binary=4, choose=1, view=3, reduction=2, norm=0.8, gather=1, convert=1, whole_numbers=1, product=1.2))
    g.how()
    return g.finish("out")


def gradients(g):
    """The same of floats, and its gradient."""
    for _ in range(g.r.randint(1, 3)):
        g.input(one_of(g.r, **NARROW, f64=2), tuple(g.extent() for _ in range(g.r.randint(0, 4))))
    times(g, 3, 12, mixture(unary=3, binary=4, choose=1, view=3, reduction=2, norm=1, gather=1, product=1.5))
    g.how()
    return g.finish("grad")


def literals(g):
    """Eager or compiled calls of one function with other literals."""
    for _ in range(g.r.randint(1, 2)):
        g.input(one_of(g.r, **FLOATING), tuple(g.extent() for _ in range(g.r.randint(0, 3))))
    for i in range(g.r.randint(1, 3)):
        g.p.literals[f"c{i}"] = str(g.r.randint(-3, 3) * 0.5)
    for _ in range(g.r.randint(2, 5)):
        mixture(unary=2, binary=2, reduction=1)(g)
        g.add(g.r.choice(["add", "mul", "sub", "maximum", "minimum"]), g.pick_float(), g.r.choice(list(g.p.literals)))
    for _ in range(g.r.randint(1, 4)):
        g.p.calls.append({name: str(g.r.randint(-8, 8) * 0.25) for name in g.p.literals})
    g.how("eager")
    return g.finish(one_of(g.r, out=3, grad=1))


def shapes(g):
    """One compiled function called with several shapes: what is broadcast, reduced and multiplied changes."""
    d = one_of(g.r, **FLOATING)
    a, b, c = g.extent(), g.extent(), g.extent()
    x = g.input(d, (a, b))
    w = g.input(d, (b, c))
    y = g.input(d, (c,))
    last = g.add("matmul", x, w) if g.chance(0.7) else None
    if last:
        last = g.add("add", last, y)
        last = g.r.choice([last, g.add("softmax", last), g.add("rms_norm", last, epsilon="0.1")])
    for _ in range(g.r.randint(1, 4)):
        g.r.choice([unary, residual, norm_plain, reduce_kept])(g)
    if len(g.p.statements) == 0:
        return None
    for _ in range(g.r.randint(1, 3)):
        a, b, c = (g.r.choice([n, g.extent(), g.extent()]) for n in (a, b, c))
        g.call({x: (a, b), w: (b, c), y: (c,)})
    if g.chance(0.4):
        g.p.how.append("dynamic")
    g.how()
    return g.finish(one_of(g.r, out=3, grad=2))


def norm_plain(g):
    x = g.pick(lambda name: g.is_float(name) and len(g.shape(name)) > 0)
    return g.add(g.r.choice(["softmax", "log_softmax"]), x, axis=-1)


def reduce_kept(g):
    x = g.pick(lambda name: g.is_float(name) and len(g.shape(name)) > 0)
    return g.add(g.r.choice(["sum", "mean", "max", "logsumexp"]), x, axes=g.r.choice([0, -1]), keep=g.r.randint(0, 1))


def captured(g):
    """Gradients by some inputs of functions that capture the others."""
    d = one_of(g.r, f64=2, f32=4, bf16=1)
    for _ in range(g.r.randint(2, 3)):
        g.input(d, tuple(g.extent() for _ in range(g.r.randint(1, 3))))
    times(g, 2, 7, mixture(unary=2, binary=3, product=3, reduction=1.5, view=1.5, norm=0.7))
    g.how("closure")
    return g.finish(one_of(g.r, grad=3, hess=1))


def captured_is_used(program):
    return program is not None and len(program.wrt) < len(program.inputs)


from families_of_masks import attention_family, groups, losses, quantised  # noqa: E402  they use steps of this file

FAMILIES = {"products": products, "reshaped": reshaped, "second": second, "joined": joined, "mixed": mixed, "gradients": gradients,
            "literals": literals, "shapes": shapes, "captured": captured, "groups": groups, "attention": attention_family,
            "losses": losses, "quantised": quantised}


def draw(family, seed):
    """The program of a seed; None where it came to nothing."""
    g = Grower(f"{family} {seed}")
    g.p.seed = seed
    return FAMILIES[family](g)
