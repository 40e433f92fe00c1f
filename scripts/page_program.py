#!/usr/bin/env python3
"""The programs of our pages, so that what a page shows is what runs.

  page_program.py write PAGE FILE     the page's ```cpp blocks as one program: a block that has a main() as it stands, others one
                                      after another in a main() of theirs, behind the headers that docs/guide/README.md names
  page_program.py check PAGE PROGRAM  runs it, and compares what each block prints with the ```text block behind it

What varies with the machine and the minute is left out of the comparison: times, where a kernel came from, the chosen schedule,
the source of the floors. With TILEWRIGHT_UPDATE set, a text that no longer holds is rewritten."""
import difflib
import os
import pathlib
import re
import subprocess
import sys

FENCED = re.compile(r"^```(?P<kind>cpp|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADERS = ("tilewright/tilewright.hpp", "tilewright/tile/text.h", "algorithm", "cmath", "filesystem", "iostream", "optional", "string", "thread", "tuple", "utility", "vector")
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


def blocks_of(page):
    """[(the block of C++, the text that follows it or None)]; a text behind none is an error."""
    blocks = []
    for found in FENCED.finditer(page.read_text()):
        if found["kind"] == "cpp":
            blocks.append([found, None])
        elif not blocks or blocks[-1][1]:
            sys.exit(f"page_program: {page.name}: a ```text block without a ```cpp block of its own")
        else:
            blocks[-1][1] = found
    if not blocks:
        sys.exit(f"page_program: {page.name} has no ```cpp block")
    return blocks


def is_whole(blocks):
    return "int main(" in blocks[0][0]["text"]


def program_of(page):
    blocks = blocks_of(page)
    if is_whole(blocks):
        return blocks[0][0]["text"]
    lines = [f"#include <{header}>" for header in HEADERS] + ["namespace tw = tilewright;", "int main() {"]
    for code, _ in blocks:
        first = code.string.count("\n", 0, code.start("text")) + 1
        lines += [f'#line {first} "{page.name}"', code["text"].rstrip("\n"), r'std::cout << "\f";']
    return "\n".join(lines + ["}", ""])


def check(page, program):
    blocks = blocks_of(page)
    run = subprocess.run([program], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"page_program: {page.name}: its program ended with {run.returncode}\n{run.stdout}{run.stderr}")
    printed = [run.stdout] if is_whole(blocks) else run.stdout.split("\f")[:-1]
    new, good, mendable = page.read_text(), True, True
    for (code, text), output in reversed(list(zip(blocks, printed))):
        shown = text["text"] if text else ""
        difference = list(difflib.unified_diff(steady(shown), steady(output), page.name, "printed", lineterm=""))
        if not difference:
            continue
        good, mendable = False, mendable and text is not None
        if text:
            new = new[:text.start("text")] + output + new[text.end("text"):]
        line = new.count("\n", 0, code.start()) + 1
        print(f"{page}:{line}: " + ("this block prints something else" if text else "this block prints, and no ```text block is behind it"))
        print("\n".join(difference))
    if good:
        return
    if os.environ.get("TILEWRIGHT_UPDATE"):
        page.write_text(new)
    if not (os.environ.get("TILEWRIGHT_UPDATE") and mendable):
        sys.exit(f"page_program: {page.name} and its program differ; TILEWRIGHT_UPDATE=1 rewrites what is shown")


def main():
    command, page, file = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if command == "write":
        program = program_of(page)
        if not file.exists() or file.read_text() != program:
            file.write_text(program)
    else:
        check(page, file)


if __name__ == "__main__":
    main()
