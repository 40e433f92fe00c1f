"""The families of random programs, each a function that grows one: docs of the issue each came from are the tests' names."""
import grower


def product_chain(g, steps, dtype):
    """Products of products with residuals, over batches, of square matrices, with sums over the batch and stretched operands."""
    k, b = g.extent(), g.extent()
    while k * k * b > 1500:
        k, b = max(1, k // 2), max(1, b // 2)
    for _ in range(g.r.randint(1, 3)):
        d = dtype if g.chance(0.9) else g.r.choice(["f32", "f64"])
        g.input(d, g.r.choice([(b, k, k), (1, k, k), (k, k), (b, k, k)]))

    def step():
        x, y = g.pick(), g.pick()
        kind = grower.one_of(g.r, matmul=5, residual=2, multiply=2, batch=2, stretch=1.5, swap=1.5, flip=0.5, scale=0.7, wave=1, keep=0.7)
        if kind == "matmul":
            return g.add("matmul", x, y)
        if kind == "residual":
            return g.add(g.r.choice(["add", "sub"]), x, y)
        if kind == "multiply":
            return g.add("mul", x, y)
        if kind == "batch" and len(g.shape(x)) > 2:
            return g.add(g.r.choice(["sum", "sum", "max", "mean"]), x, axes=0, keep=g.r.randint(0, 1))
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
        step()


def products(g):
    product_chain(g, g.r.randint(2, 9), grower.one_of(g.r, f64=5, f32=4, f16=0.5, bf16=0.5))
    g.how()
    return g.finish()


FAMILIES = {"products": products}


def draw(family, seed):
    """The program of a seed; None where it came to nothing."""
    g = grower.Grower(f"{family} {seed}")
    g.p.seed = seed
    return FAMILIES[family](g)
