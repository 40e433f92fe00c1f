#!/usr/bin/python3
"""The second, independent judge: random programs over the user's API, run by our library and as PyTorch text by PyTorch, values,
gradients and second derivatives compared. Of what differs the smallest program found is shown, with the command that repeats it.

  judge.py --families products,mixed --seed 1 --count 500        on the CPU
  judge.py --device cuda:0 --shard 3/16 --count 100000           every sixteenth seed, from the fourth on
  judge.py --run FILE…                                           programs of one's own, or the corpus: tests/judge/cases
  judge.py --families groups --seed 17 --count 1 --print         the program of a seed"""
import argparse
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
# In the repository's build, or beside this folder, as in the GPU bundle.
PROGRAMS = [HERE.parent.parent / "build" / "run_programs", HERE.parent / "run_programs"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(next((path for path in PROGRAMS if path.exists()), PROGRAMS[0])),
                        help="our side: build/run_programs")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, reference (the interpreter: no compiler of machine code)")
    parser.add_argument("--isa", default="", help="of the CPU: amx, avx512, avx2, baseline")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--families", default="", help="comma-separated; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="seeds; each draws a program of each family")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long, wherever that is")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th seed, beginning with the i-th")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a program hangs")
    parser.add_argument("--failures", type=int, default=10, help="after so many it ends")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--print", action="store_true", help="each program as it is drawn")
    parser.add_argument("--run", nargs="+", default=[], help="files of programs, or folders of them, instead of drawing")
    return parser.parse_args()


def programs(options):
    """What is tried: a name, the program, and the options that draw it again."""
    import draws
    import families
    import program as text
    if options.run:
        for path in map(pathlib.Path, options.run):
            for file in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
                yield str(file), text.parse(file.read_text()), f"--run {file}"
        return
    part, parts = map(int, options.shard.split("/"))
    chosen = options.families.split(",") if options.families else list(families.FAMILIES)
    for seed in range(options.seed + part, options.seed + draws.draws(options.count), parts):
        for family in chosen:
            yield f"{family} {seed}", families.draw(family, seed), f"--families {family} --seed {seed} --count 1"


def judged(program, library, options):
    """The program, made small if it fails, and what is wrong with it."""
    import judging
    import shrinking
    try:
        problem = judging.problem_with(program, library)
        if problem and not options.no_shrink:
            return shrinking.shrink(program, problem, library)
        return program, problem
    except Exception:  # noqa: BLE001: a mistake of the judge's own is shown with its program
        library.stop()
        return program, "the judge itself: " + traceback.format_exc(limit=-3)


def judge_all(options):
    """Whether all passed, with a line that says how many."""
    import judging
    import torch
    command = [options.program, "--device", options.device, "--threads", str(options.threads)]
    library = judging.Library(command + (["--isa", options.isa] if options.isa else []), options.limit)
    tried, failed, nothing = 0, 0, 0
    start = told = time.monotonic()
    for name, program, again in programs(options):
        now = time.monotonic()
        if failed >= options.failures or (options.seconds and now - start > options.seconds):
            break
        if now - told > 60:
            told = now
            print(f"{name}: {tried} programs in {now - start:.0f} s", file=sys.stderr)
        if program is None:
            nothing += 1
            continue
        if options.print:
            print(f"# {name}\n{program}")
        tried += 1
        program, problem = judged(program, library, options)
        if problem:
            failed += 1
            print(f"# {name}: {problem}\n{program}# again: tests/judge/judge.py --device {options.device} {again}\n", flush=True)
    library.stop()
    print(f"{tried - failed} programs passed, {failed} failed, in {time.monotonic() - start:.1f} s on {options.device}, "
          f"PyTorch {torch.__version__}" + (f"; {nothing} seeds drew nothing" if nothing else ""))
    return failed == 0


def main():
    options = arguments()
    try:
        import torch
    except ImportError:
        print(f"{sys.executable} has no PyTorch: scripts/setup.sh test installs Debian's, for /usr/bin/python3", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    return 0 if judge_all(options) else 1


if __name__ == "__main__":
    sys.exit(main())
