#!/usr/bin/env python3
"""Fails where a pass knows a machine by name: an architecture, an instruction, a vendor or a vendor's word for a part of its
devices, in identifiers, strings or comments, or a question about a target's kind. What a pass needs of a machine is a number
in tile::Target, which the backend fills in (include/tilewright/tile/target.h).

Usage: scripts/check_machine_names.py [ROOT]      (default: this repository)"""
import pathlib
import re
import sys

FOLDERS = ("src/passes", "include/tilewright/passes", "src/ir")
SUFFIXES = {".h", ".hpp", ".cpp", ".def", ".txt", ".md"}

# Stems (stems_of()): avx is avx512, too, sm is SMs and sm_90a.
NAMES = {
    "vendor": "nvidia amd rocm hip intel onednn mkl apple qualcomm oneapi",
    "architecture": "sm hopper ampere blackwell volta turing pascal ada rubin gb gh rtx gtx geforce tesla quadro epyc xeon ryzen zen znver "
                    "skylake icelake haswell broadwell alder rapids genoa bergamo turin grace orin jetson xavier graviton x86 aarch arm riscv tpu rdna cdna",
    "instruction": "wgmma mma hmma imma umma qmma utcmma bfmmla mfma dp4a setmaxnreg lop3 ldmatrix stmatrix mbarrier tma tmem ptx ptxas sass cpasync amx sse neon sve vnni "
                   "fma xmm ymm zmm nvlink",
    "part of a vendor's devices": "cta multiprocessor smem",
    "kind of machine": "gpu cpu",
}
# Words that begin so are names, too: cublaslt, warpsize, warpgroups, tcgen05.
BEGINNINGS = {
    "architecture": "gfx",
    "vendor": "cuda nvrtc nvcc cublas cudnn cutlass cusparse nvidia",
    "instruction": "wgmma tcgen avx",
    "part of a vendor's devices": "warp",
}
KIND_OF = {word: kind for kind, words in NAMES.items() for word in words.split()}
KIND_OF_BEGINNING = {word: kind for kind, words in BEGINNINGS.items() for word in words.split()}
# A device by its number: a letter or two, and 10 or more. (a0, f32 and x20 are variables, types and anything.)
MODEL = re.compile(r"h\d{2,3}|(?:[alv]|g?b|gh|mi)(?:10|16|30|40|[1-9]\d0)[sx]?|(?:[atvwp]|rtx|mx|gtx)\d{4}")
# What no word says alone.
PATTERNS = [
    (re.compile(r"(?:tensor|matrix)[\s_-]*cores?", re.IGNORECASE), "part of a vendor's devices"),
    (re.compile(r"tensor[\s_-]*memory[\s_-]*accelerator", re.IGNORECASE), "part of a vendor's devices"),
    (re.compile(r"(?<![A-Za-z0-9])(?:[HALVB]|GH|GB|MI)-\d{2,4}(?![\w.-])"), "architecture"),
    (re.compile(r"compute[\s_-]*capabilit(?:y|ies)", re.IGNORECASE), "architecture"),
    (re.compile(r"(?<![A-Za-z0-9])cp[._]async", re.IGNORECASE), "instruction"),
    (re.compile(r"\b_mm(?:256|512)?_\w+"), "instruction"),
    (re.compile(r"\bTargetKind\b|\btarget_?(?:\.|->)(?:kind|arch|name|device_name)\b"), "question what a target is"),
]
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*")
PART = re.compile(r"[A-Z]{2,}s?(?![a-z])\d*|[A-Z]?[a-z]+\d*|[A-Z]\d*")


def words_of(text):
    """The words of a line, in lower case, each once: those of kChainShareOfMma are k, chain, share, of, mma; and the whole."""
    words = set()
    for identifier in IDENTIFIER.findall(text):
        words.add(identifier.lower())
        words.update(part.lower() for part in PART.findall(identifier))
    return words


def stems_of(word):
    """The word, without a number at its end (with a letter: 90a), and without the s of more than one."""
    bare = re.sub(r"\d+[a-z]?$", "", word)
    return {word, bare, word.removesuffix("s"), bare.removesuffix("s")}


def kind_of(word):
    """What a word names, None where it names nothing."""
    kinds = [KIND_OF[stem] for stem in sorted(stems_of(word)) if stem in KIND_OF]
    kinds += [kind for beginning, kind in KIND_OF_BEGINNING.items() if word.startswith(beginning)]
    return "architecture" if MODEL.fullmatch(word) else next(iter(kinds), None)


def names_in(line):
    """[(what was found, what it names)]"""
    found = [(word, kind_of(word)) for word in sorted(words_of(line)) if kind_of(word)]
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
            for pattern, kind in PATTERNS:
                for match in pattern.finditer(joined):
                    if not pattern.search(text):
                        problems.append(f"{path.relative_to(root)}: {match[0]}, over the end of a line: {article(kind)}")
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
