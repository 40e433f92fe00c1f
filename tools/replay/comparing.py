"""Two records, kernel by kernel. Kernels of a program are matched by their canonical tile IR, in order; what then differs is sorted
into one of KINDS, the first that applies."""
import collections
import concurrent.futures
import difflib
import hashlib
import json
import math
import os
import pathlib

import canonical

FORMAT = 1  # of the index; record_folder.cpp writes it
EQUAL, RENAMED = "equal", "equal but for names and comments"
KINDS = {"only before": "only before", "only after": "only after", "failure": "refused, or no longer", "tile": "tile IR differs",
         "schedule": "schedule differs", "source": "source differs, schedule does not", "predicted": "predicted time differs alone",
         "candidates": "other legal schedules alone differ"}
# Sums of doubles may be taken in another order.
TIME_TOLERANCE = 1e-6
FEW_TEXTS = 400  # fewer are not worth other processes


class RecordError(Exception):
    """A folder that holds no record, or one of another format."""


class Record:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        try:
            index = json.loads((self.folder / "index.json").read_text())
        except (OSError, ValueError) as e:
            raise RecordError(f"{folder} holds no record that can be read: {e}") from e
        if index.get("format") != FORMAT:
            raise RecordError(f"{folder} is a record of format {index.get('format')}, this program reads {FORMAT}: record it anew")
        self.programs = {(p["machine"], p["name"]): p for p in index["programs"]}
        if len(self.programs) != len(index["programs"]):
            raise RecordError(f"{folder} has two programs of one name")

    def text(self, kind, digest):
        return (self.folder / "texts" / digest[:2] / f"{digest}.{kind}").read_text() if digest else ""


def source_kind(machine):
    return "cpp" if machine == "cpu" else "cu"


def form_digest(job):
    folder, kind, digest = job
    path = pathlib.Path(folder) / "texts" / digest[:2] / f"{digest}.{kind}"
    return hashlib.sha256(canonical.form(path.read_text(), kind).encode()).hexdigest()


class Forms:
    """Digests of canonical forms, each computed once."""

    def __init__(self, before, after, jobs):
        self.records, self.jobs, self.known = (before, after), jobs, {}

    def prepare(self, wanted):
        """`wanted`: (side, kind, digest) of texts that will be asked for."""
        jobs = {}
        for side, kind, digest in sorted(set(wanted)):
            if digest and (kind, digest) not in self.known:
                jobs.setdefault((kind, digest), (str(self.records[side].folder), kind, digest))
        if len(jobs) > FEW_TEXTS and self.jobs > 1:
            with concurrent.futures.ProcessPoolExecutor(self.jobs) as pool:
                digests = list(pool.map(form_digest, jobs.values(), chunksize=64))
        else:
            digests = [form_digest(job) for job in jobs.values()]
        self.known.update(zip(jobs, digests))

    def of(self, kind, digest):
        return self.known[kind, digest] if digest else ""


# A kernel of either side or of both, and how it differs.
Difference = collections.namedtuple("Difference", "machine program before after kind")


def tile_entry(side, kernel):
    return side, "tile", kernel["tile"]


def source_entry(side, machine, kernel):
    return side, source_kind(machine), kernel["source"]


def matched(before, after, forms):
    """Pairs of kernels in order; None stands for what the other side lacks."""
    keys = [[forms.of("tile", k["tile"]) for k in kernels] for kernels in (before, after)]
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        common = min(a1 - a0, b1 - b0)
        yield from zip(before[a0:a0 + common], after[b0:b0 + common])
        yield from ((k, None) for k in before[a0 + common:a1])
        yield from ((None, k) for k in after[b0 + common:b1])


def kind_of(machine, before, after, forms):
    """Which of KINDS tells the two kernels apart, and whether their texts differ at all."""
    source = source_kind(machine)
    if bool(before["failure"]) != bool(after["failure"]):
        return "failure", True
    if forms.of("tile", before["tile"]) != forms.of("tile", after["tile"]):
        return "tile", True
    if (before["schedule"], before["launch"]) != (after["schedule"], after["launch"]):
        return "schedule", True
    if forms.of(source, before["source"]) != forms.of(source, after["source"]):
        return "source", True
    if not math.isclose(before["predicted_us"], after["predicted_us"], rel_tol=TIME_TOLERANCE):
        return "predicted", True
    if before["candidates"] != after["candidates"]:
        return "candidates", True
    return "", any(before[key] != after[key] for key in ("tile", "source"))


class Comparison:
    """What is the same in two records, and what is not."""

    def __init__(self, before, after, jobs=os.cpu_count() or 1):
        self.before, self.after = before, after
        self.forms = Forms(before, after, jobs)
        self.counts = collections.Counter()  # (machine, EQUAL, RENAMED or one of KINDS)
        self.differences = []
        self.plans, self.failures, self.other_programs = [], [], []  # programs, by (machine, name)
        self.only = [[key for key in before.programs if key not in after.programs],
                     [key for key in after.programs if key not in before.programs]]
        self.compare()

    def compare(self):
        both = [(key, p, self.after.programs[key]) for key, p in self.before.programs.items() if key in self.after.programs]
        changed = []
        for key, a, b in both:
            self.compare_programs(key, a, b)
            if a["kernels"] == b["kernels"]:
                self.counts[key[0], EQUAL] += len(a["kernels"])
            else:
                changed.append((key, a["kernels"], b["kernels"]))
        self.forms.prepare(tile_entry(side, k) for _, *sides in changed for side in (0, 1) for k in sides[side])
        pairs = [(key, a, b) for key, *sides in changed for a, b in matched(*sides, self.forms)]
        self.forms.prepare(source_entry(side, key[0], k) for key, *kernels in pairs for side, k in enumerate(kernels)
                           if None not in kernels and kernels[0] != kernels[1])
        for key, a, b in pairs:
            self.compare_kernels(key, a, b)
        for key in self.only[0] + self.only[1]:
            side = 0 if key in self.before.programs else 1
            for k in (self.before, self.after)[side].programs[key]["kernels"]:
                self.compare_kernels(key, *((k, None) if side == 0 else (None, k)))

    def compare_programs(self, key, a, b):
        if a["plan"] != b["plan"]:
            self.plans.append(key)
        if a["failure"] != b["failure"]:
            self.failures.append(key)
        if a["graph"] != b["graph"]:
            wanted = [(0, "graph", a["graph"]), (1, "graph", b["graph"])]
            self.forms.prepare(wanted)
            if self.forms.of("graph", a["graph"]) != self.forms.of("graph", b["graph"]):
                self.other_programs.append(key)

    def compare_kernels(self, key, a, b):
        if a is None or b is None:
            kind, touched = ("only after" if a is None else "only before"), True
        elif a == b:
            kind, touched = "", False
        else:
            kind, touched = kind_of(key[0], a, b, self.forms)
        self.counts[key[0], kind or (RENAMED if touched else EQUAL)] += 1
        if kind:
            self.differences.append(Difference(*key, a, b, kind))

    def is_equal(self):
        return not (self.differences or self.plans or self.failures or self.only[0] or self.only[1])
