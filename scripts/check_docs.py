#!/usr/bin/env python3
"""Fails on a file or a function that our documents name and that is not there: `src/ops/ops.cpp`, `fuse()`, `Jit::load`; and on a call
that they quote from a printed kernel and that no golden has: `refill(k_pipeline, …)`. Names are taken from `code` outside of fenced
blocks; links to files are followed too. Marks that a merge left are found as well. In our sources, fails on a comment that names a
file by folder and name, passes/masks/loop_peeling.h, which is not there."""
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
# What is quoted of a printed kernel: a call with arguments of a template, or with some left out. Other calls are a user's.
CALL = re.compile(r"(?:\w+::)*(\w+)(<[^()]*>)?\((.+)\)")
LEFT_OUT = "…"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A file by its folder, in a comment. NAME stands for any.
FILE_IN_COMMENT = re.compile(r"(?<![\w./*{}<>:-])[\w.-]+(?:/[\w.-]+)+\.(?:h|hpp|cpp|def|cuh|cu|py|sh|md|txt|cmake)(?![\w/])")
FOLDERS = check_layers.TREES + ("docs", "scripts", "cmake", ".ci")


def all_code():
    files = [file for tree in check_layers.TREES for file in (ROOT / tree).rglob("*")]
    return "\n".join(file.read_text() for file in files if file.suffix in check_layers.SUFFIXES)


def printed_kernels():
    goldens = sorted((ROOT / "tests/golden").rglob("*.cu")) + sorted((ROOT / "tests/golden").rglob("*.cpp"))
    return "\n".join(line.strip() for file in goldens for line in file.read_text().splitlines())


def is_quoted(code, printed):
    """Whether a printed kernel has the call as it is quoted; what is no call of a printed kernel is left to others."""
    call = CALL.fullmatch(code)
    if not call or not (call[2] or LEFT_OUT in call[3]) or not re.search(rf"\b{call[1]}(?:<[^<>;()]*>)?\(", printed):
        return True
    return re.search(".*?".join(re.escape(part) for part in code.split(LEFT_OUT)), printed) is not None


def tails_of(files):
    """The ways to name files by their last folders, and the names of all folders."""
    tails, folders = set(), set()
    for file in files:
        tails.update("/".join(file.parts[i:]) for i in range(len(file.parts)))
        folders.update(file.parts[:-1])
    return tails, folders


def dead_files_in_comments(text, tails, folders):
    """Files of others, as numpy/_core/arrayprint.py, are none of ours."""
    for comment in COMMENT.findall(text):
        for file in FILE_IN_COMMENT.findall(comment):
            if file not in tails and file.split("/")[0] in folders and "NAME" not in file:
                yield file


def problems_of_sources():
    files = [file.relative_to(ROOT) for tree in FOLDERS for file in sorted((ROOT / tree).rglob("*")) if file.is_file()]
    tails, folders = tails_of(files)
    for file in files:
        if file.parts[0] in check_layers.TREES and file.suffix in check_layers.SUFFIXES:
            for dead in dead_files_in_comments((ROOT / file).read_text(), tails, folders):
                yield f"{file}: a comment names {dead}, which is not there"


def problems_of(document, words, printed):
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
        elif not is_quoted(code, printed):
            yield f"`{code}`: no golden prints that"


def main():
    words = set(re.findall(r"\w+", all_code()))
    printed = printed_kernels()
    problems = [f"{document}: {problem}" for document in DOCUMENTS for problem in problems_of(document, words, printed)]
    problems += problems_of_sources()
    print("\n".join(problems + [f"check_docs: {len(DOCUMENTS)} documents, {len(problems)} wrong names"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
