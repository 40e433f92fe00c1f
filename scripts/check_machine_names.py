#!/usr/bin/env python3
"""Fails where a pass knows a machine by name: an architecture, an instruction, a vendor or a vendor's word for a part of its
devices, in identifiers, strings or comments, or a question about a target's kind. What a pass needs of a machine is a number
in tile::Target, which the backend fills in (include/tilewright/tile/target.h).

Usage: scripts/check_machine_names.py [ROOT]      (default: this repository)"""
import pathlib
import re
import sys

FOLDERS = ("src/passes", "include/tilewright/passes", "src/ir")
SUFFIXES = {".h", ".cpp", ".txt", ".md"}

# Words as they stand between spaces, underscores and changes of case. Numbers at the end do not count: avx is avx512, too.
NAMES = {
    "vendor": "nvidia cuda nvrtc cublas cudnn cutlass amd rocm hip intel onednn apple qualcomm",
    "architecture": "sm hopper ampere blackwell volta turing ada gb rtx epyc xeon ryzen zen znver x86 aarch arm riscv tpu rdna cdna",
    "instruction": "wgmma mma hmma imma mfma tcgen ldmatrix stmatrix mbarrier tma ptx ptxas sass cpasync avx amx sse neon sve vnni fma",
    "part of a vendor's devices": "warp warps warpgroup warpgroups cta ctas multiprocessor multiprocessors",
    "kind of machine": "gpu gpus cpu cpus",
}
KIND_OF = {word: kind for kind, words in NAMES.items() for word in words.split()}
# What no word says alone.
PATTERNS = [
    (re.compile(r"\b[abhlv]\d00\b", re.IGNORECASE), "architecture"),  # A100, H200
    (re.compile(r"\bx86\b|_x86\b|\bavx\d", re.IGNORECASE), "architecture"),
    (re.compile(r"tensor[\s_-]*cores?", re.IGNORECASE), "part of a vendor's devices"),
    (re.compile(r"\bcp\.async\b"), "instruction"),
    (re.compile(r"\bTargetKind\b|\btarget_?\.(?:kind|arch|name)\b"), "question what a target is"),
]
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(text):
    """The words of a line, in lower case, each once: those of kChainShareOfMma are k, chain, share, of, mma."""
    words = set()
    for identifier in IDENTIFIER.findall(text):
        words.add(identifier.lower().rstrip("0123456789"))
        words.update(part.lower() for part in PART.findall(identifier))
    return words


def names_in(line):
    """[(what was found, what it names)]"""
    found = [(word, KIND_OF[word]) for word in sorted(words_of(line)) if word in KIND_OF]
    found += [(match[0], kind) for pattern, kind in PATTERNS for match in pattern.finditer(line)]
    return found


def article(kind):
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def check(root):
    problems, files = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            files += 1
            text = path.read_text()
            for number, line in enumerate(text.splitlines(), 1):
                problems += [f"{path.relative_to(root)}:{number}: {name}: {article(kind)}" for name, kind in names_in(line)]
            # A name may be broken by the end of a comment's line.
            joined = re.sub(r"\n\s*//\s*", " ", text)
            if re.search(r"tensor cores?", joined, re.IGNORECASE) and not re.search(r"tensor[\s_-]*cores?", text, re.IGNORECASE):
                problems.append(f"{path.relative_to(root)}: tensor cores, over the end of a line: a part of a vendor's devices")
    return problems, files


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    problems, files = check(root)
    for problem in problems:
        print(problem)
    if problems:
        print("A pass reads numbers of tile::Target; a backend fills them in, in its machine/ folder.")
    print(f"check_machine_names: {files} files, {len(problems)} names")
    sys.exit(1 if problems or files == 0 else 0)


if __name__ == "__main__":
    main()
