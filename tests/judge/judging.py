"""One program, run by our library and by PyTorch, and what differs. Library: the process run_programs. expected(): PyTorch's
results, as many times as roundings are drawn. problem_with(): what is wrong, or nothing."""
import math
import os
import select
import subprocess

import numpy
import torch

import program as text
import torch_ops

FACTOR = 8  # A result may be this many times as far off as the farthest of the runs that round at random.


class Library:
    """Our side: started when it is first asked, and again after it crashed or hung."""

    def __init__(self, command, limit_s):
        self.command, self.limit_s, self.process = command, limit_s, None

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def read(self, count=None):
        """`count` bytes, or a line."""
        while True:
            have = self.buffer.find(b"\n") + 1 if count is None else (count if len(self.buffer) >= count else -1)
            if have > 0 or count == 0:
                taken, self.buffer = self.buffer[:have], self.buffer[have:]
                return taken
            if not select.select([self.process.stdout], [], [], self.limit_s)[0]:
                self.stop()
                raise RuntimeError(f"no answer within {self.limit_s} s")
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            if not more:
                code = self.process.wait()
                self.process = None
                raise RuntimeError(f"the library's process ended with status {code}")
            self.buffer += more

    def run(self, program):
        """The results as (type, array) of each call one after another; RuntimeError with what was thrown."""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.buffer = b""
        body = str(program).encode()
        values = b"".join(array.tobytes() for call in range(len(program.calls) + 1)
                          for array in text.values_of(program, call).values())
        try:
            data = memoryview(f"{len(body)} {len(values)}\n".encode() + body + values)
            while data:
                data = data[self.process.stdin.write(data):]
        except BrokenPipeError:
            self.stop()
            raise RuntimeError("the library's process has ended") from None
        kind, count = self.read().split()
        if kind == b"error":
            raise RuntimeError(self.read(int(count)).decode())
        results = []
        for _ in range(int(count)):
            d, shape = self.read().decode().split()
            shape = tuple(text.integers(shape[1:-1]))
            form = numpy.float64 if d in text.FLOATS else numpy.int64
            results.append((d, numpy.frombuffer(self.read(8 * math.prod(shape)), dtype=form).reshape(shape)))
        return results


def gradients(scalar, by, further):
    if not scalar.requires_grad:
        return [torch.zeros_like(x) for x in by]
    found = torch.autograd.grad(scalar, by, create_graph=further, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, by)]


def sum_of_squares(meaning, gradient, d):
    """Of a gradient of the type d, which the sum has as well, and may overflow; narrow ones are added up in f32."""
    return meaning.off(meaning.added(meaning.off(gradient, d) ** 2, "f64" if d == "f64" else "f32", torch.sum), d)


def run_in_torch(program, call, seed):
    """The results of a call as (type, array), rounded at random if a seed is given."""
    literals = dict(program.literals)
    for earlier in program.calls[:call]:
        literals.update({name: to for name, to in earlier.items() if not isinstance(to, tuple)})
    meaning = torch_ops.Meaning(seed)
    values, free = {}, []
    given = text.values_of(program, call)
    for i, each in enumerate(program.inputs):
        t = torch.from_numpy(given[each.name].copy())
        if each.dtype == "bool":
            t = t != 0
        if i in program.wrt:
            t.requires_grad_(True)
        free.append(t)
        # The gradient that reaches an input is rounded to its type; the input itself is exact.
        values[each.name] = torch_ops.Value(t=t, d=each.dtype)
    meaning.run(program.statements, values, literals)
    results = [values[name] for name in program.results]
    if program.wanted == "out":
        return [(v.d, v.t.detach().numpy(force=True)) for v in results]
    by = [free[i] for i in program.wrt]
    value = results[0].t
    found = gradients(value, by, program.wanted == "hess")
    kind = results[0].d
    if program.wanted == "hess":
        # A gradient has its input's type, and so has the sum of its squares; those meet in the wider.
        kind = program.inputs[program.wrt[0]].dtype
        value = sum_of_squares(meaning, found[0], kind)
        for i, g in zip(program.wrt[1:], found[1:]):
            d = program.inputs[i].dtype
            value = value + sum_of_squares(meaning, g, d)
            kind = torch_ops.promote(kind, d)
        value = meaning.off(value, kind)
        found = gradients(value, by, False)
    return [(kind, value.detach().numpy(force=True))] + [
        (program.inputs[i].dtype, meaning.off(g, program.inputs[i].dtype).detach().numpy(force=True)) for i, g in zip(program.wrt, found)]


