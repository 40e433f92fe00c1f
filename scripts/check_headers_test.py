#!/usr/bin/env python3
"""check_headers.py finds what a header lacks, in a small tree made for it, also where a header read before would hide it."""
import os
import pathlib
import tempfile
import unittest

import check_headers
from remembered import Remembered

SHAPE = "#pragma once\n#include <vector>\nstruct Shape { std::vector<long> extents; };\n"
KERNEL = '#pragma once\n#include "tile/shape.h"\nstruct Kernel { Shape shape; };\n'
COMPILER = os.environ.get("CXX", "g++")


class CheckHeaders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write("src/tile/shape.h", SHAPE)
        self.write("src/tile/kernel.h", KERNEL)
        self.write("src/tile/words.h", "#pragma once\n#include <string>\nstruct Words { std::string text; };\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def bad(self):
        nothing = Remembered(self.root / "nothing")
        return {str(path): said for path, said in check_headers.check(self.root, nothing, COMPILER)[0].items()}

    def units(self):
        headers = check_headers.Headers(self.root)
        return [[path.name for path in unit.headers] for unit in check_headers.units_of(headers, headers.checked)]

    def expect_bad(self, path, text, said):
        self.assertEqual(self.bad(), {})
        self.write(path, text)
        bad = self.bad()
        self.assertEqual(list(bad), [path])
        self.assertIn(said, bad[path])

    def test_headers_that_hide_nothing_share_a_file(self):
        self.assertEqual(self.units(), [["shape.h", "kernel.h"], ["words.h"]])

    def test_a_header_of_the_standard_library_is_missing(self):
        self.expect_bad("src/tile/late.h", "#pragma once\nstruct Late { std::vector<int> all; };\n", "vector")

    def test_a_narrow_enum_for_users(self):
        self.write("include/tilewright/kind.h", "#pragma once\nenum class Wide { a };\nenum class Kind : unsigned char { a };\n")
        self.write("src/tile/inner.h", "#pragma once\nenum class Inner : unsigned char { a };\n")
        found = check_headers.narrow_enums(check_headers.Headers(self.root))
        self.assertEqual(found, ["include/tilewright/kind.h: Kind is narrower than int"])

    def test_and_another_is_there(self):
        self.expect_bad("src/tile/late.h", "#pragma once\n#include <string>\nstruct Late { std::vector<int> all; };\n", "vector")

    def test_a_header_of_ours_is_missing(self):
        self.expect_bad("src/tile/late.h", "#pragma once\n#include <vector>\nstruct Late { Shape shape; };\n", "Shape")

    def test_a_header_of_ours_is_missing_behind_a_forward_declaration(self):
        self.write("src/tile/forward.h", "#pragma once\n#include <vector>\nstruct Shape;\n")
        self.expect_bad("src/tile/late.h", '#pragma once\n#include "tile/forward.h"\nstruct Late { Shape shape; };\n', "incomplete")

    def test_its_own_forward_declaration_is_not_enough(self):
        self.expect_bad("src/tile/late.h", "#pragma once\n#include <vector>\nstruct Shape;\nstruct Late { Shape shape; };\n",
                        "incomplete")

    def test_pragma_once_is_missing(self):
        self.expect_bad("src/tile/late.h", "struct Late {};\n", "redefinition")

    def test_headers_that_cannot_share_a_file_are_good(self):
        self.write("src/tile/limits.h", "#pragma once\n#include <vector>\nenum { shape };\n")
        self.write("src/tile/other.h", "#pragma once\n#include <vector>\nstruct shape {};\n")
        self.assertEqual(self.bad(), {})

    def test_what_users_read_includes_nothing_that_takes_long(self):
        self.write("include/tilewright/tree.h", "#pragma once\n#include <vector>\n")
        self.write("include/tilewright/tilewright.hpp", "#pragma once\n#include <tilewright/tree.h>\n")
        self.write("include/tilewright/other.h", "#pragma once\n#include <map>\n")
        dear = lambda: check_headers.dear_includes(check_headers.Headers(self.root))
        self.assertEqual(dear(), [])
        self.write("include/tilewright/tree.h", "#pragma once\n#include <functional>\n#include <vector>\n")
        self.assertEqual(dear(), ["include/tilewright/tree.h includes <functional>"])

    def test_what_was_good_is_compiled_again_when_what_it_includes_has_changed(self):
        remembered = Remembered(self.root / "good")
        self.assertEqual(check_headers.check(self.root, remembered, COMPILER), ({}, 3, 3))
        self.assertEqual(check_headers.check(self.root, remembered, COMPILER), ({}, 3, 0))
        self.write("src/tile/shape.h", SHAPE.replace("Shape", "Form"))
        bad, _, compiled = check_headers.check(self.root, remembered, COMPILER)
        self.assertEqual(([str(path) for path in bad], compiled), (["src/tile/kernel.h"], 2))


if __name__ == "__main__":
    unittest.main()
