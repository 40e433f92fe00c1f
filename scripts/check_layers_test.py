#!/usr/bin/env python3
"""check_layers.py finds each kind of forbidden include, in a small tree made for it."""
import pathlib
import tempfile
import unittest

import check_layers

TABLE = """
base:
tile: base
umbrella: tile base
tutorial: umbrella
tests: tile base
only heavy: tile
only heavy-c:
everywhere: light sys
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/layers.txt", TABLE)
        self.write("include/tilewright/base/error.h", "#include <string>\n")
        self.write("include/tilewright/tilewright.hpp", "#include <tilewright/base/error.h>\n")
        self.write("src/tile/parser.h", "#include <tilewright/base/error.h>\n#include <heavy/all.h>\n")
        self.write("tests/support/random.h", '#include "tile/parser.h"\n')

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def expect_problem(self, path, text, problem):
        self.assertEqual(check_layers.check(self.root)[0], [])
        self.write(path, text)
        self.assertEqual(check_layers.check(self.root)[0], [f"{path}:{text.count(chr(10))}: {problem}"])

    def expect_problem_at(self, path, text, line, problem):
        self.write(path, text)
        self.assertEqual(check_layers.check(self.root)[0], [f"{path}:{line}: {problem}"])

    def test_a_lower_folder_may_not_include_a_higher(self):
        self.expect_problem("src/base/error.cpp", '// why\n#include "tile/parser.h"\n',
                            "base may not include tile (tile/parser.h)")

    def test_the_table_has_no_circle(self):
        self.write("docs/layers.txt", TABLE.replace("base:", "base: tile", 1))
        with self.assertRaisesRegex(SystemExit, "'base' names 'tile', which has no row above it"):
            check_layers.check(self.root)

    def test_a_star_stands_for_the_rows_inside(self):
        self.write("src/tile/text/parse.h", "")
        self.write("tests/support/random.h", '#include "tile/text/parse.h"\n')
        for allowed, problems in (("tile", 1), ("tile/*", 0)):
            self.write("docs/layers.txt", TABLE.replace("tests: tile", f"tests: {allowed}").replace("tile: base", "tile: base\ntile/text:"))
            self.assertEqual(len(check_layers.check(self.root)[0]), problems)

    def test_a_public_header_may_not_include_a_private(self):
        self.expect_problem("include/tilewright/tile/kernel.h", '#include "tile/parser.h"\n',
                            "a public header includes the private tile/parser.h")

    def test_inside_the_library_nobody_includes_the_umbrella(self):
        self.expect_problem("src/tile/kernel.cpp", "#include <tilewright/tilewright.hpp>\n",
                            "tile may not include umbrella (tilewright/tilewright.hpp)")

    def test_a_lesson_sees_the_umbrella_only(self):
        self.expect_problem("tutorial/lesson_01/main.cpp", "#include <tilewright/base/error.h>\n",
                            "tutorial may not include base (tilewright/base/error.h)")

    def test_heavy_foreign_headers_stay_where_they_are_paid_for(self):
        self.expect_problem("src/base/error.cpp", "#include <heavy/all.h>\n",
                            "<heavy/all.h> may be included only in tile")

    def test_its_other_face_is_another_name(self):
        self.expect_problem("src/tile/parser.cpp", "#include <heavy-c/all.h>\n", "<heavy-c/all.h> may be included only in no folder")

    def test_a_header_of_others_is_named(self):
        self.expect_problem("src/tile/parser.cpp", "#include <new.h>\n",
                            "<new.h> is a header of others that docs/layers.txt does not name")
        self.write("src/tile/parser.cpp", "#include <light/all.h>\n#include <sys/stat.h>\n#include <vector>\n")
        self.assertEqual(check_layers.check(self.root)[0], [])

    def test_a_comment_hides_nothing(self):
        self.expect_problem("src/base/error.cpp", '# /* why */ include /* x */ /* y */ "tile/parser.h"\n',
                            "base may not include tile (tile/parser.h)")

    def test_a_macro_names_no_file(self):
        problem = "an #include of what a macro says: name the file"
        self.expect_problem("src/base/error.cpp", '#define HEADER "tile/parser.h"\n#include HEADER\n', problem)
        self.expect_problem_at("src/base/error.cpp", '#include \\\nHEADER\n', 1, problem)
        self.expect_problem_at("src/base/error.cpp", '#include \\\n"tile/parser.h"\n', 2, "base may not include tile (tile/parser.h)")
        self.write("src/base/error.cpp", '#include<string>\n// #include HEADER\n# include /* x */ <vector>\nint included = 1;\n')
        self.assertEqual(check_layers.check(self.root)[0], [])

    def test_a_list_is_read_too(self):
        self.expect_problem("include/tilewright/base/types.def", "#include <heavy/all.h>\n",
                            "<heavy/all.h> may be included only in tile")

    def test_only_tests_include_the_support_of_tests(self):
        self.write("src/tile/parser_test.cpp", '#include "support/random.h"\n')
        self.expect_problem("src/tile/parser.cpp", '#include "support/random.h"\n',
                            "tile may not include tests (support/random.h)")

    def test_a_quoted_include_that_does_not_exist_is_found(self):
        self.expect_problem("src/tile/parser.cpp", '#include "tile/parsre.h"\n',
                            '"tile/parsre.h" is no file of this repository; foreign headers stand in <>')

    def test_a_folder_without_a_row_is_found(self):
        self.write("src/extra/more.h", "\n")
        self.assertEqual(check_layers.check(self.root)[0],
                         ["src/extra/more.h: its folder has no row in docs/layers.txt"])


if __name__ == "__main__":
    unittest.main()
