#!/usr/bin/env python3
"""Fails on an #include that docs/layers.txt does not allow. Further rules, which need no table: a header under include/ includes
none from src/; an #include names its file, and no macro does; tests beside their source (*_test.cpp, gpu_tests/) and their helpers (*testing.h) may include what tests/ may, and
tests/ too.

Usage: scripts/check_layers.py [ROOT]      (default: this repository)"""
import pathlib
import re
import sys

# A comment may stand wherever a space may.
GAP = r"(?:[ \t]|/\*(?:[^*]|\*(?!/))*\*/)*"
INCLUDE = re.compile(rf'^{GAP}#{GAP}include{GAP}([<"])([^>"]+)[>"]', re.MULTILINE)
NAMES_NO_FILE = re.compile(rf'^{GAP}#{GAP}(?:include|include_next|import)\b(?!{GAP}[<"])', re.MULTILINE)
TREES = ("src", "include", "lab", "tools", "tests", "tutorial", "examples")
SUFFIXES = {".h", ".hpp", ".cpp", ".def", ".cuh", ".cu"}


def read_table(path):
    """({folder: folders it may include}, {first part of a foreign header: folders that may include it, None: all})"""
    allowed, only = {}, {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, folders = line.split(":")
        if name == "everywhere":
            only.update(dict.fromkeys(folders.split()))
            continue
        if name.startswith("only "):
            only[name.split()[1]] = set(folders.split())
            continue
        allowed[name] = {name}
        for other in folders.split():
            inside = [row for row in allowed if other.endswith("/*") and (row + "/").startswith(other[:-1])]
            if not inside and other not in allowed:
                sys.exit(f"{path}: '{name}' names '{other}', which has no row above it")
            allowed[name].update(inside or [other])
    for name, folders in only.items():
        for unknown in sorted((folders or set()) - set(allowed)):
            sys.exit(f"{path}: '{name}' names '{unknown}', which has no row")
    return allowed, only


def folder_of(path, allowed):
    """The row that a file, given relative to the root, belongs to; None where there is none."""
    parts = path.parts
    if path.suffix == ".hpp" and parts[:2] == ("include", "tilewright") and len(parts) == 3:
        return "umbrella"
    if parts == ("include", "tilewright", "fmt.h"):
        return "umbrella"
    if parts == ("include", "tilewright", "version.h"):
        return "base"
    if parts[0] == "src":
        parts = parts[1:]
    elif parts[0] == "include":
        parts = parts[2:]
    for length in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[:length])
        if name in allowed:
            return name
    return None


def resolve(root, source, name):
    """The file of ours that an #include means, relative to the root; None for a foreign one."""
    places = [root / "src", root / "include", root / "lab", root / "tools", root / "tests", source.parent]
    # Device headers have roots of their own: the backends compile them.
    places += sorted(root.glob("src/backends/*/device"))
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve().relative_to(root)
    return None


def check_foreign(folder, name, only):
    top = name.split("/")[0]
    if top in only:
        may = only[top]
        return None if may is None or folder in may else f"<{name}> may be included only in {', '.join(sorted(may)) or 'no folder'}"
    is_standard = top == name and "." not in name
    return None if is_standard else f"<{name}> is a header of others that docs/layers.txt does not name"


def check_include(root, source, folder, bracket, name, tables):
    """What is wrong with one #include, or None."""
    allowed, only = tables
    target = resolve(root, source, name)
    if target is None:
        if bracket == '"':
            return f'"{name}" is no file of this repository; foreign headers stand in <>'
        return check_foreign(folder, name, only)
    target_folder = folder_of(target, allowed)
    if target_folder is None:
        return f"{name}: its folder has no row in docs/layers.txt"
    relative = source.relative_to(root)
    if relative.parts[0] == "include" and target.parts[0] != "include":
        return f"a public header includes the private {name}"
    is_test = source.name.endswith(("_test.cpp", "testing.h")) or "gpu_tests" in relative.parts
    if is_test and target_folder in allowed["tests"]:
        return None
    if target_folder not in allowed[folder]:
        return f"{folder} may not include {target_folder} ({name})"
    return None


def check(root):
    root = root.resolve()
    tables = read_table(root / "docs/layers.txt")
    problems, files = [], 0
    for tree in TREES:
        for source in sorted((root / tree).rglob("*")):
            if source.suffix not in SUFFIXES:
                continue
            files += 1
            relative = source.relative_to(root)
            folder = folder_of(relative, tables[0])
            if folder is None:
                problems.append(f"{relative}: its folder has no row in docs/layers.txt")
                continue
            text = source.read_text()
            joined = text.replace("\\\n", "  ")  # as the compiler reads it, each character at its place
            found = [(match.start(2), check_include(root, source, folder, match[1], match[2], tables)) for match in INCLUDE.finditer(joined)]
            found += [(match.end(), "an #include of what a macro says: name the file") for match in NAMES_NO_FILE.finditer(joined)]
            for place, problem in sorted(found, key=lambda each: each[0]):
                if problem:
                    line = text.count("\n", 0, place) + 1
                    problems.append(f"{relative}:{line}: {problem}")
    return problems, files


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    problems, files = check(root)
    for problem in problems:
        print(problem)
    print(f"check_layers: {files} files, {len(problems)} forbidden includes")
    sys.exit(1 if problems or files == 0 else 0)


if __name__ == "__main__":
    main()
