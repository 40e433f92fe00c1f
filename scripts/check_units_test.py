#!/usr/bin/env python3
"""check_units.py finds a source that needs what another of its unit includes or declares, in a small tree made for it."""
import json
import os
import pathlib
import tempfile
import unittest

import check_units
from remembered import Remembered

SHAPE = "#pragma once\nnamespace tile {\nstruct Shape {\n  int rank = 0;\n};\nint size_of(const Shape& shape);\n}  // namespace tile\n"
FIRST = '#include "tile/shape.h"\nnamespace tile {\nstatic int doubled(int x) { return 2 * x; }\nint first(const Shape& s) { return doubled(s.rank); }\n}\n'
# The name is looked up where T is known.
LOOKS_SO = "template <class T> int second(T t) { return doubled(t); }\n"


class CheckUnits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write("src/tile/shape.h", SHAPE)
        self.write("src/tile/first.cpp", FIRST)
        self.write("build/unit_0.cxx", "".join(f'#include "{self.root}/src/tile/{name}.cpp"\n' for name in ("first", "second")))
        command = f"{os.environ.get('CXX', 'g++')} -std=c++20 -I{self.root}/src -o unit.o -c {self.root}/build/unit_0.cxx"
        entry = {"directory": str(self.root), "file": str(self.root / "build/unit_0.cxx"), "command": command}
        self.write("build/compile_commands.json", json.dumps([entry]))

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check(self, second):
        self.write("src/tile/second.cpp", second)
        bad, _, compiled = check_units.check(self.root, self.root / "build", Remembered(self.root / "remembered"))
        return {path.name: said for path, said in bad.items()}, compiled

    def expect_bad(self, second, said, name="second.cpp"):
        bad, _ = self.check(second)
        self.assertEqual(list(bad), [name])
        self.assertIn(said, bad[name])

    def test_a_source_that_mentions_nothing_of_others_is_not_compiled(self):
        self.assertEqual(self.check("int second(int rank) { return rank; }\n"), ({}, 0))

    def test_nor_one_that_includes_what_it_mentions(self):
        self.assertEqual(self.check('#include "tile/shape.h"\nint second(const tile::Shape& s) { return s.rank; }\n'), ({}, 0))

    def test_a_type_of_a_header_that_another_includes(self):
        self.expect_bad("int second(const tile::Shape* s) { return s->rank; }\n", "tile")

    def test_a_function_of_a_header_that_another_includes(self):
        self.expect_bad("namespace tile {\nint second() { return size_of({}); }\n}\n", "size_of")

    def test_a_function_that_another_has_for_itself(self):
        self.expect_bad("namespace tile {\nint second(int a) { return doubled(a); }\n}\n", "doubled")

    def test_a_header_of_the_standard_library(self):
        self.expect_bad("int second() { return std::size(\"ab\"); }\n", "std")

    def test_a_header_that_is_precompiled(self):
        """A source alone, too, which the compiler reads behind a header that brings what it lacks."""
        self.write("src/tile/third.cpp", "int third() { return std::size(\"ab\"); }\n")
        self.write("build/cmake_pch.hxx", "#include <string>\n")
        source = self.root / "src/tile/third.cpp"
        command = f"{os.environ.get('CXX', 'g++')} -std=c++20 -Winvalid-pch -include {self.root}/build/cmake_pch.hxx -o third.o -c {source}"
        self.write("build/compile_commands.json", json.dumps([{"directory": str(self.root), "file": str(source), "command": command}]))
        self.expect_bad("", "std", "third.cpp")

    def test_what_only_looks_so_is_compiled_and_good(self):
        self.assertEqual(self.check(LOOKS_SO), ({}, 1))

    def test_a_good_source_is_remembered_until_it_changes(self):
        self.assertEqual([self.check(text)[1] for text in (LOOKS_SO, LOOKS_SO, LOOKS_SO + "//\n")], [1, 0, 1])


if __name__ == "__main__":
    unittest.main()
