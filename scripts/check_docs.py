#!/usr/bin/env python3
"""Fails on a file or a function that our documents name and that is not there: `src/ops/ops.cpp`, `fuse()`, `Jit::load`. Names are
taken from `code` outside of fenced blocks; links to files are followed too. Marks that a merge left are found as well."""
import pathlib
import re
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "HACKING.md", "src/README.md", "lab/README.md", "examples/README.md", "CHANGELOG.md", "docs/notes/README.md") + tuple(
    f"docs/{page}.md"
    for page in "README tour commands lab roofline benchmarks attention products rows cpu launches numerics method".split()
) + tuple(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs/guide").glob("*.md")))
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
TREE_PATH = re.compile(r"(src|include|lab|tools|tests|tutorial|examples|docs|scripts|cmake)/")
MERGE_MARK = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
FUNCTION = re.compile(r"((?:\w+::)*)(\w+)(\(\))?")


def all_code():
    files = [file for tree in check_layers.TREES for file in (ROOT / tree).rglob("*")]
    return "\n".join(file.read_text() for file in files if file.suffix in check_layers.SUFFIXES)


def problems_of(document, words):
    whole = (ROOT / document).read_text()
    if MERGE_MARK.search(whole):
        yield "a merge left its marks"
    text = FENCED.sub("", whole)
    for target in LINK.findall(text):
        if not (ROOT / document).parent.joinpath(target).exists():
            yield f"the link to {target} leads nowhere"
    for code in CODE.findall(text):
        if PATH.fullmatch(code) and TREE_PATH.match(code):
            if "NN" not in code and not (ROOT / code).exists():
                yield f"`{code}` is not there"
        elif (name := FUNCTION.fullmatch(code)) and (name[1] or name[3]):
            for part in filter(None, name[1].split("::") + [name[2]]):
                if part not in words:
                    yield f"`{code}`: no source says {part}"


def main():
    words = set(re.findall(r"\w+", all_code()))
    problems = [f"{document}: {problem}" for document in DOCUMENTS for problem in problems_of(document, words)]
    print("\n".join(problems + [f"check_docs: {len(DOCUMENTS)} documents, {len(problems)} wrong names"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
