"""Makes a failing program small: fewer results, fewer statements, smaller extents, as long as it fails in the same way."""
import copy
import time

import program as text
import judging
import torch_ops


def kind_of(problem):
    """Whether a result is wrong, or something is refused."""
    return "refused" if problem.startswith("refused") else "wrong"


def without_unused(program):
    """Statements and inputs that nothing reads are dropped."""
    needed = set(program.results)
    for s in reversed(program.statements):
        if s.result in needed:
            needed.update(s.names())
    program.statements = [s for s in program.statements if s.result in needed]
    kept = [each.name in needed or i in program.wrt for i, each in enumerate(program.inputs)]
    places = {old: new for new, old in enumerate(i for i, keep in enumerate(kept) if keep)}
    program.wrt = [places[i] for i in program.wrt]
    program.inputs = [each for each, keep in zip(program.inputs, kept) if keep]
    names = {each.name for each in program.inputs} | set(program.literals)
    program.calls = [{name: to for name, to in call.items() if name in names} for call in program.calls]
    return program


def types_of(program):
    """The type and shape of each value."""
    given = text.values_of(program, 0)
    import torch
    values = {}
    for each in program.inputs:
        t = torch.from_numpy(given[each.name].copy())
        values[each.name] = torch_ops.Value(t=t != 0 if each.dtype == "bool" else t, d=each.dtype)
    torch_ops.Meaning().run(program.statements, values, program.literals)
    return {name: (v.d, tuple(v.t.shape)) for name, v in values.items()}


def renamed(program, old, new):
    for s in program.statements:
        s.operands = [new if word == old else word for word in s.operands]
    program.results = [new if name == old else name for name in program.results]


def simpler(program):
    """Programs with one thing less, the larger cuts first."""
    for i in range(len(program.results)):
        if program.wanted == "out" and len(program.results) > 1:
            other = copy.deepcopy(program)
            other.results = [program.results[i]]
            yield other
    if program.how:
        for word in program.how:
            other = copy.deepcopy(program)
            other.how.remove(word)
            yield other
    for i in range(len(program.calls)):
        other = copy.deepcopy(program)
        del other.calls[i]
        yield other
    if program.wanted == "hess":
        other = copy.deepcopy(program)
        other.wanted = "grad"
        yield other
    for i in range(len(program.wrt)):
        if len(program.wrt) > 1:
            other = copy.deepcopy(program)
            del other.wrt[i]
            yield other
    types = types_of(program)
    for place in range(len(program.statements) - 1, -1, -1):
        s = program.statements[place]
        # In its place: an operand, an earlier value, or an input of the same type.
        for name in list(dict.fromkeys(s.names() + [each.name for each in program.inputs])):
            if types.get(name) == types[s.result]:
                other = copy.deepcopy(program)
                del other.statements[place]
                renamed(other, s.result, name)
                yield other
        if program.wanted == "out" and s.result in program.results:
            for name in s.names():
                other = copy.deepcopy(program)
                other.results = [name if each == s.result else each for each in other.results]
                if name in {t.result for t in program.statements}:
                    yield other
        d, shape = types[s.result]
        other = copy.deepcopy(program)
        del other.statements[place]
        if not program.calls:
            other.inputs.append(text.Input(s.result, d, shape))
            yield other
    if program.wanted != "out" and program.statements and program.statements[-1].op == "add":
        for name in program.statements[-1].operands:
            other = copy.deepcopy(program)
            other.results = [name]
            yield other
    for i, each in enumerate(program.inputs):
        if each.dtype in ("f16", "bf16", "f8e4m3", "f8e5m2", "f64"):
            other = copy.deepcopy(program)
            other.inputs[i].dtype = "f32"
            yield other
    extents = sorted({n for each in program.inputs for n in each.shape if n > 1}, reverse=True)
    for old in extents:
        for new in sorted({1, 2, old // 2, old - 1} - {0, old}):
            yield with_extent(program, old, new)


def with_extent(program, old, new):
    """Every extent `old` becomes `new`."""
    def change(numbers):
        return tuple(new if n == old else n for n in numbers)
    other = copy.deepcopy(program)
    for each in other.inputs:
        each.shape = change(each.shape)
    for s in other.statements:
        if "shape" in s.options:
            s.options["shape"] = ",".join(map(str, change(text.integers(s.options["shape"]))))
    other.calls = [{name: change(to) if isinstance(to, tuple) else to for name, to in call.items()} for call in other.calls]
    return other


def size_of(program):
    elements = sum(max(1, abs(n)) for each in program.inputs for n in each.shape)
    return (len(program.statements), len(program.results) + len(program.wrt) + len(program.calls) + len(program.how),
            len(program.inputs), elements, sum(each.dtype != "f32" for each in program.inputs), program.wanted == "hess")


def shrink(program, problem, library, seconds=60):
    """The smallest found within the time, and what is wrong with it."""
    end = time.monotonic() + seconds
    asked = set()
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for other in simpler(program):
            if time.monotonic() > end:
                break
            try:
                other = without_unused(other)
                if size_of(other) >= size_of(program) or str(other) in asked or not other.statements:
                    continue
                asked.add(str(other))
                found = judging.problem_with(other, library)
            except Exception:  # noqa: BLE001: what is no program, PyTorch or the reader say in many ways
                continue
            if found and kind_of(found) == kind_of(problem) and not is_mistake(found):
                program, problem, improved = other, found, True
                break
    return program, problem


def is_mistake(problem):
    """Of the shrinker's: our library names the user's line in what it refuses rightly."""
    return "program_ops.cpp" in problem or "no value has the name" in problem
