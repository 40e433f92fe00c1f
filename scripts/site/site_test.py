#!/usr/bin/env python3
"""The checkers of the site fail where they must: planted mistakes in a page, in a header."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GOOD = '<html><body id="top"><a href="b.html#there">b</a><img src="p.svg"><a href="https://example.org/x">out</a></body></html>'
MISTAKES = {  # what is wrong, and what is said of it
    '<a href="c.html">': "c.html is not there",
    '<a href="b.html#nowhere">': "the page has no such place",
    '<a href="#nowhere">': "the page has no such place",
    '<img src="q.svg">': "q.svg is not there",
    '<script src="https://example.org/x.js"></script>': "from elsewhere",
    '<a href="../../outside.html">': "is not there",
}


def check(condition, why):
    if not condition:
        sys.exit(f"site_test: {why}")


def links_of(folder):
    done = subprocess.run([sys.executable, HERE / "check_links.py", folder], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_links():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "b.html").write_text('<html><h1 id="there">b</h1></html>')
        (folder / "p.svg").write_text("<svg/>")
        (folder / "a.html").write_text(GOOD)
        code, said = links_of(folder)
        check(code == 0 and "2 pages, 3 links, 0 wrong" in said, f"a good site is refused: {said}")
        for mistake, words in MISTAKES.items():
            (folder / "a.html").write_text(GOOD.replace("</body>", mistake + "</body>"))
            code, said = links_of(folder)
            check(code == 1 and words in said and "1 wrong" in said, f"{mistake} is not found: {said}")


def docstrings_of(tree):
    done = subprocess.run(["/usr/bin/python3", tree / "scripts/site/check_docstrings.py"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_docstrings():
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        shutil.copytree(HERE, tree / "scripts/site")
        shutil.copytree(HERE.parent.parent / "include", tree / "include")
        (tree / "docs").mkdir()
        shutil.copy(HERE.parent.parent / "docs/ops.md", tree / "docs")
        code, said = docstrings_of(tree)
        if code == 77:
            print(said.strip())
            return
        check(code == 0, f"the headers as they are are refused: {said}")
        header = tree / "include/tilewright/base/clock.h"
        text = header.read_text()
        place = text.rindex("}  // namespace tilewright")
        header.write_text(text[:place] + "\nint unsaid(int x);\n\n// Says something.\nint said(int x);\nint as_well(int x);\n\n" + text[place:])
        code, said = docstrings_of(tree)
        check(code == 1 and "tilewright::unsaid has no docstring" in said and "1 of them new" in said, f"a function without one is not found: {said}")
        header.write_text(text)
        with (tree / "scripts/site/undocumented.txt").open("a") as list_:
            list_.write("tilewright/base/clock.h: tilewright::gone\n")
        code, said = docstrings_of(tree)
        check(code == 1 and "tilewright::gone has a docstring now, or is gone" in said, f"a line of the list that is none is not found: {said}")


if __name__ == "__main__":
    test_links()
    test_docstrings()
    print("site_test: planted mistakes are found")
