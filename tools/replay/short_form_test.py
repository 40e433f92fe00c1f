#!/usr/bin/env python3
"""The shortened form, as CI has it: two processes with other numbers of threads write the same record; what is planted in one is
found, and names that all change are no difference.
Usage: short_form_test.py REPLAY_RECORD"""
import filecmp
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import canonical
import comparing
import showing

HERE = pathlib.Path(__file__).resolve().parent
LEAST_KERNELS = 800  # fewer are not the corpus
PLANTED = 40         # kernels in which a word is exchanged, one at a time
# Names with the numbers of nodes, as the printers give them; none of the device headers' looks like these.
NUMBERED = {"tile": re.compile(r"%(t?)(\d+)\b"), "source": re.compile(r"(?<![\w.])([tva])(\d+)(?=_|\b)")}


def record(program, folder, threads):
    subprocess.run([program, "--short", "--out", str(folder), "--threads", str(threads)], check=True)
    return folder


def same_files(a, b):
    compared = filecmp.dircmp(a, b)
    differing = compared.left_only + compared.right_only + filecmp.cmpfiles(a, b, compared.common_files, shallow=False)[1]
    return not differing and all(same_files(a / sub, b / sub) for sub in compared.common_dirs)


def status(before, after):
    """What the command says, and how it ends."""
    done = subprocess.run([sys.executable, HERE / "replay.py", "--compare", before, after, "--out", before.parent / "differences"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def write(folder, kind, text):
    """Stores a text as if it had been recorded."""
    digest = f"{random.getrandbits(128):032x}"
    (folder / "texts" / digest[:2] / f"{digest}.{kind}").write_text(text)
    return digest


def other_names(folder):
    """Gives every numbered value and every kernel another name. How many texts changed."""
    index, changed = json.loads((folder / "index.json").read_text()), 0
    before = comparing.Record(folder)
    for program in index["programs"]:
        for k in program["kernels"]:
            name, k["name"] = k["name"], f"kernel_of_{k['name']}"
            for key, kind in (("tile", "tile"), ("source", comparing.source_kind(program["machine"]))):
                text = before.text(kind, k[key])
                renamed = NUMBERED[key].sub(lambda m: m[0][0] * (m[0][0] == "%") + f"renamed_{m[1]}{int(m[2]) + 1000}", text)
                renamed = re.sub(rf"(?<=@){name}\b|(?<=\) ){name}(?=\()|\b{name}(?=__kernel)", k["name"], renamed)
                if renamed != text:
                    changed += 1
                    k[key] = write(folder, kind, renamed)
    (folder / "index.json").write_text(json.dumps(index))
    return changed


def with_another_word(text, kind, draw):
    """The text with one number or operator exchanged."""
    words = [m for m in canonical.TOKEN.finditer(text) if m.lastgroup == "number" or m.group() in ("+", "-", "<", "==", "&", "|")]
    if not words:
        return None
    m = draw.choice(words)
    exchanged = {"+": "-", "-": "+", "<": "<=", "==": "!=", "&": "|", "|": "&"}.get(m.group(), "7" + m.group())
    return text[:m.start()] + exchanged + text[m.end():]


def planted_and_missed(folder):
    """Kernels in which a word was exchanged without the comparer seeing it: none."""
    before, draw = comparing.Record(folder), random.Random(17)
    kernels = [(key[0], k) for key, p in before.programs.items() for k in p["kernels"] if k["source"]]
    missed = []
    for machine, k in draw.sample(kernels, PLANTED):
        kind = comparing.source_kind(machine)
        text = before.text(kind, k["source"])
        other = with_another_word(text, kind, draw)
        if other is not None and canonical.form(text, kind) == canonical.form(other, kind):
            missed.append(showing.text_difference(text, other, kind))
    return missed


def plant(folder):
    """Changes one thing of each kind in kernels of their own; the kinds that must be found."""
    index, before = json.loads((folder / "index.json").read_text()), comparing.Record(folder)
    places = [(p, k) for p in index["programs"] for k in p["kernels"] if "max(" in before.text(comparing.source_kind(p["machine"]), k["source"])]
    (p, k), others = places[0], [k for q, k in places[1:] if q is not places[0][0]]
    kind = comparing.source_kind(p["machine"])
    k["source"] = write(folder, kind, before.text(kind, k["source"]).replace("max(", "min(", 1))
    others[0]["schedule"] += " unroll=3"
    others[-1]["predicted_us"] *= 1.5
    index["programs"].pop()
    (folder / "index.json").write_text(json.dumps(index))
    return [comparing.KINDS[kind] for kind in ("source", "schedule", "predicted")] + ["1 programs are only in the record before"]


def main():
    failures = []

    def expect(holds, what):
        if not holds:
            failures.append(what)

    with tempfile.TemporaryDirectory() as room:
        one, three, planted, renamed = (pathlib.Path(room) / name for name in ("one", "three", "planted", "renamed"))
        record(sys.argv[1], one, threads=1)
        record(sys.argv[1], three, threads=3)
        kernels = sum(len(p["kernels"]) for p in comparing.Record(one).programs.values())
        expect(kernels >= LEAST_KERNELS, f"only {kernels} kernels are recorded")
        expect(same_files(one, three), "one thread and three write different records")
        code, text = status(one, three)
        expect(code == 0, f"a record does not equal itself ({code}):\n{text}")
        missed = planted_and_missed(one)
        expect(not missed, f"an exchanged word is taken for a renaming: {missed[:2]}")
        shutil.copytree(one, renamed)
        changed = other_names(renamed)
        code, text = status(one, renamed)
        expect(changed > kernels and code == 0, f"{changed} renamed texts are a difference ({code}):\n{text}")
        shutil.copytree(one, planted)
        wanted = plant(planted)
        code, text = status(one, planted)
        expect(code == 1, f"planted changes end with {code}")
        for what in wanted:
            expect(what in text, f"what was planted is not found: {what}\n{text}")
        code, text = status(one, pathlib.Path(room) / "nowhere")
        expect(code == 2 and "holds no record" in text, f"a record that is not there ends with {code}: {text}")
    print("\n".join(failures) or f"{kernels} kernels twice, {changed} renamed texts, {PLANTED} exchanged words and {len(wanted)} planted changes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
