"""A comparison as text: a table of one screen, and each different change once, with how many kernels have it."""
import difflib
import hashlib

import canonical
import comparing

CONTEXT = 1  # lines around what differs
MOST_HUNK_LINES = 60  # of one side of a hunk; of what is longer the beginning is shown
MOST_NAMES = 3
MOST_DIFFERENCES = 3000  # whose texts are laid side by side: some ten milliseconds each


def table(comparison):
    machines = sorted({machine for machine, _ in comparison.before.programs} | {machine for machine, _ in comparison.after.programs})
    rows = [comparing.EQUAL, comparing.RENAMED, *comparing.KINDS]
    out = ["{:<36}".format("kernels") + "".join(f"{m:>10}" for m in machines) + f"{'all':>10}"]
    for row in rows:
        counts = [comparison.counts[m, row] for m in machines]
        if row in (comparing.EQUAL, comparing.RENAMED) or sum(counts):
            out.append(f"{comparing.KINDS.get(row, row):<36}" + "".join(f"{c:>10}" for c in counts) + f"{sum(counts):>10}")
    return out


def names(keys):
    shown = ", ".join(f"{machine} {name}" for machine, name in keys[:MOST_NAMES])
    return shown + (f" and {len(keys) - MOST_NAMES} more" if len(keys) > MOST_NAMES else "")


def about_programs(comparison):
    out = []
    for keys, what in ((comparison.only[0], "programs are only in the record before"),
                       (comparison.only[1], "programs are only in the record after"),
                       (comparison.failures, "programs fail otherwise than before, or no longer"),
                       (comparison.plans, "programs have other buffers or another order of launches"),
                       (comparison.other_programs, "programs are drawn otherwise: not the compiler but the corpus differs there")):
        if keys:
            out.append(f"{len(keys)} {what}: {names(keys)}")
    return out


def text_difference(before, after, kind):
    """Lines of the two texts that differ in canonical form, as they stand there; and their canonical form."""
    sides = [canonical.canonical_lines(text, kind) for text in (before, after)]
    written = [text.splitlines() for text in (before, after)]
    shown, forms = [], []
    matcher = difflib.SequenceMatcher(None, *[[line for line, _ in side] for side in sides], autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        shown.append(f"@@ line {sides[0][group[0][1]][1] + 1} @@" if sides[0] else "@@")
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                shown += ["  " + written[1][number] for _, number in sides[1][b0:b1]]
                continue
            for sign, side, start, stop in (("- ", 0, a0, a1), ("+ ", 1, b0, b1)):
                lines = [sign + written[side][number] for _, number in sides[side][start:stop]]
                shown += lines[:MOST_HUNK_LINES] + ([f"{sign}… {len(lines) - MOST_HUNK_LINES} lines more"] if lines[MOST_HUNK_LINES:] else [])
                forms += [sign + line for line, _ in sides[side][start:stop]]
    return shown, forms


def of_program(comparison, key):
    """What differs of a program beside its kernels."""
    a, b = comparison.before.programs[key], comparison.after.programs[key]
    out = []
    if a["failure"] != b["failure"]:
        out += ["- " + (a["failure"] or "compiled"), "+ " + (b["failure"] or "compiled")]
    if a["plan"] != b["plan"]:
        plans = [record.text("plan", p["plan"]).splitlines() for record, p in ((comparison.before, a), (comparison.after, b))]
        out += list(difflib.unified_diff(*plans, lineterm="", n=0))[2:]
    return out


def of_kernel(comparison, d):
    """What differs of one kernel: lines to read, and what makes it the same change as another's."""
    if d.before is None or d.after is None:
        kernel, record = (d.before, comparison.before) if d.after is None else (d.after, comparison.after)
        lines = record.text("tile", kernel["tile"]).splitlines()
        return lines, [line for line, _ in canonical.lines_of_tile("\n".join(lines))]
    shown, same = [], []
    for key in ("failure", "schedule", "launch"):
        if d.before[key] != d.after[key]:
            pair = [f"- {key}: {d.before[key]}", f"+ {key}: {d.after[key]}"]
            shown, same = shown + pair, same + pair
    if d.before["predicted_us"] != d.after["predicted_us"]:
        shown.append(f"  predicted {d.before['predicted_us']:.6g} us before, {d.after['predicted_us']:.6g} us after")
    for kind, key in (("tile", "tile"), (comparing.source_kind(d.machine), "source"), ("candidates", "candidates")):
        if d.before[key] == d.after[key] or (key == "candidates" and d.kind != "candidates"):
            continue
        texts = [record.text(kind, k[key]) for record, k in ((comparison.before, d.before), (comparison.after, d.after))]
        lines, forms = text_difference(*texts, kind)
        shown += [f"  {key}:"] * bool(lines) + lines
        same += forms
    return shown, same or shown


def changes(comparison):
    """(title, lines) of each different change: first programs, then kernels by kind; those that most have first."""
    known = {}  # by what makes changes the same: rank, title, lines, how many have it

    def add(rank, title, lines, same):
        digest = hashlib.sha256("\n".join([str(rank), *same]).encode()).hexdigest()
        known.setdefault(digest, [rank, title, lines, 0])[3] += 1

    for key in dict.fromkeys(comparison.failures + comparison.plans):
        lines = of_program(comparison, key)
        add(-1, f"{key[0]} {key[1]}: the program", lines, lines)
    order = list(comparing.KINDS)
    for d in comparison.differences[:MOST_DIFFERENCES]:
        lines, same = of_kernel(comparison, d)
        add(order.index(d.kind), f"{d.machine} {d.program}, kernel {(d.after or d.before)['name']}: {comparing.KINDS[d.kind]}", lines, same)
    for _, title, lines, count in sorted(known.values(), key=lambda change: (change[0], -change[3])):
        yield title + (f", and {count - 1} more in the same way" if count > 1 else ""), lines
    if comparison.differences[MOST_DIFFERENCES:]:
        yield f"{len(comparison.differences) - MOST_DIFFERENCES} kernels more differ", ["  not looked into: --filter chooses"]


def summary(comparison):
    return table(comparison) + about_programs(comparison)


def all_changes(comparison):
    out = []
    for title, lines in changes(comparison):
        out += [f"== {title}", *lines, ""]
    return out
