#!/usr/bin/env python3
"""refused_test.py COMPILER INCLUDE: what the compiler's first error says of each program in refused.inc, which users would write by
mistake: a sentence that tells what to do, before whatever follows from it. Without a case the program compiles, with all public headers
read in front of it and options given member by member, and no warning that a user may turn into an error comes of ours: by COMPILER, and
by Clang where it is installed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).resolve().parent / "refused.inc"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Werror"]
CASE = re.compile(r"CASE == (\d+)  // says: (.*)")
CLANG = "clang++-19"
NAMESPACE = re.compile(r"^namespace (tilewright[\w:]*) \{$", re.MULTILINE)
OPTIONS = re.compile(r"^struct (?P<name>\w+(?:Options|Config)) \{\n(?P<body>.*?)^\};$", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^  [\w:][\w:<>, ]*[ >](\w+)(?: = .*)?;", re.MULTILINE)


def first_error(compiler, include, *options):
    run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *options, f"-I{include}", "-x", "c++", PROGRAMS], capture_output=True,
                         text=True)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return errors[0] if errors else f"{run.stderr} (exit code {run.returncode})" if run.returncode else "it compiles"


def precompiled(compiler, include, folder):
    """A header, read once for all programs, that brings what each of them includes."""
    header = pathlib.Path(folder) / "public.h"
    header.write_text("#include <tilewright/tilewright.hpp>\n")
    subprocess.run([compiler, "-std=c++20", f"-I{include}", "-x", "c++-header", "-o", f"{header}.gch", header], check=True)
    return f"-include{header}"


def designated(include, headers):
    """A program that gives one member of each struct of options, the first or the last."""
    given = []
    for header in headers:
        text = (include / header).read_text()
        for found in OPTIONS.finditer(text):
            members = MEMBER.findall(found["body"])
            space = NAMESPACE.findall(text[:found.start()])[-1]
            given += [f"{space}::{found['name']}{{.{member} = {{}}}}" for member in dict.fromkeys([members[0], members[-1]])]
    assert len(given) > 40, given
    return "".join(f"auto options_{number}() {{ return {each}; }}\n" for number, each in enumerate(given))


def strictly(compiler, include):
    headers = sorted(str(header.relative_to(include)) for header in include.rglob("*.h"))
    assert len(headers) > 50, f"{include} has but {len(headers)} headers"
    with tempfile.NamedTemporaryFile("w", suffix=".h") as options:
        options.write(designated(include, headers))
        options.flush()
        return first_error(compiler, include, *WARNINGS, "-DCASE=-1", *(f"-include{header}" for header in [*headers, options.name]))


def main():
    compiler, include = sys.argv[1], pathlib.Path(sys.argv[2])
    cases = CASE.findall(PROGRAMS.read_text())
    compilers = [compiler, CLANG] if shutil.which(CLANG) and not compiler.endswith(CLANG) else [compiler]
    good = {each: strictly(each, include) for each in compilers}
    wrong = [f"{each}, without a case: {said}" for each, said in good.items() if said != "it compiles"]
    with tempfile.TemporaryDirectory() as folder:
        public = precompiled(compiler, include, folder)
        errors = {number: first_error(compiler, include, f"-DCASE={number}", public) for number, _ in cases}
    for number, wanted in cases:
        if wanted not in errors[number]:
            wrong.append(f"case {number}: wanted \"{wanted}\", the compiler says: {errors[number]}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"refused_test: {len(cases)} programs are refused by a sentence; public headers without warning by {', '.join(compilers)}")


if __name__ == "__main__":
    main()
