#!/usr/bin/env python3
"""clang-format and clang-tidy over our sources and the headers they include. A file that was clean, and has not changed since
with anything of ours that it includes, is not looked at again: what was clean is remembered in the user's cache folder.

Usage: scripts/lint.py [--build DIR] [--changed] [FILE...]
  --build DIR   a configured build folder (default: build)
  --changed     only files that differ from main, with those that include them
  FILE          only these sources"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

import check_layers

TIDY, FORMAT = "clang-tidy-19", "clang-format-19"
ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tilewright" / "lint"
# g++ has warnings of its own that Clang does not know.
ARGUMENTS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option"]
# Tests read well or not by eye, and GoogleTest's macros are most of what the path-sensitive checks would walk.
TEST_ARGUMENTS = ["--checks=-clang-analyzer-*"]


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def sources_of(build):
    """{source relative to the root: its compile command} of what stands in our folders."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in check_layers.TREES:
            commands[path.relative_to(ROOT)] = entry["command"]
    return commands


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
    return sorted(file.relative_to(ROOT) for file in trees if file.suffix in check_layers.SUFFIXES)


def changed_files():
    base = output_of("git", "merge-base", "HEAD", "main").strip()
    listed = output_of("git", "diff", "--name-only", base) + output_of(
        "git", "ls-files", "--others", "--exclude-standard")
    return {pathlib.Path(name) for name in listed.splitlines()}


def arguments_of(source):
    return ARGUMENTS + (TEST_ARGUMENTS if source.stem.endswith("_test") or source.parts[0] == "tests" else [])


def key_of(source, command, files, version):
    """Names the question "is this source clean?" by all that the answer depends on, system headers apart."""
    digest = hashlib.sha256()
    parts = [version, (ROOT / ".clang-tidy").read_text(), command.replace(str(ROOT), "."), str(arguments_of(source))]
    for part in parts + [f"{path}\n{(ROOT / path).read_text()}" for path in files]:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def tidy(build, source, key):
    """(source, complaints); remembers a source without any."""
    run = subprocess.run([TIDY, "-p", build, *arguments_of(source), source], cwd=ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / key).touch()
        return source, ""
    return source, run.stdout + ("" if run.stdout else run.stderr)


def check_format(files):
    run = subprocess.run([FORMAT, "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        wrong = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
        print(f"lint: `make format` mends {' '.join(wrong)}")
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()

    commands = sources_of(build)
    known = {}
    includes = {source: with_includes(source, known) for source in sorted(commands)}
    chosen = set(commands)
    if options.files:
        chosen = {path.resolve().relative_to(ROOT) for path in options.files}
        unknown = chosen - set(commands)
        if unknown:
            sys.exit(f"lint: not compiled in {build}: {', '.join(map(str, sorted(unknown)))}")
    elif options.changed:
        changed = changed_files()
        chosen = {source for source in commands if changed & set(includes[source])}

    whole = not options.files and not options.changed
    clean = check_format(all_files() if whole else sorted({path for s in chosen for path in includes[s]}))
    version = output_of(TIDY, "--version")
    keys = {source: key_of(source, commands[source], includes[source], version) for source in chosen}
    todo = [source for source in chosen if not (CACHE / keys[source]).exists()]
    todo.sort(key=lambda source: -(ROOT / source).stat().st_size)
    print(f"lint: {len(chosen)} sources, {len(chosen) - len(todo)} known to be clean", flush=True)
    started, seen = time.monotonic(), set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(tidy, build, source, keys[source]) for source in todo]
        for done, job in enumerate(concurrent.futures.as_completed(jobs), start=1):
            source, complaints = job.result()
            clean = clean and not complaints
            if complaints and complaints not in seen:
                seen.add(complaints)
                print(complaints, end="")
            if done % 25 == 0:
                print(f"lint: {done} of {len(todo)}, {time.monotonic() - started:.0f} s", flush=True)
    print("lint: clean" if clean else "lint: not clean")
    sys.exit(0 if clean else 1)


if __name__ == "__main__":
    main()
