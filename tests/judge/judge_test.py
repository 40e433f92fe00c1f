#!/usr/bin/python3
"""Mistakes that are planted in our side of programs: the judge finds each, and shows little beside the op that is wrong.
Usage: judge_test.py RUN_PROGRAMS"""
import copy
import sys

import torch

import draws
import families
import judging
import shrinking

# The op that a compiler takes for another, the family that draws it, and how many statements are shown at most.
MISTAKES = [("sin", "cos", "second", 3), ("matmul", None, "products", 4), ("maximum", "minimum", "mixed", 3),
            ("sum", "mean", "gradients", 3), ("concat", None, "joined", 4)]


class Mistaken(judging.Library):
    """A library with one op in the place of another, or with its operands exchanged."""

    def __init__(self, command, right, wrong):
        super().__init__(command, 20)
        self.right, self.wrong = right, wrong

    def run(self, program):
        other = copy.deepcopy(program)
        for s in other.statements:
            if s.op == self.right:
                s.op, s.operands = self.wrong or s.op, s.operands[::-1] if self.wrong is None else s.operands
        return super().run(other)


def shown(right, wrong, family, command):
    """The smallest program that the judge shows of the first that fails."""
    library = Mistaken(command, right, wrong)
    try:
        for seed in range(1, 200):
            program = families.draw(family, seed)
            if program is None or all(s.op != right for s in program.statements):
                continue
            problem = judging.problem_with(program, library)
            if problem.startswith("result"):
                return shrinking.shrink(program, problem, library, seconds=40)[0]
    finally:
        library.stop()
    return None


def main():
    torch.set_num_threads(1)
    failed = 0
    tried = MISTAKES[:draws.draws(len(MISTAKES))]
    for right, wrong, family, most in tried:
        program = shown(right, wrong, family, [sys.argv[1], "--device", "reference", "--threads", "1"])
        if program is None or all(s.op != right for s in program.statements) or len(program.statements) > most:
            failed += 1
            print(f"{right} taken for {wrong or 'itself with its operands exchanged'} is shown as:\n{program}")
    print(f"{len(tried) - failed} of {len(tried)} planted mistakes are found and made small")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
