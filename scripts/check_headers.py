#!/usr/bin/env python3
"""Compiles every header as if it stood alone, and twice in its file: one that lacks an #include, or #pragma once, is found.

A compiler that reads one header spends its time on what that includes, so headers share a file where the ones before cannot hide
what the next one lacks:
- no header of the standard library or of another project has been read but those that the next one reads itself, directly or
  through headers of ours;
- of our own headers that were read and it does not include, none has a name that the next one mentions and that nothing it
  includes mentions. A forward declaration is no mention.
So what could still hide is a name that means two different things. Where a file does not compile, each of its headers is
compiled by itself, and only what that says counts.

Headers that were good are remembered, and not compiled again until they, or what they include, have changed.

What tilewright.hpp includes is read by each source of a user's: no header of the standard library is among it that takes long.

No scoped enum of include/ is narrower than int. g++ leaves the upper bits of the register that holds such an argument as they are,
and the library, which Clang compiles, reads 32 of them. Enums that stand in structs of a foreign layout are never passed by value
(LAID_OUT_BY_OTHERS).

Usage: scripts/check_headers.py [--root DIR] [--compiler CXX] [--jobs N]"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import check_layers
from remembered import Remembered

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-restrict",
         "-DGTEST_HAS_PTHREAD=1", "-DFMT_SHARED"]
FOLDERS = ["include", "src", "lab", "tools", "tests"]  # where an #include looks (cmake/)
FOR_USERS = pathlib.PurePath("include/tilewright/tilewright.hpp")
# <functional>, 9 % of compiling the guide's first program, stands for what brings algorithms and hash tables with it.
DEAR = {"algorithm", "chrono", "condition_variable", "deque", "filesystem", "fstream", "functional", "future", "iomanip", "iostream", "list",
        "locale", "map", "mutex", "numeric", "queue", "random", "ranges", "regex", "set", "sstream", "thread", "unordered_map", "unordered_set"}
# Texts for kernels, which the compiler of kernels reads behind others.
TEXTS = {"tests/cuda_emulation/builtins.h", "tests/cuda_emulation/wgmma.h"}
NARROW_ENUM = re.compile(r"\benum\s+(?:class|struct)\s+(\w+)\s*:\s*(?:std::)?(?:u?int8_t|u?int16_t|(?:un)?signed char|char|short|unsigned short|bool)\b")
LAID_OUT_BY_OTHERS = {"TypeCode"}  # DLPack's
NO_NAMES = re.compile(r'^[ \t]*#[ \t]*include[^\n]*|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL | re.MULTILINE)
FORWARD = re.compile(r"\b(?:class|struct|enum(?:\s+class)?)\s+\w+(?:\s*:\s*[\w:]+)?\s*;")
NAME = re.compile(r"[A-Za-z_]\w*")


@dataclasses.dataclass
class Header:
    ours: set       # headers of ours that it includes directly
    foreign: set    # other headers that it includes directly
    names: set      # that it mentions
    known: set      # that it mentions otherwise than by a forward declaration


@dataclasses.dataclass
class Unit:
    """Headers that are compiled in one file."""
    headers: list
    read: set       # headers of ours, read by the last of them
    foreign: set    # other headers, read by the last of them


def is_checked(path):
    return path.suffix in (".h", ".hpp") and "device" not in path.parts and str(path) not in TEXTS


class Headers:
    def __init__(self, root):
        self.root, self.known = root, {}
        files = (file.relative_to(root) for tree in check_layers.TREES for file in (root / tree).rglob("*"))
        self.checked = sorted(file for file in files if is_checked(file))
        for header in self.checked:
            self.includes(header)

    def of(self, path):
        if path not in self.known:
            text = (self.root / path).read_text()
            header = Header(set(), set(), set(), set())
            for _, name in check_layers.INCLUDE.findall(text):
                target = check_layers.resolve(self.root, self.root / path, name)
                (header.ours if target else header.foreign).add(target or name)
            code = NO_NAMES.sub("", text)
            header.names, header.known = set(NAME.findall(code)), set(NAME.findall(FORWARD.sub("", code)))
            self.known[path] = header
        return self.known[path]

    def includes(self, path):
        """The header and all headers of ours that it includes, directly or not."""
        found, open_files = set(), [path]
        while open_files:
            one = open_files.pop()
            if one not in found:
                found.add(one)
                open_files += self.of(one).ours
        return found

    def key(self, path, question):
        """Names the question "is this header good?" by all that the answer depends on, system headers apart."""
        digest = hashlib.sha256(question.encode())
        for one in sorted(self.includes(path)):
            digest.update(f"\0{one}\0{(self.root / one).read_text()}".encode())
        return digest.hexdigest()


def dear_includes(headers):
    """["tree.h includes <map>", …] of what every source of a user's reads"""
    if FOR_USERS not in headers.checked:
        return []
    return [f"{path} includes <{name}>" for path in sorted(headers.includes(FOR_USERS))
            for name in sorted(headers.of(path).foreign & DEAR)]


