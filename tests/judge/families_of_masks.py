"""Families of ops that use a part of what they are given: what they do not use holds NaN or infinity."""
from grower import one_of

POISON = ["nan", "nan", "inf", "-inf"]


def finish_one(g, result, wanted=None):
    """What follows a product: a little arithmetic, then values or a gradient."""
    if result is None:
        return None
    g.order = [result]
    for _ in range(g.r.randint(0, 2)):
        g.add(g.r.choice(["sin", "tanh", "square", "abs"]), g.order[-1])
    wanted = wanted or one_of(g.r, out=3, grad=3, hess=0.7)
    return g.finish(wanted, [result] if wanted == "out" else None)


def groups(g):
    """grouped_matmul, ragged_matmul and masked_matmul."""
    d = one_of(g.r, f32=4, f64=2, f16=2, bf16=2)
    count, k, n = g.r.randint(1, 4), g.extent(), g.extent()
    kind = g.r.choice(["grouped_matmul", "ragged_matmul", "masked_matmul"])
    bad = g.r.choice(POISON)
    index = g.r.choice(["i32", "i64"])
    if kind == "masked_matmul":
        m = g.extent()
        used = [g.r.randint(0, m) for _ in range(count)]
        x = g.input(d, (count, m, k), **poison(bad, [f"{i},{c}:" for i, c in enumerate(used) if c < m]))
        w = g.input(d, (count, k, n), **poison(bad, [str(i) for i, c in enumerate(used) if c == 0]))
        numbers = used
    elif kind == "ragged_matmul":
        sizes = [g.r.choice([0, g.extent(), g.extent()]) for _ in range(count)]
        numbers = [sum(sizes[: i + 1]) for i in range(count)]
        rows = numbers[-1] + g.r.choice([0, 0, 1, g.extent()])
        if rows == 0:
            return None
        x = g.input(d, (rows, k), **poison(bad, [f"{numbers[-1]}:"] if rows > numbers[-1] else []))
        w = g.input(d, (count, k, n), **poison(bad, [str(i) for i, size in enumerate(sizes) if size == 0]))
    else:
        height, blocks = g.extent(), g.r.randint(1, 5)
        numbers = [g.r.choice([g.r.randrange(count), g.r.randrange(count), count]) for _ in range(blocks)]
        x = g.input(d, (height * blocks, k),
                    **poison(bad, [f"{i * height}:{(i + 1) * height}" for i, group in enumerate(numbers) if group == count]))
        w = g.input(d, (count, k, n), **poison(bad, [str(i) for i in range(count) if i not in numbers]))
    if g.chance(0.3):
        # Without poison, as the last that reads it may be arithmetic in the same kernel.
        for each in g.p.inputs:
            each.holds.pop("poison", None)
    numbers = g.input(index, (len(numbers),), pickable=False, values=",".join(map(str, numbers)))
    if all("poison" not in each.holds for each in g.p.inputs) and g.chance(0.5):
        x = g.add("sin", x) or x
    g.how()
    return finish_one(g, g.add(kind, x, w, numbers))


def poison(what, where):
    return {"poison": ";".join(f"{what}@{place}" for place in where)} if where and what else {}


def attention_family(g):
    """Masks, scores, grouped heads, caches in pages; keys that nobody sees are poisoned."""
    d = one_of(g.r, f32=5, f64=2, f16=1, bf16=2)
    b, hkv = g.r.randint(1, 2), g.r.randint(1, 2)
    h = hkv * g.r.choice([1, 1, 2])
    tq, size, dv = g.extent(), g.r.choice([1, 2, 3, 8, 16]), g.r.choice([1, 2, 5, 8])
    page = g.r.choice([0, 0, 1, 2, 8])
    pages = g.r.randint(1, 3)
    tk = page * pages if page else g.extent()
    seen = [g.r.randint(1, tk) for _ in range(b)]
    bad = g.r.choice(POISON + ["", ""])
    q = g.input(d, (b, h, tq, size))
    masks = []
    if bad or g.chance(0.3):
        masks.append("prefix:" + g.input(g.r.choice(["i32", "i64"]), (b,), pickable=False, values=",".join(map(str, seen))))
    if page:
        k, v = cached(g, d, (b, pages, page, hkv), (size, dv), poison_of_pages(bad, seen))
    else:
        unseen = poison(bad, [f"{i},:,{n}:" for i, n in enumerate(seen) if n < tk])
        k, v = (g.input(d, (b, hkv, tk, n), **unseen) for n in (size, dv))
    if g.chance(0.4):
        masks.append(g.r.choice([f"causal:{g.r.randint(-1, 3)}", f"window:{g.r.randint(0, 3)}:{g.r.randint(0, 2)}:0",
                                 f"mod:{g.r.randint(1, 3)}"]))
    if g.chance(0.2):
        ids = [g.input("i32", (n,), pickable=False, below=2) for n in (tq, tk)]
        masks.append(f"doc2:{ids[0]}:{ids[1]}")
    options = {"masks": ";".join(masks), "join": "all" if bad or g.chance(0.7) else "any"} if masks else {}
    score = one_of(g.r, none=6, cap=1, bias=1, alibi=1)
    if score == "cap":
        options["scores"] = "cap:2.5"
    elif score != "none":
        shape = (h,) if score == "alibi" else g.r.choice([(tq, tk), (h, tq, tk), (1, tk)])
        options["scores"] = f"{score}:{g.input('f64' if d == 'f64' else 'f32', shape)}"
    if g.chance(0.2):
        options["scale"] = "0.5"
    g.how()
    out = g.add("attention", q, k, v, **options)
    if out and g.chance(0.3):
        # -inf where nothing is attended.
        lse = g.add_if(lambda v: True, "attention_lse", q, k, v, **options)
        return g.finish("out", [out, lse])
    return finish_one(g, out)


