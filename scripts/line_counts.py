#!/usr/bin/env python3
"""Prints the lines of source per folder, tests counted apart, and names the files that grew long. A file past 600 lines should
be split by idea; one past 900 fails."""
import collections
import pathlib
import sys

LONG, TOO_LONG = 600, 900
TREES = ("include", "src", "lab", "tools", "tests", "tutorial", "examples", "scripts", "cmake")
SUFFIXES = {".h", ".hpp", ".cpp", ".cuh", ".cu", ".py", ".sh", ".cmake"}


def folder_of(path):
    parts = path.parts
    if parts[:2] in (("include", "tilewright"), ("src", "backends")) and len(parts) > 3:
        return "/".join(parts[:3])
    return "/".join(parts[:min(2, len(parts) - 1)]) or "."


def is_test(path):
    return path.stem.endswith("_test") or path.parts[0] == "tests" or "gpu_tests" in path.parts


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    source, tests, long_files = collections.Counter(), collections.Counter(), []
    for file in sorted(file for tree in TREES for file in (root / tree).rglob("*")):
        if file.suffix not in SUFFIXES:
            continue
        path = file.relative_to(root)
        lines = len(file.read_text().splitlines())
        (tests if is_test(path) else source)[folder_of(path)] += lines
        if lines > LONG:
            long_files.append((lines, path))
    print(f"{'folder':28} {'source':>7} {'tests':>7}")
    for folder in sorted(set(source) | set(tests)):
        print(f"{folder:28} {source[folder]:7} {tests[folder]:7}")
    print(f"{'all':28} {source.total():7} {tests.total():7}")
    for lines, path in sorted(long_files, reverse=True):
        print(f"{path}: {lines} lines; {'the limit is ' + str(TOO_LONG) if lines > TOO_LONG else 'split it by idea'}")
    sys.exit(1 if not source or any(lines > TOO_LONG for lines, _ in long_files) else 0)


if __name__ == "__main__":
    main()
