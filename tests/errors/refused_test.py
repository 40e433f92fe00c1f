#!/usr/bin/env python3
"""refused_test.py COMPILER INCLUDE: what the compiler's first error says of each program in refused.inc, which users would write by
mistake: a sentence that tells what to do, before whatever follows from it. Without a case the program compiles, and our headers are clean
under the warnings that users turn into errors."""
import pathlib
import re
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "refused.inc"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
CASE = re.compile(r"CASE == (\d+)  // says: (.*)")


def first_error(compiler, include, case):
    run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *(WARNINGS if case == "-1" else []), "-x", "c++", f"-DCASE={case}",
                          f"-I{include}", PROGRAMS], capture_output=True, text=True)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return errors[0] if errors else "" if run.returncode else "it compiles"


def main():
    compiler, include = sys.argv[1:3]
    cases = CASE.findall(PROGRAMS.read_text())
    good, *errors = [first_error(compiler, include, case) for case in ["-1"] + [number for number, _ in cases]]
    wrong = [] if good == "it compiles" else [f"without a case: {good}"]
    wrong += [f"case {number}: wanted \"{wanted}\", the compiler says: {error}"
              for (number, wanted), error in zip(cases, errors) if wanted not in error]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"refused_test: {len(cases)} programs are refused by a sentence")


if __name__ == "__main__":
    main()
