#!/usr/bin/env python3
"""What NVRTC makes of the kernels whose text differs in two records of replay.py: whether the machine code is the same, and where it
is not, how many registers, bytes of spills and instructions each has. No GPU is needed; the device headers are this tree's.

  machine_code.py BEFORE AFTER --filter attention        records' folders; programs with this in their names
  machine_code.py --sources BEFORE AFTER --arch sm_90a   two folders of .cu files, matched by name

Ends with 0 where no kernel has more registers, spills or instructions than before, with 1 where one has."""
import argparse
import concurrent.futures
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
INSTRUCTION_BYTES = 16
HEADERS = ROOT / "src/backends/cuda/device"


@functools.cache
def nvrtc():
    places = [os.environ.get("CUDA_HOME", "") + "/lib64", "/usr/local/cuda/lib64", ""]
    for place in places:
        for name in LIBRARIES:
            try:
                return ctypes.CDLL(os.path.join(place, name) if place else name)
            except OSError:
                continue
    raise SystemExit("machine_code: no libnvrtc")


@functools.cache
def headers():
    return [(str(p.relative_to(HEADERS)), p.read_text()) for p in sorted(HEADERS.rglob("*.cuh"))]


def strings(all_texts):
    return (ctypes.c_char_p * len(all_texts))(*[t.encode() for t in all_texts])


def code_of(cubin):
    """The bytes of the section .text of the one kernel of an ELF64 file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    each, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    offset = lambda s: struct.unpack_from("<Q", cubin, table + s * each + 0x18)[0]
    for s in range(count):
        name = offset(names) + struct.unpack_from("<I", cubin, table + s * each)[0]
        if cubin[name:].startswith(b".text."):
            (size,) = struct.unpack_from("<Q", cubin, table + s * each + 0x20)
            return cubin[offset(s):offset(s) + size]
    return b""


def compiled(job):
    """(digest of the code, instructions, registers, bytes of stack, of spills) of a source, or the log of a failure."""
    source, arch = job
    library, program = nvrtc(), ctypes.c_void_p()
    texts = headers()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", len(texts), strings([t for _, t in texts]),
                               strings([n for n, _ in texts]))
    options = [f"-arch={arch}", "--std=c++17", "--ptxas-options=-v", "-diag-suppress=177,550,1444"]  # as nvrtc_flags()
    failed = library.nvrtcCompileProgram(program, len(options), strings(options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    text = log.value.decode(errors="replace")
    if failed:
        return text
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    code = code_of(cubin.raw)
    number = lambda pattern: max([int(n) for n in re.findall(pattern, text)], default=0)
    return (hashlib.sha256(code).hexdigest(), len(code) // INSTRUCTION_BYTES, number(r"Used (\d+) registers"),
            number(r"(\d+) bytes stack frame"), number(r"(\d+) bytes spill stores"))


def of_records(before, after, options):
    """{(name, arch): (source before, after)} of kernels whose texts differ."""
    indices = [{(p["machine"], p["name"]): p for p in json.loads((pathlib.Path(f) / "index.json").read_text())["programs"]}
               for f in (before, after)]
    text = lambda folder, digest: (pathlib.Path(folder) / "texts" / digest[:2] / f"{digest}.cu").read_text()
    pairs, seen = {}, set()
    for (machine, name), program in sorted(indices[0].items()):
        other = indices[1].get((machine, name))
        if machine == "cpu" or not re.search(options.filter, name) or options.arch not in ("", machine) or not other:
            continue
        for a, b in zip(program["kernels"], other["kernels"]):
            digests = (machine, a["source"], b["source"])
            if a["source"] and b["source"] and a["source"] != b["source"] and digests not in seen:
                seen.add(digests)
                pairs[f"{name}: {a['name']}", machine] = (text(before, a["source"]), text(after, b["source"]))
    return pairs


def of_sources(before, after, options):
    files = sorted(p.relative_to(before) for p in pathlib.Path(before).rglob("*.cu"))
    return {(str(f), options.arch or "sm_90a"): ((pathlib.Path(before) / f).read_text(), (pathlib.Path(after) / f).read_text())
            for f in files if (pathlib.Path(after) / f).exists()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--sources", action="store_true", help="the folders hold .cu files")
    parser.add_argument("--filter", default="", help="a regular expression for the names of programs")
    parser.add_argument("--arch", default="", help="of a record: these kernels alone; of sources: what they are compiled for")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="compile one in so many kernels")
    options = parser.parse_args()
    pairs = (of_sources if options.sources else of_records)(options.before, options.after, options)
    pairs = dict(list(pairs.items())[::options.every])
    jobs = sorted({(source, arch) for (_, arch), both in pairs.items() for source in both})
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        made = dict(zip(jobs, pool.map(compiled, jobs, chunksize=4)))
    same, worse = 0, 0
    for (name, arch), (before, after) in pairs.items():
        a, b = made[before, arch], made[after, arch]
        if isinstance(a, str) or isinstance(b, str):
            worse += isinstance(b, str) and not isinstance(a, str)
            print(f"{arch} {name}: does not compile\n{a if isinstance(a, str) else ''}{b if isinstance(b, str) else ''}"[:2000])
        elif a[0] == b[0]:
            same += 1
        else:
            more = any(y > x for x, y in zip(a[1:], b[1:]))
            worse += more
            print(f"{arch} {name}: {'more' if more else 'no more'}: instructions {a[1]} -> {b[1]}, registers {a[2]} -> {b[2]}, "
                  f"stack {a[3]} -> {b[3]}, spills {a[4]} -> {b[4]}")
    print(f"{len(pairs)} kernels whose texts differ: {same} have the same machine code, {worse} more of something")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
