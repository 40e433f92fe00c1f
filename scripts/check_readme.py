#!/usr/bin/env python3
"""check_readme.py PROGRAM: runs the README's example and compares what it prints with the README's ```text block. What varies with
the machine and the minute is left out: times, where a kernel came from, the chosen schedule, the source of the floors. With
TILEWRIGHT_UPDATE set, a block that no longer holds is rewritten."""
import difflib
import os
import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
VARIES = (
    (re.compile(r"\d+(\.\d+)? (us|ms|s)\b"), r"# time"),
    (re.compile(r"; \w+ in # time"), "; built in # time"),
    # What bounds a kernel depends on the machine: on one with many cores, slow memory or large caches elu is bound by another.
    (re.compile(r"floor # time \((memory|compute|cache|L\d)\)"), "floor # time (#)"),
    (re.compile(r"schedule .*: the least predicted time of \d+"), "schedule #"),
    (re.compile(r"\(floors: .*\)"), "(floors: #)"),
)


def steady(text):
    for pattern, mask in VARIES:
        text = pattern.sub(mask, text)
    return text.splitlines()


def main():
    printed = subprocess.run(sys.argv[1:2], check=True, capture_output=True, text=True).stdout
    readme = README.read_text()
    block = BLOCK.search(readme)
    if not block:
        sys.exit("check_readme: README.md has no ```text block")
    difference = list(difflib.unified_diff(steady(block[0]), steady(printed), "README.md", "printed", lineterm=""))
    if not difference:
        return
    if os.environ.get("TILEWRIGHT_UPDATE"):
        README.write_text(readme[: block.start()] + printed + readme[block.end() :])
        return
    print("\n".join(difference))
    sys.exit("check_readme: the example prints something else; TILEWRIGHT_UPDATE=1 rewrites README.md")


if __name__ == "__main__":
    main()