def poison_of_pages(bad, seen):
    """By the table: the places of each page that its sequence does not see."""
    def places(table, pages, page):
        found = []
        for i, named in enumerate(table):
            first = min(max(seen[i // pages] - i % pages * page, 0), page)
            if first < page:
                found.append(f"{named},{first}:")
        return poison(bad, found)
    return places


def cached(g, d, shape, sizes, poison_at):
    """Keys and values in pages, in any order."""
    b, pages, page, heads = shape
    table = list(range(b * pages))
    g.r.shuffle(table)
    both = [g.input(d, (b * pages, page, heads, n), **poison_at(table, pages, page)) for n in sizes]
    named = g.input("i32", (b, pages), pickable=False, values=",".join(map(str, table)))
    return [g.add_if(lambda v: True, "from_pages", each, named) for each in both]


def losses(g):
    """Embeddings, logits and entropies."""
    d = one_of(g.r, f32=4, f64=2, bf16=1, f16=1)
    rows, size, classes = g.extent(), g.extent(), g.r.choice([1, 2, 3, 7, 17, 40])
    labels = g.input(g.r.choice(["i32", "i64"]), (rows,), pickable=False, below=classes)
    x = g.input(d, (rows, size))
    if g.chance(0.4):
        table = g.input(d, (5, size))
        x = g.add("embedding", table, g.input("i32", (rows,), pickable=False, below=5)) or x
    w = g.input(d, (classes, size))
    if g.chance(0.5):
        loss = g.add("linear_cross_entropy", x, w, labels)
    else:
        logits = g.add("matmul", x, g.add("swap_axes", w, a=0, b=1))
        loss = logits and g.add("cross_entropy", logits, labels)
    if loss is None:
        return None
    g.how()
    wanted = one_of(g.r, out=2, grad=4, hess=1)
    if wanted == "out":
        return g.finish("out", [loss])
    g.p.wanted, g.p.results = wanted, [loss]
    g.p.wrt = [i for i, each in enumerate(g.p.inputs) if each.dtype == d]
    return g.p


def quantised(g):
    """Products of scaled, 8-bit and 4-bit numbers."""
    m, k, n = g.extent(), g.r.choice([1, 3, 16, 40, 128, 130, 256]), g.extent()
    kind = g.r.choice(["scaled_matmul", "quantized_matmul", "int4", "integers", "einsum"])
    g.how()
    if kind == "scaled_matmul":
        d = g.r.choice(["f8e4m3", "f8e5m2", "f16", "bf16", "f32"])
        a, b = g.input(d, (m, k)), g.input(d, (k, n))
        blocks = -(-k // 128)
        scale = g.r.choice(["f32", "f32", "f64"])
        left = g.r.choice([(1, 1), (m, 1), (m, blocks)])
        right = g.r.choice([(1, 1), (1, n), (blocks, -(-n // 128))])
        return finish_one(g, g.add(kind, a, g.input(scale, left), b, g.input(scale, right)), "out")
    if kind in ("quantized_matmul", "int4"):
        d = g.r.choice(["f32", "f16", "bf16"])
        counts = [c for c in (1, 2, 4) if k % c == 0]
        if kind == "int4":
            n *= 2
            weights = g.add("unpack_int4", g.input("i8", (k, n // 2), pickable=False))
            if weights is None:
                return None
        else:
            weights = g.input("i8", (k, n), pickable=False)
        return finish_one(g, g.add("quantized_matmul", g.input(d, (m, k)), weights, g.input(d, (g.r.choice(counts), n))), "out")
    if kind == "integers":
        d = g.r.choice(["i8", "i32", "i64", "u8"])
        return finish_one_integer(g, g.add("matmul", g.input(d, (m, k)), g.input(d, (k, n))))
    d = one_of(g.r, f32=3, f64=1, bf16=1, i32=1)
    spec = g.r.choice([("mk_kn->mn", (m, k), (k, n)), ("mk_nk->mn", (m, k), (n, k)), ("bmk_bkn->bn", (2, m, 4), (2, 4, n)),
                       ("mk_kn->nm", (m, k), (k, n)), ("bhqd_bhkd->bhqk", (1, 2, m, 3), (1, 2, n, 3)), ("ab_ab->", (m, n), (m, n)),
                       ("a_b->ab", (m,), (n,))])
    out = g.add("einsum", g.input(d, spec[1]), g.input(d, spec[2]), spec=spec[0].replace("_", ","))
    return finish_one_integer(g, out) if d == "i32" else finish_one(g, out)


def finish_one_integer(g, out):
    return g.finish("out", [out]) if out else None
