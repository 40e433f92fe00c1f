#!/usr/bin/env python3
"""Finds sources that compile only because of what was read before them. The release preset compiles up to eight sources of a folder
as one (cmake/units.cmake), and what one of them includes, or declares for itself, the next one sees; and it begins with precompiled
headers (cmake/precompiled.cmake). Without its own #include a source compiles there, and nowhere else (dev, asan, tsan, fuzz).

To compile each source alone takes half an hour of a core. The build has shown that all of a unit compiles together, so a source can
lack something only if it mentions a name that another of its unit declares, or brings by a header of ours, and that neither it nor
what it includes declares; or a name std::x that no header it includes mentions. A few dozen do, most for another reason (a
member of that name). Those are compiled alone, and only what the compiler says counts.

Sources that were good are remembered, and not compiled again until they, or what they include, have changed.

Usage: scripts/check_units.py [--root DIR] [--build DIR] [--jobs N]
  --build DIR   a build folder that was configured with units (default: build)"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import check_headers
from remembered import Remembered

# How CMake has a source begin with precompiled headers.
PRECOMPILED = re.compile(r"-Winvalid-pch +-include +\S+")
# What a line declares outside of functions and classes, whose insides are indented: a type, a constant, a function, a macro.
DECLARED = re.compile(r"^(?:template <.*>\s+)?(?:(?:struct|class|enum class|enum|using|#[ \t]*define)\s+(?P<type>\w+)|(?=\w)(?!namespace|return|using)"
                      r"[^=(;{]*?[ *&](?P<name>\w+)(?=\(| =|\[|\{|;|,))", re.MULTILINE)
NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+)", re.MULTILINE)
# A name as it is looked up: no member, and nothing of a class or of a namespace of others.
FOREIGN = ("std", "fmt", "CLI", "testing", "llvm", "clang", "rc")
MENTIONED = re.compile(r"(?<![\w.])(?<!->)((?:\w+::)*)([A-Za-z_]\w*)")
OF_STD = re.compile(r"\b(?:std|fmt)::(\w+)")
# What a source calls so itself: variables, parameters, functions, bindings, fields that are given a value, types.
WORDS = re.compile(r"\b(?:return|case|throw|else|new|goto)\b")
OWN = re.compile(r"(?:[\w>\]]|[&*]) ?(?<=[ &*])([a-zA-Z_]\w*)(?= ?[=,;){(\[:])|[\[,] ?&?(\w+)(?=[,\]])|\.(\w+) =|using (\w+)"
                 r"|(?:struct|class|enum class|namespace) (\w+)")
NO_NAMES = {"operator", "namespace", "std", "auto", "template", "const", "static", "extern", "void", "int", "bool", "double", "float"}


def units_of(root, build):
    """[(sources of a unit, relative to the root; the command that compiles it)]"""
    units = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cxx":
            sources = [pathlib.Path(name).resolve() for name in re.findall(r'#include "(.*)"', path.read_text())]
        elif PRECOMPILED.search(entry["command"]):
            sources = [path]
        else:
            continue
        ours = [source.relative_to(root) for source in sources if source.is_relative_to(root) and not source.is_relative_to(build)]
        units.append((ours, entry))
    return units


class Sources:
    def __init__(self, root):
        self.root, self.headers = root, check_headers.Headers(root)
        self.code_of, self.declared_by = functools.cache(self.code_of), functools.cache(self.declared_by)
        self.words_of_foreign = functools.cache(self.words_of_foreign)

    def code_of(self, path):
        return check_headers.NO_NAMES.sub("", (self.root / path).read_text())

    def declared_by(self, path):
        text = check_headers.FORWARD.sub("", self.code_of(path))
        names = {found["type"] or found["name"] for found in DECLARED.finditer(text)}
        return (names | {part for name in NAMESPACE.findall(text) for part in name.split("::")}) - NO_NAMES

    def mentioned_by(self, path):
        names = set()
        for places, name in MENTIONED.findall(self.code_of(path)):
            parts = places.split("::")[:-1]
            if not parts or (parts[0] not in FOREIGN and parts[-1].islower()):
                names.add(name)
            if parts and parts[0] not in FOREIGN:
                names.add(parts[0])
        return names

    def own_names_of(self, path):
        return {name for found in OWN.findall(WORDS.sub("$", self.code_of(path))) for name in found if name}

    def words_of_foreign(self, header):
        """Every word of a header of others and of what that includes; None where it cannot be read so."""
        run = subprocess.run(["g++", "-std=c++20", "-E", "-P", "-x", "c++", "-"], input=f"#include <{header}>\n", capture_output=True, text=True)
        return None if run.returncode else set(check_headers.NAME.findall(run.stdout))

    def lacks_of_std(self, path, read):
        names = set(OF_STD.findall(self.code_of(path)))
        for header in set().union(*(self.headers.of(one).foreign for one in read)):
            words = self.words_of_foreign(header) if names else set()
            names = set() if words is None else names - words
        return names

    def suspicions(self, path, unit):
        """The names for which `path` may need what only others of its unit include or declare."""
        read = self.headers.includes(path)
        others = set().union(*(self.headers.includes(one) for one in unit)) - read
        hidden = set().union(*(self.declared_by(one) for one in others)) & self.mentioned_by(path)
        if hidden:
            hidden -= self.own_names_of(path) | set().union(*(self.declared_by(one) for one in read))
        return hidden | self.lacks_of_std(path, read)


def complaints_of(source, entry):
    """What the compiler says of a source alone, compiled as its unit is."""
    words = shlex.split(PRECOMPILED.sub("", entry["command"]))
    words = words[next((at + 1 for at, word in enumerate(words) if pathlib.Path(word).name == "ccache"), 0):]
    for word in ("-o", "-c"):
        at = words.index(word)
        del words[at:at + (2 if word == "-o" else 1)]
    words.remove(entry["file"])
    run = subprocess.run([*words, "-fsyntax-only", "-w", str(source)], cwd=entry["directory"], capture_output=True, text=True)
    return run.stderr or f"{words[0]} failed\n" if run.returncode else ""


def check(root, build, remembered, jobs=1):
    """({source that is not good: what the compiler says}, number of sources in units, number of compiled ones)"""
    root, build = root.resolve(), build.resolve()
    sources, count, todo = Sources(root), 0, {}
    for unit, entry in units_of(root, build):
        for source in unit:
            count += 1
            names = sources.suspicions(source, unit)
            question = f"{entry['command'].split(' -o ')[0]}{source}".replace(str(root), ".")
            key = sources.headers.key(source, question) if names else None
            if names and key not in remembered:
                todo[source] = (key, entry)
    bad = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {source: pool.submit(complaints_of, root / source, entry) for source, (_, entry) in todo.items()}
        for source, run in runs.items():
            if run.result():
                bad[source] = run.result()
            else:
                remembered.add(todo[source][0])
    return bad, count, len(todo)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    bad, count, compiled = check(arguments.root, arguments.build, Remembered(), arguments.jobs)
    for path, complaints in bad.items():
        print(f"{path} compiles only behind others of its unit:\n{complaints}")
    print(f"check_units: {count} sources in units, {compiled} of them compiled alone, {len(bad)} bad")
    sys.exit(1 if bad or count == 0 else 0)


if __name__ == "__main__":
    main()
