"""Programs as text (program.h describes it): reading, writing, and the values of their inputs, which follow from the seed.

What follows an input's type says what it holds:
  below=5              integers from 0 to 4 (else from -3 to 3)
  values=0,3,3         these integers, in order
  scale=0.5            floats from -0.5 to 0.5 (else from -1.5 to 1.5)
  poison=nan@2:4,:;…   NaN (or inf) in these places of every call: what the op must not read"""
import dataclasses
import re
import zlib

import numpy

FLOATS = ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"]
INTEGERS = ["i64", "i32", "i8", "u8"]


@dataclasses.dataclass
class Input:
    name: str
    dtype: str
    shape: tuple
    holds: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        options = "".join(f" {key}={value}" for key, value in self.holds.items())
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]{options}"


@dataclasses.dataclass
class Statement:
    result: str
    op: str
    operands: list
    options: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        parts = list(self.operands) + [f"{key}={value}" for key, value in self.options.items()]
        return f"{self.result} = {self.op}({', '.join(parts)})"

    def names(self):
        """Every value it reads, those in its options too."""
        words = list(self.operands)
        for key in ("masks", "scores"):
            words += re.split("[:;]", self.options.get(key, ""))
        return [word for word in words if re.fullmatch(r"v\d+", word)]


@dataclasses.dataclass
class Program:
    seed: int = 0
    how: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)
    literals: dict = dataclasses.field(default_factory=dict)
    statements: list = dataclasses.field(default_factory=list)
    wanted: str = "out"
    results: list = dataclasses.field(default_factory=list)
    wrt: list = dataclasses.field(default_factory=list)
    calls: list = dataclasses.field(default_factory=list)  # beyond the first: {name: shape or literal}

    def __str__(self):
        lines = [f"seed {self.seed}"]
        if self.how:
            lines.append("how " + " ".join(self.how))
        lines += [str(each) for each in self.inputs]
        lines += [f"{name}: {value}" for name, value in self.literals.items()]
        lines += [str(each) for each in self.statements]
        if self.wanted == "out":
            lines.append("out " + " ".join(self.results))
        else:
            lines.append(f"{self.wanted} {self.results[0]} wrt={','.join(map(str, self.wrt))}")
        for call in self.calls:
            words = [f"{name}=" + (f"[{','.join(map(str, to))}]" if isinstance(to, tuple) else to) for name, to in call.items()]
            lines.append("call " + " ".join(words))
        return "\n".join(lines) + "\n"


def integers(text):
    return [int(part) for part in text.split(",")] if text else []


def parse(text):
    program = Program()
    for line in text.splitlines():
        words = line.split(" ")
        if not line or line.startswith("#"):
            continue
        if words[0] == "seed":
            program.seed = int(words[1])
        elif words[0] == "how":
            program.how = words[1:]
        elif words[0] == "out":
            program.results = words[1:]
        elif words[0] in ("grad", "hess"):
            program.wanted, program.results = words[0], [words[1]]
            program.wrt = integers(words[2].split("=")[1])
        elif words[0] == "call":
            pairs = (word.split("=", 1) for word in words[1:])
            program.calls.append({name: tuple(integers(to[1:-1])) if to.startswith("[") else to for name, to in pairs})
        elif words[0].endswith(":") and "[" in words[1]:
            dtype, extents = words[1][:-1].split("[")
            holds = dict(word.split("=", 1) for word in words[2:])
            program.inputs.append(Input(words[0][:-1], dtype, tuple(integers(extents)), holds))
        elif words[0].endswith(":"):
            program.literals[words[0][:-1]] = words[1]
        else:
            result, rest = line.split(" = ", 1)
            op, rest = rest.split("(", 1)
            parts = rest[: rest.rindex(")")].split(", ") if rest != ")" else []
            options = dict(part.split("=", 1) for part in parts if "=" in part)
            program.statements.append(Statement(result, op, [part for part in parts if "=" not in part], options))
    return program


# --- element types: bits of mantissa (with the hidden one), the lowest normal exponent, the largest number
FORMATS = {"f64": (53, -1022, 1.7976931348623157e308), "f32": (24, -126, 3.4028234663852886e38), "f16": (11, -14, 65504.0),
           "bf16": (8, -126, 3.3895313892515355e38), "f8e4m3": (4, -6, 448.0), "f8e5m2": (3, -14, 57344.0)}


def round_to(dtype, x):
    """The nearest number of the type, ties to even; 8-bit floats saturate, the others overflow to infinity."""
    if dtype == "f64":
        return x
    if dtype == "f32":
        with numpy.errstate(over="ignore"):
            return x.astype(numpy.float32).astype(numpy.float64)
    bits, lowest, largest = FORMATS[dtype]
    with numpy.errstate(invalid="ignore", over="ignore"):
        exponent = numpy.maximum(numpy.frexp(x)[1] - 1, lowest)
        step = numpy.ldexp(1.0, exponent - (bits - 1))
        rounded = numpy.where(numpy.isfinite(x), numpy.rint(x / step) * step, x)
        past = numpy.abs(rounded) > largest
        to = numpy.sign(rounded) * (largest if dtype.startswith("f8") else numpy.inf)
    return numpy.where(past & ~numpy.isnan(rounded), to, rounded)


def places(text):
    """"2:4,:" as slices."""
    def one(word):
        if ":" not in word:
            return int(word)
        return slice(*(int(end) if end else None for end in word.split(":")))
    return tuple(one(word) for word in text.split(","))


def values_of(program, call):
    """The inputs of a call (0: the first) by name: float64, int64 or bool arrays, numbers of their types."""
    values = {}
    for each in program.inputs:
        shape = program.calls[call - 1].get(each.name, each.shape) if call > 0 else each.shape
        # RandomState draws the same numbers with every version of NumPy.
        drawn = numpy.random.RandomState(zlib.crc32(f"{program.seed} {each.name} {call}".encode()))
        if each.dtype in FLOATS:
            scale = float(each.holds.get("scale", 1.5))
            value = round_to(each.dtype, drawn.uniform(-scale, scale, size=shape))
            for poison in filter(None, each.holds.get("poison", "").split(";")):
                what, where = poison.split("@")
                value[places(where)] = float(what)
        elif "values" in each.holds:
            value = numpy.array(integers(each.holds["values"]), dtype=numpy.int64).reshape(shape)
        elif each.dtype == "bool":
            value = drawn.randint(0, 2, size=shape).astype(numpy.int64)
        else:
            low, high = (0, int(each.holds["below"])) if "below" in each.holds else (0 if each.dtype == "u8" else -3, 4)
            value = drawn.randint(low, high, size=shape).astype(numpy.int64)
        values[each.name] = value
    return values
