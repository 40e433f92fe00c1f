"""The families of random programs: each a function that makes a Grower grow one. Values alone, a gradient or a second derivative
are asked for; most families draw which."""
import families_of_masks
from grower import SMALL, Grower, one_of
from steps import ANY, FLOATING, NARROW, batch_sum, mixture, norm_plain, reduce_kept, regrouped, residual, times, unary


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


def captured(g):
    """Gradients by some inputs of functions that capture the others."""
    d = one_of(g.r, f64=2, f32=4, bf16=1)
    for _ in range(g.r.randint(2, 3)):
        g.input(d, tuple(g.extent() for _ in range(g.r.randint(1, 3))))
    times(g, 2, 7, mixture(unary=2, binary=3, product=3, reduction=1.5, view=1.5, norm=0.7))
    g.how("closure")
    return g.finish(one_of(g.r, grad=3, hess=1))


FAMILIES = {"products": products, "reshaped": reshaped, "second": second, "joined": joined, "mixed": mixed, "gradients": gradients,
            "literals": literals, "shapes": shapes, "captured": captured, "groups": families_of_masks.groups,
            "attention": families_of_masks.attention_family, "losses": families_of_masks.losses,
            "quantised": families_of_masks.quantised}


def draw(family, seed):
    """The program of a seed; None where it came to nothing."""
    g = Grower(f"{family} {seed}")
    g.p.seed = seed
    return FAMILIES[family](g)
