#!/usr/bin/env python3
"""Does what the last section of docs/tour.md does: adds its op to copies of the two files that it names, and compiles what is made of
them, without code. Fails where an op needs more than that.

Usage: scripts/check_walk.py COMPILER"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MADE_OF_THE_LIST = ("src/ops/ops.cpp", "src/ops/functions.cpp", "src/tensor/functions.cpp")


def behind(text, line, added):
    if text.count(line) != 1:
        sys.exit(f"check_walk: '{line.strip()}' is not there once")
    return text.replace(line, line + added)


def main():
    walk = (ROOT / "docs/tour.md").read_text().split("\n## 9.")[1]
    row = re.search(r"^```c\+\+\n(.*?)^```$", walk, re.MULTILINE | re.DOTALL)[1]
    line = re.search(r"`(TW_FLOAT\(logit, Logit\))`", walk)[1]
    listed = "include/tilewright/ops/unary.def"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tilewright/ops").mkdir(parents=True)
        (folder / "tilewright/ops/unary.def").write_text(behind((ROOT / listed).read_text(), "TW_FLOAT(log2, Log2)\n", line + "\n"))
        rows = (ROOT / "src/ops/elementary.cpp").read_text()
        (folder / "elementary.cpp").write_text(rows.replace("constexpr ir::Op kLog1p", row + "\nconstexpr ir::Op kLog1p"))
        (folder / "use.cpp").write_text("#include <tilewright/tilewright.hpp>\n"
                                        "tilewright::Tensor use(const tilewright::Tensor& x) { return tilewright::logit(x); }\n")
        for source in [folder / "elementary.cpp", folder / "use.cpp", *(ROOT / source for source in MADE_OF_THE_LIST)]:
            done = subprocess.run([sys.argv[1], "-std=c++20", "-fsyntax-only", "-DFMT_SHARED", f"-I{folder}", f"-I{ROOT}/include",
                                   f"-I{ROOT}/src", source], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"check_walk: {source}\n{done.stderr}")
    print("check_walk: an op is a row and a line")


if __name__ == "__main__":
    main()