def narrow_enums(headers):
    """["dtype.h: DType is narrower than int", …] of scoped enums that users may pass by value"""
    return [f"{path}: {name} is narrower than int" for path in headers.checked if path.parts[0] == "include"
            for name in NARROW_ENUM.findall((headers.root / path).read_text()) if name not in LAID_OUT_BY_OTHERS]


def units_of(headers, wanted):
    """The headers in few units, each at the end of the unit that has read most of what it includes."""
    read = {path: headers.includes(path) for path in wanted}
    foreign = {path: set().union(*(headers.of(one).foreign for one in read[path])) for path in wanted}
    units = []
    for path in sorted(wanted, key=lambda path: (len(foreign[path]), len(read[path]), path)):
        included = set().union(*(headers.of(one).known for one in read[path] - {path}))
        alone = headers.of(path).names - included  # what only it mentions: its own, or a name that it lacks

        def hides_nothing(unit):
            return unit.foreign <= foreign[path] and not any(
                alone & headers.of(other).known for other in unit.read - read[path])

        best = min((unit for unit in units if hides_nothing(unit)), default=None,
                   key=lambda unit: (len(foreign[path] - unit.foreign), len(read[path] - unit.read)))
        if best is None:
            best = Unit([], set(), set())
            units.append(best)
        best.headers.append(path)
        best.read |= read[path]
        best.foreign |= foreign[path]
    return units


def complaints_of(root, compiler, paths):
    """What the compiler says of a file that includes these headers, each twice."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("".join(f'#include "{root / path}"\n' * 2 for path in paths))
        file.flush()
        command = [compiler, *FLAGS, *(f"-I{root / folder}" for folder in FOLDERS), file.name]
        run = subprocess.run(command, capture_output=True, text=True)
    return run.stderr or f"{compiler} failed\n" if run.returncode else ""


def complaints_of_each(root, compiler, unit):
    """{header: what the compiler says of it, "" where it is good}"""
    if not complaints_of(root, compiler, unit.headers):
        return {path: "" for path in unit.headers}
    return {path: complaints_of(root, compiler, [path]) for path in unit.headers}


def check(root, remembered, compiler="g++", jobs=1):
    """({header that is not good: what the compiler says}, number of headers, number of compiled ones)"""
    root = root.resolve()
    headers = Headers(root)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    keys = {path: headers.key(path, f"{version}{FLAGS}{path}") for path in headers.checked}
    wanted = [path for path in headers.checked if keys[path] not in remembered]
    bad = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for said in pool.map(lambda unit: complaints_of_each(root, compiler, unit), units_of(headers, wanted)):
            for path, complaints in said.items():
                if complaints:
                    bad[path] = complaints
                else:
                    remembered.add(keys[path])
    return bad, len(headers.checked), len(wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    bad, count, compiled = check(arguments.root, Remembered(), arguments.compiler, arguments.jobs)
    for path, complaints in bad.items():
        print(f"{path} does not compile alone, or not twice in a file:\n{complaints}")
    headers = Headers(arguments.root.resolve())
    narrow = narrow_enums(headers)
    for enum in narrow:
        print(f"{enum}: a program compiled by g++ hands it over with rubbish in the upper bits")
    dear = dear_includes(headers)
    for include in dear:
        print(f"{include}, which takes a user's compiler long, and {FOR_USERS} brings it to every source")
    print(f"check_headers: {count} headers, {compiled} of them compiled, {len(bad)} bad")
    sys.exit(1 if bad or dear or narrow or count == 0 else 0)


if __name__ == "__main__":
    main()
