#!/usr/bin/env python3
"""What the text of our sources must keep to: clang-format and clang-tidy over them and the headers they include, and the checks of the
whole repository (CHECKS). A file that was clean, and has not changed since with anything of ours that it includes, is not looked at
again: what was clean is remembered in the user's cache folder.

Most of clang-tidy's time goes into the headers of the standard library, which it parses and matches anew for each source. So
sources are looked at several at once, as one unit, a file that includes them all: a quarter of the time. Sources that give one
name to different things do not share a unit (names_in()). Where a unit does not compile all the same, it says so, and is taken apart.

Usage: scripts/lint.py [--build DIR] [--changed] [--since FILE] [FILE...]
  --build DIR   a build folder of the preset release (default: build)
  --since FILE  the name of a commit that was clean as a whole: sources that it has as they are, with all that they include, are
                known to be clean. All are looked at where the repository does not have that commit, or how we look has changed
  --changed     only files that differ from main, with those that include them, and no check of the whole repository
  FILE          only these sources, and no check of the whole repository"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import check_headers
import check_layers
from remembered import Remembered

# What decides what is found: where it changes, all sources are looked at.
HOW = {pathlib.Path(name) for name in (".clang-tidy", ".clang-format", "scripts/lint.py", "scripts/setup.sh", "CMakePresets.json")}
TIDY, FORMAT = "clang-tidy-19", "clang-format-19"
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each fails where the repository is not as it should be, and says so; `*_test.py` beside it shows that it does.
CHECKS = ["check_layers", "check_machine_names", "line_counts", "check_headers", "check_units"]
# A unit includes sources by design. The CUDA headers are for NVRTC: a test reads them on the host, without their assembly.
ARGUMENTS = ["--quiet", f"--config-file={ROOT}/.clang-tidy", f"--header-filter=^{ROOT}/", "--exclude-header-filter=/device/tw_cuda/",
             "--checks=-bugprone-suspicious-include"]
# Tests read well or not by eye, and GoogleTest's macros are most of what the path-sensitive checks would walk.
TEST_ARGUMENTS = ["--checks=-bugprone-suspicious-include,-clang-analyzer-*"]
# The sources of a unit are headers to the path-sensitive checks, which would pass over them. They stay within a function: with
# the calls inlined they take ten times as long, and what they say depends on what else is in the unit. Up to 225000 states
# a function are the default; 3000 take a tenth less time than 10000 (docs/notes/2026-11-29-seconds-of-ci.md).
FLAGS = ["-w", "-ferror-limit=0", "-Xclang", "-analyzer-opt-analyze-headers",
         "-Xclang", "-analyzer-config", "-Xclang", "ipa=none,max-nodes=3000"]
# What every source may be given: who may include whom is another test's to say (check_layers.py).
EVERYWHERE = [*(f"-I{ROOT / folder}" for folder in check_headers.FOLDERS), "-DFMT_SHARED", "-DGTEST_HAS_PTHREAD=1"]
FORMATTED = check_layers.SUFFIXES - {".def"}  # lists of macros are laid out by hand
MOST_SOURCES = 50  # of a unit: the units should fill all cores to the end, and one takes its 800 MB
# What a line declares that begins a declaration: a name taken from elsewhere, a type or an alias, a constant, a function.
DECLARED = re.compile(r"^(?:(?P<taken>using [\w:]*\b\w+;)|(?:struct|class|enum class|enum|using) +(?P<type>\w+)(?: final)?(?: *[{=:].*)|(?=\w)"
                      r"(?!namespace|return|using)[^=(]*?[ *&](?:(?P<constant>\w+(?= =|\[|\{|;).*)|(?!main\b)(?P<function>\w+\(.*)))$",
                      re.MULTILINE)
DIAGNOSTIC = re.compile(r"^(?=/\S+:\d+:\d+: (?:error|warning):)", re.MULTILINE)


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@dataclasses.dataclass(frozen=True)
class Flags:
    """What of a compile command decides what a text means."""
    shared: tuple  # for a unit: sources that differ in these are apart
    macros: tuple  # (name, text) of the source's own, as -DTW_TEST_FOLDER="...": they are defined in front of it


def flags_of(command):
    words, shared, macros = shlex.split(command), [], []
    for word, following in itertools.pairwise(words):
        if word == "-isystem":
            shared += [word, following]
        elif word.startswith("-DTW_"):
            macros.append(tuple(word.removeprefix("-D").split("=", 1)))
        elif word.startswith(("-I", "-D", "-std", "-m", "-fno-exceptions", "-fno-rtti")) and not word.endswith("_EXPORTS"):
            shared += [] if word in EVERYWHERE else [word]
    return Flags(tuple(EVERYWHERE + shared), tuple(macros))


def sources_of(build):
    """{source relative to the root: its flags} of what stands in our folders. Where the build compiles several sources at once,
    the file that it compiles includes them (cmake/units.cmake)."""
    all_flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        together = path.suffix == ".cxx"
        for source in re.findall(r'#include "(.*)"', path.read_text()) if together else [path]:
            source = pathlib.Path(source)
            if source.is_relative_to(ROOT) and source.relative_to(ROOT).parts[0] in check_layers.TREES:
                all_flags[source.relative_to(ROOT)] = flags_of(entry["command"])
    return all_flags


def with_includes(source, known):
    """The source and all files of ours that it includes, directly or not, as a sorted list."""
    found, open_files = set(), [source]
    while open_files:
        path = open_files.pop()
        if path in found:
            continue
        found.add(path)
        if path not in known:
            names = check_layers.INCLUDE.findall((ROOT / path).read_text())
            known[path] = [check_layers.resolve(ROOT, ROOT / path, name) for _, name in names]
        open_files += [target for target in known[path] if target]
    return sorted(found)


def all_files():
    trees = (file for tree in check_layers.TREES for file in (ROOT / tree).rglob("*"))
    return sorted(file.relative_to(ROOT) for file in trees if file.suffix in FORMATTED)


def clean_commit(file):
    """The commit that the file names; None where a clone does not have it."""
    name = file.read_text().strip()
    known = subprocess.run(["git", "merge-base", "--is-ancestor", name, "HEAD"], cwd=ROOT, capture_output=True)
    return name if known.returncode == 0 else None


def changed_files(base):
    listed = output_of("git", "diff", "--name-only", base) + output_of(
        "git", "ls-files", "--others", "--exclude-standard")
    return {pathlib.Path(name) for name in listed.splitlines()}


def is_test(source):
    return source.stem.endswith("_test") or source.parts[0] == "tests"


def command_of(sources, flags):
    """Asks clang-tidy about a file, whose name is to follow and then the flags that it is compiled with."""
    return [TIDY, *ARGUMENTS, *(TEST_ARGUMENTS if is_test(sources[0]) else [])], ["--", *flags.shared, *FLAGS]


def key_of(source, flags, files, version):
    """Names the question "is this source clean?" by all that the answer depends on, system headers apart."""
    digest = hashlib.sha256()
    command = str((command_of([source], flags), flags.macros)).replace(str(ROOT), ".")
    parts = [version, (ROOT / ".clang-tidy").read_text(), command]
    for part in parts + [f"{path}\n{(ROOT / path).read_text()}" for path in files]:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def names_in(source):
    """{name: what it stands for} of what a source declares for itself, outside of classes and functions. The name of a function
    has its parameters; names that are taken from elsewhere, and aliases of the same text, may come again."""
    names = {}
    for found in DECLARED.finditer((ROOT / source).read_text()):
        taken, constants = found["taken"], found["constant"]
        if taken:
            names[re.findall(r"\w+", taken)[-1]] = taken
        elif found[0].startswith("using "):
            names[found["type"]] = found[0]
        elif constants:  # one or more: "int kRows = 4, kColumns = 5;"
            names |= dict.fromkeys(re.findall(r"(?:^|, )(\w+)(?= =|\[|\{|;)", constants), source)
        else:
            names[found["type"] or re.sub(r"\b\w+::", "", found["function"].split(") {")[0])] = source
    return names


def units_of(sources, all_flags):
    """The sources in lists that are compiled alike and declare no name twice, the longest first."""
    def kind(source):
        return str(all_flags[source].shared), is_test(source)

    units = []
    for _, alike in itertools.groupby(sorted(sources, key=lambda s: (*map(str, kind(s)), s)), key=kind):
        open_units = []
        for source in alike:
            names = names_in(source)
            for unit, declared in open_units:
                if len(unit) < MOST_SOURCES and all(declared.get(name, means) == means for name, means in names.items()):
                    break
            else:
                open_units.append((unit := [], declared := {}))
            unit.append(source)
            declared.update(names)
        units += [unit for unit, _ in open_units]
    return sorted(units, key=lambda unit: -sum((ROOT / source).stat().st_size for source in unit))


def text_of(source, flags, at):
    """A source as a part of a unit. A program each, all in one unit: main() is renamed."""
    macros = [("main", f"main_{at}"), *flags.macros]
    return "".join([*(f"#define {' '.join(macro)}\n" for macro in macros), f'#include "{ROOT / source}"\n',
                    *(f"#undef {macro[0]}\n" for macro in macros)])


def tidy(build, unit, all_flags):
    """What clang-tidy says of the sources of a unit: nothing where they are clean."""
    name = "_".join(unit[0].with_suffix("").parts) + f"_{len(unit)}.cpp"
    file = build / "lint" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(text_of(source, all_flags[source], at) for at, source in enumerate(unit)))
    before, behind = command_of(unit, all_flags[unit[0]])
    run = subprocess.run([*before, file, *behind], cwd=ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        return ""
    errors = [line for line in run.stdout.splitlines() if "[clang-diagnostic-error" in line]
    if errors and len(unit) > 1:
        apart = [source for source in unit if any(line.startswith(f"{ROOT / source}:") for line in errors)]
        rest = [source for source in unit if source not in apart]
        parts = [apart, rest] if apart and rest else [[source] for source in unit]
        print(f"lint: not in one unit: {errors[0]}", flush=True)
        return "".join(tidy(build, part, all_flags) for part in parts)
    return run.stdout or run.stderr


def check_format(files):
    """What clang-format says of the files: nothing where they are laid out as they should be."""
    run = subprocess.run([FORMAT, "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        wrong = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
        return f"lint: `make format` mends {' '.join(wrong)}\n"
    return ""


def run_checks(build, remembered):
    """What the checks of the whole repository and their tests complain of: nothing where all is well."""
    complaints = []
    for name in CHECKS:
        options = ["--build", build] if name == "check_units" else []
        run = subprocess.run([sys.executable, ROOT / "scripts" / f"{name}.py", *options], cwd=ROOT, capture_output=True, text=True)
        print((run.stdout.splitlines() or [name])[-1], flush=True)
        complaints += [f"lint: {name} fails\n{run.stdout}{run.stderr}"] if run.returncode else []
    scripts = sorted((ROOT / "scripts").glob("*.py"))
    key = hashlib.sha256("\0".join(script.read_text() for script in scripts).encode()).hexdigest()
    if key not in remembered:
        tests = [script.stem for script in scripts if script.stem.endswith("_test")]
        run = subprocess.run([sys.executable, "-m", "unittest", *tests], cwd=ROOT / "scripts", capture_output=True, text=True)
        if run.returncode:
            complaints.append(f"lint: the tests of the checks fail\n{run.stderr}")
        else:
            remembered.add(key)
    print("".join(complaints), end="", flush=True)
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--since", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()

    all_flags = sources_of(build)
    known = {}
    includes = {source: with_includes(source, known) for source in sorted(all_flags)}
    chosen = set(all_flags)
    if options.files:
        chosen = {path.resolve().relative_to(ROOT) for path in options.files}
        unknown = chosen - set(all_flags)
        if unknown:
            sys.exit(f"lint: not compiled in {build}: {', '.join(map(str, sorted(unknown)))}")
    elif options.changed:
        changed = changed_files(output_of("git", "merge-base", "HEAD", "main").strip())
        chosen = {source for source in all_flags if changed & set(includes[source])}

    elif options.since and (clean := clean_commit(options.since)):
        changed = changed_files(clean)
        if changed.isdisjoint(HOW):
            chosen = {source for source in all_flags if changed & set(includes[source])}
            print(f"lint: {len(all_flags) - len(chosen)} of {len(all_flags)} sources are as in {clean[:8]}, which was clean")

    whole = not options.files and not options.changed
    files = all_files() if whole else sorted({path for s in chosen for path in includes[s] if path.suffix in FORMATTED})
    remembered = Remembered()
    unformatted = check_format(files)
    print(unformatted, end="", flush=True)
    complaints = [unformatted] if unformatted else []
    if whole:
        complaints += run_checks(build, remembered)
    version = output_of(TIDY, "--version")
    keys = {source: key_of(source, all_flags[source], includes[source], version) for source in chosen}
    todo = [source for source in chosen if keys[source] not in remembered]
    units = units_of(todo, all_flags)
    print(f"lint: {len(chosen)} sources, {len(chosen) - len(todo)} known to be clean", flush=True)
    # What was seen, in the order of its finding.
    started, done, seen = time.monotonic(), 0, dict.fromkeys(complaints)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(tidy, build, unit, all_flags): unit for unit in units}
        for job in concurrent.futures.as_completed(jobs):
            complaints = job.result()
            for complaint in DIAGNOSTIC.split(complaints):
                if complaint not in seen:
                    seen[complaint] = None
                    print(complaint, end="")
            if not complaints:
                for source in jobs[job]:
                    remembered.add(keys[source])
            done += len(jobs[job])
            print(f"lint: {done} of {len(todo)}, {time.monotonic() - started:.0f} s", flush=True)
    # A log may be kept from its end alone: what was found stands there once more, a line each.
    for complaint in filter(None, seen):
        print(complaint.splitlines()[0])
    print("lint: not clean" if any(seen) else "lint: clean")
    sys.exit(1 if any(seen) else 0)


if __name__ == "__main__":
    main()
