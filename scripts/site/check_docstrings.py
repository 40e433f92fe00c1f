#!/usr/bin/python3
"""Fails on a public function that nothing is said of, and is not among those known to be so (undocumented.txt), and on one of these of
which something is said by now. Public are the functions and public member functions of include/tilewright/ outside of `detail`; what
is said of one: public_api.py.

Usage: scripts/site/check_docstrings.py            fails where the list is wrong; prints the counts
       scripts/site/check_docstrings.py --update   rewrites the list"""
import pathlib
import sys

LIST = pathlib.Path(__file__).with_name("undocumented.txt")
HEAD = """# Public functions without a docstring, by header: no new ones. scripts/site/check_docstrings.py --update rewrites this list.
"""


def functions_of(header, declarations, meant, said_of_type=False):
    """(a function, whether something is said of it). What is said of a type goes for its constructors."""
    for group in header.groups(declarations):
        for each in group.declarations:
            own = not each.listed and any("//" in line for line in header.lines[each.first - 1:each.last])
            if each.kind == "type":
                yield from functions_of(header, each.members, meant, bool(group.doc or header.about))
            elif each.kind == "function":
                constructor = len(parts := each.name.split("::")) > 1 and parts[-1] == parts[-2]
                yield each, bool(group.doc or own or (constructor and said_of_type) or (each.listed and each.name in meant))


def main():
    lines, count = [], 0
    headers, meant = public_api.read_headers(), public_api.meanings()
    # Methods are the functions of their names (tensor.h).
    methods = {f"Tensor::{each.name}" for header in headers.values() for each in header.declarations if each.kind == "function"}
    for header in headers.values():
        said = [(each, is_said or each.name in methods) for each, is_said in functions_of(header, header.declarations, meant)]
        count += len(said)
        documented = {each.full_name for each, is_said in said if is_said}
        missing = sorted({each.full_name for each, is_said in said if not is_said} - documented)
        lines += [f"{header.path}: {name}" for name in missing]
    if "--update" in sys.argv[1:]:
        LIST.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    before = {line for line in LIST.read_text().splitlines() if not line.startswith("#")}
    new, gone = sorted(set(lines) - before), sorted(before - set(lines))
    for line in new:
        print(f"{line} has no docstring: say above it what it does, with shapes, types and errors")
    for line in gone:
        print(f"{line} has a docstring now, or is gone: --update takes it from the list")
    print(f"check_docstrings: {count} public functions, {len(lines)} without a docstring, {len(new)} of them new")
    sys.exit(1 if new or gone else 0)


if __name__ == "__main__":
    try:
        import public_api
    except ImportError as missing:
        print(f"[  SKIPPED ] check_docstrings: {missing}; `scripts/setup.sh test` installs it")
        sys.exit(77)
    main()
