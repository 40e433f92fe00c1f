"""The truth of a program: its results in float64, and how far rounding may take them. Lies beside peer.py.

How far is found by trying: runs in float64 that round each op's result at random, and PyTorch's own run in the program's type, unless its result is far off. The last one
knows what no model of rounding does: that sums in f32 are chains, that narrow gradients underflow, which side of a step a value falls on."""
import contextlib, functools

import torch

NARROW = (torch.float32, torch.float16, torch.bfloat16)
ROUNDOFF = {"f64": 2.0 ** -53, "f32": 2.0 ** -24, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}
UNDERFLOW = {"f16": 2.0 ** -25}  # half of the least number: what rounding does to smaller ones; of other types no program sees it
F32 = 2.0 ** -24
SUMS = 8  # roundings in f32 that sums do to each of their terms, at most
PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::mv": 0, "aten::dot": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::addmv": 1}  # and their operand with the terms last
NOISY_RUNS = 2  # a pair (draws())
OWN_RUN = 1 / 16  # of a result: what PyTorch's own run may be off to count


def of_products(terms):
    """Roundings in f32 that a product's sums do to each of their terms. A product may add its n terms up one after another. Each of the
    n partial sums, which are as large as the square root of the terms so far, is rounded: as much in all as if each term were by √(n/2)."""
    return max(SUMS, (terms / 2) ** 0.5)


@functools.lru_cache(maxsize=16)
def draws(seed, run, device):
    """Numbers of [-1, 1], on the device, by which runs move what they compute. What hardly moves in run 0 moves far in run 1: where a
    result depends on one rounding alone, as the gradient of a query that attends to one key, two draws by chance would both be small for
    some elements of millions."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(999983, generator=generator, dtype=torch.float64) * 2 - 1
    if run == 0:
        return drawn.to(device)
    signs = torch.rand(len(drawn), generator=generator, dtype=torch.float64) - 0.5
    return torch.copysign(1 - drawn.abs(), signs).to(device)


def widened(roundoff, seed, run=0, underflow=0.0, seen=None):
    """A mode in which every op computes in float64, even where the text narrows, and its result is moved by up to `roundoff` of
    itself and `underflow` at random: as if it had been rounded there. `seen["terms"]` becomes the most terms of a product's sums."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map
    noise = {}

    def moved(t):
        if not isinstance(t, torch.Tensor) or t.dtype != torch.float64 or t.numel() == 0:
            return t
        if "pool" not in noise:
            noise["pool"] = draws(seed, run, t.device)
            noise["at"] = 0
        pool = noise["pool"]
        noise["at"] = (noise["at"] + 314159) % len(pool)
        flat, at = t.reshape(-1), noise["at"]
        out = torch.empty_like(flat)
        begin = 0
        while begin < len(flat):  # the pool again and again, from `at` on
            part = slice(begin, begin + min(len(flat) - begin, len(pool) - at))
            drawn = pool[at:at + part.stop - begin]
            torch.mul(flat[part], 1 + drawn * roundoff, out=out[part])  # infinities stay
            if underflow != 0:
                out[part] = torch.where(flat[part] == 0, flat[part], out[part] + drawn * underflow)
            begin, at = part.stop, 0
        return out.reshape(t.shape)

    class Widened(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if kwargs.get("dtype") in NARROW:
                kwargs["dtype"] = torch.float64
            out = func(*args, **kwargs)
            if seen is not None and func._schema.name in PRODUCTS:
                seen["terms"] = max(seen["terms"], args[PRODUCTS[func._schema.name]].shape[-1])
            returns = func._schema.returns
            aliases = any(r.alias_info is not None for r in returns)  # a view, or an update in place
            return out if roundoff == 0 or aliases else tree_map(moved, out)

    return Widened(), moved


def step_by_step():
    """Attention as plain ops, whose roundings can be told apart."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before PyTorch 2.3
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.MATH)


def spread_by(spreads, exact, results, most=float("inf")):
    """Takes each element's distance between `exact` and `results` into `spreads` where it is more. What is NaN tells nothing, nor does a result
    that is off by more than the share `most` of the root mean square: it is lost, or badly computed."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    for spread, y, z in zip(spreads, exact, results):
        distance = (z.double() - y.double()).abs_().nan_to_num_(0.0, 0.0, 0.0)
        size = y.double() if most == float("inf") else y.double().nan_to_num(0.0, 0.0, 0.0)
        if most == float("inf") or (y.numel() > 0 and distance.square().mean() <= most ** 2 * size.square().mean()):
            torch.maximum(spread, distance, out=spread)


def in_float64(run, dtype):
    """A function that returns the results of `run` in float64, and after them how far each of their elements was from its place in runs that round at
    random as programs of this type do."""
    def truth(*inputs):
        wide = [x.double() if x.is_floating_point() else x for x in inputs]
        seen = {"terms": 1}
        with widened(0, 0, seen=seen)[0], step_by_step():
            exact = run(*wide)
        sums = of_products(seen["terms"]) * F32
        exact = exact if isinstance(exact, (tuple, list)) else (exact,)
        spreads = [torch.zeros_like(y, dtype=torch.float64) for y in exact]
        for run_of_pair in range(NOISY_RUNS):
            given = [widened(sums, 97 + i, run_of_pair)[1](x) for i, x in enumerate(wide)]
            with widened(max(ROUNDOFF[dtype], SUMS * F32), 1, run_of_pair, UNDERFLOW.get(dtype, 0.0))[0], step_by_step():
                spread_by(spreads, exact, run(*given))
        spread_by(spreads, exact, run(*inputs), OWN_RUN)
        return (*exact, *spreads)

    return truth
