#!/usr/bin/env python3
"""check_docs.py finds names that are nowhere, and takes nothing else for one."""
import pathlib
import unittest

import check_docs

PRINTED = "Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);\nload<2>(x, 0);\n"


class CheckDocs(unittest.TestCase):
    def dead(self, text):
        files = [pathlib.PurePath(file) for file in ("src/passes/masks/loop_peeling.h", "docs/tour.md")]
        return list(check_docs.dead_files_in_comments(text, *check_docs.tails_of(files)))

    def test_a_comment_names_files_that_are_there(self):
        self.assertEqual(self.dead("// As in (passes/masks/split_loops.h): a body\n/* passes/\n and passes/no.cpp. */\n"),
                         ["passes/masks/split_loops.h", "passes/no.cpp"])
        self.assertEqual(self.dead("// passes/masks/loop_peeling.h, masks/loop_peeling.h; docs/tour.md. src/passes/masks/loop_peeling.h\n"), [])

    def test_only_files_of_ours_are_asked_for_and_only_in_comments(self):
        self.assertEqual(self.dead('// numpy/_core/arrayprint.py, http://x.org/passes/no.cpp, passes/NAME/NAME.cpp, passes/no\n'
                                   '#include "passes/no.h"\n'), [])

    def test_a_quoted_call_is_one_that_is_printed(self):
        for code in ("refill(k_pipeline, …)", "refill(k_pipeline, k_state, k_block::bytes)", "load<2>(x, 0)", "load<…>(x, …)"):
            self.assertTrue(check_docs.is_quoted(code, PRINTED), code)
        for code in ("refill(k_ring, …)", "load<4>(x, 0)", "load<2>(y, …)"):
            self.assertFalse(check_docs.is_quoted(code, PRINTED), code)

    def test_other_calls_are_a_users(self):
        for code in ("load(x)", "take(pages, table)", "compile<Fn>(…)", "a + f(…)"):
            self.assertTrue(check_docs.is_quoted(code, PRINTED), code)


if __name__ == "__main__":
    unittest.main()