class Expected:
    """What PyTorch says of a program: exactly, and how far each element moves when it is rounded at random."""

    def __init__(self, program):
        self.program, self.runs = program, 0
        calls = range(len(program.calls) + 1)
        with numpy.errstate(all="ignore"):
            self.exact = [result for call in calls for result in run_in_torch(program, call, None)]
        self.spread = [numpy.zeros(a.shape) for _, a in self.exact]

    def draw(self, runs):
        for seed in range(self.runs, runs):
            rounded = [result for call in range(len(self.program.calls) + 1)
                       for result in run_in_torch(self.program, call, seed + 1)]
            with numpy.errstate(all="ignore"):
                for spread, (_, exact), (_, other) in zip(self.spread, self.exact, rounded):
                    apart = numpy.abs(other.astype(float) - exact.astype(float))
                    same = (other == exact) | (numpy.isnan(other) & numpy.isnan(exact))
                    # NaN or infinite in one of them alone: anything may come out.
                    numpy.maximum(spread, numpy.where(same, 0, numpy.where(numpy.isfinite(apart), apart, numpy.inf)), out=spread)
        self.runs = runs


def rounding_of(d, exact):
    """How far the nearest number of the type may be."""
    if d not in text.FORMATS:
        return numpy.zeros(exact.shape)
    bits, lowest, largest = text.FORMATS[d]
    finite = numpy.where(numpy.isfinite(exact), exact, 0)
    return numpy.ldexp(1.0, numpy.maximum(numpy.frexp(finite)[1] - 1, lowest) - bits)


def difference(got, expected):
    """What is wrong with the results, or nothing."""
    if len(got) != len(expected.exact):
        return f"{len(got)} results for {len(expected.exact)}"
    for place, ((d, have), (want_d, want), spread) in enumerate(zip(got, expected.exact, expected.spread)):
        if d != want_d or have.shape != want.shape:
            return f"result {place} is {d}{list(have.shape)} for {want_d}{list(want.shape)}"
        with numpy.errstate(all="ignore"):
            exact = want.astype(float)
            past = numpy.abs(exact) > text.FORMATS[d][2] * 0.9 if d in text.FORMATS else numpy.zeros(want.shape, bool)
            allowed = FACTOR * spread + rounding_of(d, exact)
            if d == "f64":  # what is expected is computed in it, too: also a tanh that rounds to 1, which nothing moves
                allowed += FACTOR * rounding_of(d, exact)
            if not numpy.issubdtype(have.dtype, numpy.floating):
                wrong = (have != want.astype(numpy.int64)) & (spread == 0)
            else:
                wrong = ~(numpy.abs(have - exact) <= allowed) & ~(have == exact) & ~(numpy.isnan(have) & numpy.isnan(exact))
                # Where it may be NaN as well as a number, anything may be; where a type ends, infinity too.
                wrong &= ~numpy.isinf(spread) & ~past
        if wrong.any():
            at = tuple(int(i) for i in numpy.argwhere(wrong)[0])
            of = "" if wrong.sum() == 1 else f", one of {int(wrong.sum())} of {wrong.size}"
            return f"result {place} {d}{list(have.shape)} at {list(at)}: {have[at]!r} for {want[at]!r} ± {allowed[at]:.3g}{of}"
    return ""


def problem_with(program, library, expected=None):
    """What is wrong with the library's results, or nothing."""
    expected = expected or Expected(program)
    try:
        got = library.run(program)
    except RuntimeError as error:
        return f"refused: {error}"
    problem = ""
    for runs in (2, 20, 200):
        expected.draw(runs)
        problem = difference(got, expected)
        if not problem:
            break
    return problem
