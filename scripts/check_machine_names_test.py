#!/usr/bin/env python3
"""check_machine_names.py finds each kind of name, and takes no other word for one."""
import pathlib
import tempfile
import unittest

import check_machine_names


class CheckMachineNames(unittest.TestCase):
    def problems_of(self, text, path="src/passes/tiling/tiles.cpp"):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return check_machine_names.check(pathlib.Path(folder))[0]

    def expect_found(self, text, name):
        problems = self.problems_of(text + "\n")
        self.assertTrue(any(f": {name}: " in problem for problem in problems), f"{text}: {problems}")

    def test_names_are_found_in_identifiers_strings_and_comments(self):
        self.expect_found("constexpr double kShareOfMma = 0.3;", "mma")
        self.expect_found("if (target.has_wgmma()) return 1;", "wgmma")
        self.expect_found('return "what is added up runs on sm_90a alone";', "sm")
        self.expect_found("// Measured on an H200.", "h200")
        self.expect_found("// (docs/notes/2026-11-21-third-h200.md)", "h200")
        self.expect_found("// What a warp reads at once", "warp")
        self.expect_found("std::vector<DotTiles> cuda_tiles(const DotProblem& p);", "cuda")
        self.expect_found("bool hasAVX512 = true;", "avx512")
        self.expect_found("constexpr Index kColumnBytesGpu = 512;", "gpu")
        self.expect_found("// by cp.async", "cp.async")
        self.expect_found("// Tensor cores keep 14 bits.", "Tensor cores")

    def test_names_are_found_however_they_are_joined(self):
        for text, name in {"constexpr double kH100Bandwidth = 3.3;": "h100", "double h100_bandwidth;": "h100", "bool x86_64;": "x86",
                           "void cp_async();": "cp_async", "cuBLASLt(p);": "cublaslt", "int num_sms;": "sms", "Index wgmmas = 2;": "wgmmas",
                           "bool umma;": "umma", "int warpsize = 32;": "warpsize", "_mm512_add_ps(a, b);": "_mm512_add_ps",
                           "constexpr int kNumSMs = 132;": "sms", "int sm90aTiles;": "sm90", "int kCtasPerTile;": "ctas"}.items():
            self.expect_found(text, name)

    def test_names_are_found_in_comments(self):
        for text, name in {"// two MMAs": "mmas", "// all SMs": "sms", "// TMEM": "tmem", "// an L40S": "l40s", "// on A10": "a10",
                           "// GeForce": "geforce", "// a Tesla": "tesla", "// MI300": "mi300", "// gfx90a": "gfx90a", "// Skylake": "skylake",
                           "// Sapphire Rapids": "rapids", "// in zmm0": "zmm0", "// compute capability 9.0": "compute capability"}.items():
            self.expect_found(text, name)

    def test_devices_are_found_by_their_numbers_and_generations_by_their_names(self):
        for text, name in {"// an H20": "h20", "// an H-100": "H-100", "// H800": "h800", "// an A6000": "a6000", "// RTX4090": "rtx4090",
                           "// on Orin": "orin", "// a Jetson": "jetson", "// Genoa": "genoa", "// Grace": "grace", "// A-100": "A-100"}.items():
            self.expect_found(text, name)

    def test_instructions_and_parts_are_found(self):
        for text, name in {"int dp4a;": "dp4a", "// setmaxnreg": "setmaxnreg", "// LOP3": "lop3", "// QMMA": "qmma", "// UTCMMA": "utcmma",
                           "// bfmmla": "bfmmla", "// by the Tensor Memory Accelerator": "Tensor Memory Accelerator",
                           "// matrix cores": "matrix cores", "int matrix_core;": "matrix_core"}.items():
            self.expect_found(text, name)

    def test_lists_and_other_headers_are_read_too(self):
        for path in ("src/passes/rules.def", "src/passes/rules.hpp"):
            self.assertEqual(len(self.problems_of("int gpu;\n", path)), 1)

    def test_a_question_what_a_target_is_is_found(self):
        self.expect_found("return target_.kind == Kind::one;", "target_.kind")
        self.expect_found('if (target.arch == "x") return;', "target.arch")
        self.expect_found("using tile::TargetKind;", "TargetKind")
        self.expect_found('if (target.device_name == "x") return;', "target.device_name")
        self.expect_found('if (target->name == "x") return;', "target->name")

    def test_a_name_over_the_end_of_a_line_is_found(self):
        self.assertEqual(self.problems_of("// left to the tensor\n// cores alone\n"),
                         ["src/passes/tiling/tiles.cpp: tensor cores, over the end of a line: a part of a vendor's devices"])

    def test_a_line_says_where(self):
        self.assertEqual(self.problems_of("int a;\nint gpu;\n"), ["src/passes/tiling/tiles.cpp:2: gpu: a kind of machine"])

    def test_other_words_are_none(self):
        self.assertEqual(self.problems_of("// a comma, summaries, cummax, performance; armed, swarm, small, charm\n"
                                          "constexpr Index kMatrixUnit = 1;\n// the copy engine's rules\n"
                                          "// h2, h-2, x-1000, A-1, a-b, graceful, P1, v1, f32, bf16, i64, x20, a0, b2b, 0x1p-24, sums, items, mill, missing, async copies\n"), [])

    def test_other_folders_may_name_machines(self):
        self.assertEqual(self.problems_of("int cuda;\n", "src/backends/cuda/x.cpp"), [])


if __name__ == "__main__":
    unittest.main()
