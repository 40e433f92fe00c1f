#!/usr/bin/env python3
"""Puts the README's ```cmake block and example into a folder outside of the tree, with the repository at tilewright/ as the README says,
configures it, and asks Ninja what it would build: the program, and the backend that it opens. Building all of it again would take the
tests minutes; the compilers are the same."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def block(language):
    found = re.search(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return found[1] if found else sys.exit(f"check_own_project: README.md has no ```{language} block")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_own_project: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "CMakeLists.txt").write_text(block("cmake"))
        (folder / "main.cpp").write_text(block("cpp"))
        (folder / "tilewright").symlink_to(ROOT)
        run("cmake", "-S", name, "-B", f"{name}/build", "-G", "Ninja")
        steps = run("ninja", "-C", f"{name}/build", "-t", "commands", "mine")
        for wanted in ("-o CMakeFiles/mine.dir/main.cpp.o", "-o libtw_cpu.so", "-o mine "):
            if wanted not in steps:
                sys.exit(f"check_own_project: no step of the build makes {wanted}")
        if "gtest" in steps or "_test.cpp" in steps:
            sys.exit("check_own_project: a user's project builds our tests")


if __name__ == "__main__":
    main()
