#!/usr/bin/env python3
"""The comparer by itself: what is the same in canonical form and what is not, and how kernels are matched and counted."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import canonical
import comparing
import showing

SOURCE = """// mul_3: grid [8]
#include "tw_cpu/core.h"
extern "C" void mul_3__kernel(void* const* views, const i64* scalars, i64 begin, i64 end, char* scratch) {
  f32* t12_ = (f32*)views[0];  // f32 [8]
  const f32* a0_ = (const f32*)views[1];
  for (i64 program = begin; program < end; ++program) {
    const vf32 a0_in0 = load(a0_ + program), a0_in1 = load(a0_ + program + 4);
    const Vec<f32, 2> pair = both(a0_in0, a0_in1);
    store(t12_ + program, max(a0_in0 * pair.v[0], a0_in1 * pair.v[1]));
  }
}
"""
TILE = """kernel @mul_3(
    %t12: view<f32,[8],strides=[1],align=256>)
    grid(8) const(BN=1) {
  %pid = program_id 0 : i64
  %1 = load %t12[%pid] : f32
  %2 = mul %1, %1 : f32
  store %t12[%pid], %2 : f32
}
"""


def source_form(text):
    return canonical.form(text, "cu")


class CanonicalForm(unittest.TestCase):
    def same(self, change, text=SOURCE):
        self.assertNotEqual(change(text), text)
        self.assertEqual(source_form(change(text)), source_form(text))

    def differs(self, old, new, text=SOURCE):
        self.assertIn(old, text)
        self.assertNotEqual(source_form(text.replace(old, new)), source_form(text))

    def test_renamed_values_are_the_same(self):
        self.same(lambda t: t.replace("t12_", "out").replace("a0_in", "x_").replace("mul_3__kernel", "product"))
        self.same(lambda t: t.replace("pair", "both_of_them").replace("program", "row"))

    def test_comments_and_layout_are_nothing(self):
        self.same(lambda t: t.replace("// f32 [8]", "/* the\n result */").replace(", a0_in1 = load", ",\n      a0_in1 = load"))

    def test_names_that_change_places_are_a_difference(self):
        self.differs("max(a0_in0 * pair.v[0], a0_in1", "max(a0_in1 * pair.v[0], a0_in0")
        self.differs("both(a0_in0, a0_in1)", "both(a0_in1, a0_in0)")
        self.differs("store(t12_", "store(a0_")

    def test_functions_types_members_and_numbers_are_no_names(self):
        self.differs("max(", "min(")
        self.differs("const vf32 a0_in0", "const vf64 a0_in0")
        self.differs("(const f32*)views[1]", "(const f64*)views[1]")
        self.differs("pair.v[1]", "pair.w[1]")
        self.differs("program + 4", "program + 8")
        self.differs('"tw_cpu/core.h"', '"tw_cpu/reduce.h"')

    def test_a_multiplication_declares_nothing(self):
        text = "void f(f32 a, f32 b, f32 c) { f32 x = g(a * b); x = c * a; }"
        self.differs("g(a * b)", "g(a * c)", text)
        self.differs("g(a * b)", "g(b * b)", text)
        self.differs("a > b", "a > c", "void f(i64 a, i64 b, i64 c) { if (a > b) g(a < b && c > b); }")

    def test_the_type_behind_a_qualifier_is_no_name(self):
        self.differs("Ring<4>", "Turn<4>", "void f() { __shared__ Ring<4> ring; open(ring); }")
        self.differs("static A", "static B", "void f() { static A room; g(room); }")

    def test_a_name_means_what_its_block_declares(self):
        text = "void f(i64 n) { for (i64 r = 0; r < n; ++r) { g(r); } for (i64 r = 0; r < n; ++r) { h(r); } }"
        self.same(lambda t: t[:58] + t[58:].replace("i64 r", "i64 row").replace("r <", "row <").replace("++r", "++row").replace("h(r", "h(row"), text)
        inner = "void f(i64 a, i64 b) { { i64 c = b; g(c); } g(a); }"
        self.assertEqual(source_form(inner), source_form(inner.replace("i64 c", "i64 a").replace("g(c)", "g(a)")))
        self.differs("} g(a)", "} g(b)", inner)

    def test_the_kernels_name_is_no_difference_where_attributes_part_it_from_its_type(self):
        text = 'extern "C" __global__ void __launch_bounds__(64, 6) mul_3(const f32* __restrict__ x) { g(x); }'
        self.same(lambda t: t.replace("mul_3", "mul_4").replace("x)", "y)"), text)
        self.differs("64, 6", "64, 5", text)
        self.differs("g(x)", "h(x)", text)

    def test_lambdas_structured_bindings_and_aliases(self):
        text = "void f() { using A = Block<f32, 64>; const auto [u, w] = g(); const auto h = [&](i64 v, int p) { k(u * v, p); }; h(w, A::bytes); }"
        renamed = text
        for old, new in (("A", "Left"), ("[u, w]", "[one, two]"), ("u *", "one *"), ("(w,", "(two,"), ("i64 v", "i64 at"), ("* v", "* at"), (" h", " go")):
            renamed = renamed.replace(old, new)
        self.assertEqual(source_form(text), source_form(renamed))
        self.differs("h(w,", "h(u,", text)
        self.differs("Block<f32, 64>", "Block<f32, 32>", text)

    def test_tile_values_are_renamed_and_all_else_is_kept(self):
        form = canonical.form(TILE, "tile")
        self.assertEqual(form, canonical.form(TILE.replace("%t12", "%scores").replace("%2", "%square").replace("@mul_3", "@m"), "tile"))
        for old, new in (("mul %1, %1", "mul %1, %pid"), ("BN=1", "BN=2"), ("[8]", "[9]"), ("mul", "add")):
            self.assertNotEqual(form, canonical.form(TILE.replace(old, new), "tile"), old)


def kernel(number, **changes):
    return {"name": f"mul_{number}", "tile": TILE.replace("grid(8)", f"grid({number})"), "source": SOURCE.replace("[8]", f"[{number}]").replace("+ 4", f"+ {number}"),
            "schedule": "unroll=4", "launch": "threads=1", "predicted_us": 2.0, "candidates": "2 us: unroll=4\n", "failure": "", **changes}


class Comparing(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.TemporaryDirectory()
        self.addCleanup(self.room.cleanup)
        self.folders = 0

    def record(self, *kernels, **program):
        folder = pathlib.Path(self.room.name) / str(self.folders)
        self.folders += 1
        (folder / "texts").mkdir(parents=True)

        def stored(text, kind):
            digest = f"{abs(hash((text, kind))):032x}"
            (folder / "texts" / digest[:2]).mkdir(exist_ok=True)
            (folder / "texts" / digest[:2] / f"{digest}.{kind}").write_text(text)
            return digest

        written = [{**k, "tile": stored(k["tile"], "tile"), "source": stored(k["source"], "cpp"), "candidates": stored(k["candidates"], "candidates")}
                   for k in kernels]
        line = {"machine": "cpu", "name": "graph/1", "graph": "", "plan": "", "failure": "", "kernels": written, **program}
        for key in ("graph", "plan"):
            line[key] = line[key] and stored(line[key], key)
        (folder / "index.json").write_text(json.dumps({"format": comparing.FORMAT, "programs": [line]}))
        return comparing.Record(folder)

    def counts(self, before, after):
        comparison = comparing.Comparison(before, after, jobs=1)
        showing.all_changes(comparison)  # shows whatever it is
        return {row: n for (_, row), n in comparison.counts.items() if n}, comparison

    def test_a_record_equals_itself(self):
        counts, comparison = self.counts(self.record(kernel(1), kernel(2)), self.record(kernel(1), kernel(2)))
        self.assertEqual(counts, {comparing.EQUAL: 2})
        self.assertTrue(comparison.is_equal())

    def test_renaming_alone_is_equal(self):
        other = kernel(1, name="mul_7", source=kernel(1)["source"].replace("t12_", "out"), tile=kernel(1)["tile"].replace("%t12", "%out"))
        counts, comparison = self.counts(self.record(kernel(1), kernel(2)), self.record(other, kernel(2)))
        self.assertEqual(counts, {comparing.RENAMED: 1, comparing.EQUAL: 1})
        self.assertTrue(comparison.is_equal())

    def test_each_kind_of_change_is_told_apart(self):
        for kind, changed in (("source", {"source": kernel(1)["source"].replace("max(", "min(")}), ("tile", {"tile": TILE.replace("mul %1", "add %1")}),
                              ("schedule", {"schedule": "unroll=8"}), ("schedule", {"launch": "threads=2"}), ("predicted", {"predicted_us": 2.1}),
                              ("candidates", {"candidates": "2 us: unroll=4\n3 us: unroll=8\n"}), ("failure", {"source": "", "failure": "no schedule"})):
            counts, comparison = self.counts(self.record(kernel(1)), self.record(kernel(1, **changed)))
            self.assertEqual(counts, {kind: 1}, changed)
            self.assertFalse(comparison.is_equal())

    def test_a_reader_that_goes_away_changes_no_result(self):
        before, after = self.record(kernel(1)), self.record(kernel(1, schedule="unroll=8"))
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("replay.py"), "--compare", before.folder, after.folder,
                               "--out", before.folder / "differences"], stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_jobs_are_at_least_one(self):
        done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("replay.py"), "--compare", "a", "b", "--jobs", "0"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("1 or more, not 0", done.stderr)

    def test_a_rounding_of_the_predicted_time_is_nothing(self):
        counts, _ = self.counts(self.record(kernel(1)), self.record(kernel(1, predicted_us=2.0000000001)))
        self.assertEqual(counts, {comparing.EQUAL: 1})

    def test_kernels_are_matched_past_those_that_one_side_lacks(self):
        counts, _ = self.counts(self.record(kernel(1), kernel(2), kernel(3)), self.record(kernel(1), kernel(3)))
        self.assertEqual(counts, {comparing.EQUAL: 2, "only before": 1})
        counts, _ = self.counts(self.record(kernel(1), kernel(3)), self.record(kernel(1), kernel(2), kernel(3), kernel(4)))
        self.assertEqual(counts, {comparing.EQUAL: 2, "only after": 2})

    def test_another_plan_another_failure_and_another_program_differ(self):
        for changed in ({"plan": "launch 0: 0+0 2+0\n"}, {"failure": "no memory"}, {"name": "graph/2"}):
            _, comparison = self.counts(self.record(kernel(1), plan="launch 0: 0+0 1+0\n"),
                                        self.record(kernel(1), **{"plan": "launch 0: 0+0 1+0\n", **changed}))
            self.assertFalse(comparison.is_equal(), changed)

    def test_a_program_that_is_drawn_otherwise_is_named(self):
        a, b = (self.record(kernel(1, schedule=schedule), graph=f"graph @main(%x: {t}[8]) {{}}") for schedule, t in (("a", "f32"), ("b", "f64")))
        _, comparison = self.counts(a, b)
        self.assertEqual(comparison.other_programs, [("cpu", "graph/1")])

    def test_the_same_change_is_shown_once_with_the_real_names(self):
        after = [kernel(n, source=kernel(n)["source"].replace("max(", "min(").replace("t12_", "out")) for n in (1, 2, 3)]
        _, comparison = self.counts(self.record(kernel(1), kernel(2), kernel(3)), self.record(*after))
        changes = list(showing.changes(comparison))
        self.assertEqual(len(changes), 1)
        self.assertIn("2 more in the same way", changes[0][0])
        shown = [line.split("store")[0][0] + line.split("store")[1] for line in changes[0][1] if line[:2] in ("- ", "+ ")]
        self.assertEqual(shown, ["-(t12_ + program, max(a0_in0 * pair.v[0], a0_in1 * pair.v[1]));", "+(out + program, min(a0_in0 * pair.v[0], a0_in1 * pair.v[1]));"])

    def test_what_is_no_record_is_said(self):
        with self.assertRaisesRegex(comparing.RecordError, "holds no record"):
            comparing.Record(self.room.name)
        record = self.record(kernel(1))
        (record.folder / "index.json").write_text('{"format": 0, "programs": []}')
        with self.assertRaisesRegex(comparing.RecordError, "record it anew"):
            comparing.Record(record.folder)


if __name__ == "__main__":
    unittest.main()
