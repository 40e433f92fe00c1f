#!/usr/bin/env python3
"""What the compiler makes of a fixed corpus, before and after a change: every lab pair at its sizes and in its types, the programs
of tests/golden/stages, random graphs, matmuls and programs around these, layers that repeat and a GPT-2 training step, for a CPU,
sm_80 and sm_90a. Nothing is run and no GPU or NVRTC is needed: kernels are compared as printed, names and comments aside, with
their tile IR, schedules, launches, predicted times and what else would have been legal.

  replay.py --against main                 this tree against a revision, which is built beside it (.cache/replay) and kept
  replay.py --against HEAD --filter pair/  … of a part: programs with this in their names
  replay.py --record DIR                   this tree's record: DIR/index.json, and texts under their hashes
  replay.py --compare DIR DIR              two records

Ends with 0 where nothing differs but names, with 1 where something does, with 2 where it could not be found out."""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys

import comparing
import revision
import showing

SCREEN = 40  # lines of differences


def say(text):
    """A reader that wants no more (head) changes nothing of what was found out."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"1 or more, not {number}")
    return number


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--against", metavar="REV", help="compare this tree with a revision: a commit, a branch, HEAD~3")
    what.add_argument("--record", metavar="DIR", help="write this tree's record")
    what.add_argument("--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="compare two records")
    parser.add_argument("--targets", default="cpu,sm_80,sm_90a", help="what is printed for (default: all three)")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only programs with this in their names (replay_record --list)")
    parser.add_argument("--short", action="store_true", help="the shortened form: a part of each kind, in seconds")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="threads, and processes of the build (default: all cores)")
    parser.add_argument("--program", help="this tree's recorder (default: build/replay_record, brought up to date)")
    parser.add_argument("--out", type=pathlib.Path, default=revision.KEPT / "differences.txt", metavar="FILE",
                        help="where every difference is written (default: .cache/replay/differences.txt)")
    parser.add_argument("--all", action="store_true", help="print every difference, not a screen of them")
    return parser.parse_args()


def selection(options):
    return ["--targets", options.targets] + (["--filter", options.filter] if options.filter else []) + ["--short"] * options.short


def write_record(program, folder, options, name):
    command = [str(program), "--out", str(folder), "--threads", str(options.jobs), *selection(options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise revision.RevisionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    say(f"{name}: {done.stdout.strip()}")


def own_recorder(options):
    if options.program:
        return pathlib.Path(options.program)
    revision.KEPT.mkdir(parents=True, exist_ok=True)
    return revision.build(revision.ROOT, options.jobs, revision.KEPT / "build.log")


def record_of_revision(options):
    """That of --against: recorded once."""
    commit = revision.commit_of(options.against)
    folder = revision.folder_of(commit) / ("record-" + hashlib.sha256(" ".join(selection(options)).encode()).hexdigest()[:12])
    if (folder / "index.json").exists():
        say(f"{options.against}: recorded before, in {folder}")
    else:
        revision.require_recorder(commit)
        say(f"{options.against}: {commit[:12]} is built in {revision.folder_of(commit)}")
        write_record(revision.recorder_of(commit, options.jobs), folder, options, options.against)
    return folder


def compare(before, after, options):
    comparison = comparing.Comparison(comparing.Record(before), comparing.Record(after), options.jobs)
    say("\n".join(showing.summary(comparison)))
    if comparison.is_equal():
        say("equal")
        return 0
    lines = showing.all_changes(comparison)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines))
    say("\n" + "\n".join(lines if options.all else lines[:SCREEN]))
    say(f"different: {options.out} has all {len(lines)} lines")
    return 1


def run(options):
    if options.compare:
        return compare(*options.compare, options)
    if options.record:
        write_record(own_recorder(options), options.record, options, "this tree")
        return 0
    before = record_of_revision(options)
    after = revision.KEPT / "this-tree"
    write_record(own_recorder(options), after, options, "this tree")
    return compare(before, after, options)


def main():
    try:
        return run(arguments())
    except (revision.RevisionError, comparing.RecordError, OSError) as e:
        print(f"replay: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
