"""The recorder of another revision: checked out into a git worktree of its own, built there with ccache, and kept for the next time."""
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / ".cache" / "replay"
MOST_KEPT = 4  # revisions; a build folder has some 200 MB
RECORDER = "replay_record"


class RevisionError(Exception):
    """What keeps the recorder from being built."""


def git(*arguments):
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RevisionError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(revision):
    try:
        return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except RevisionError:
        raise RevisionError(f"{revision} is no revision of this repository") from None


def run(command, log, environment):
    """Its output goes to `log`; a failure shows the end of it."""
    with open(log, "ab") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise RevisionError(f"{' '.join(command)} failed; the end of {log}:\n{tail}")


def shared_ccache():
    """Paths are stripped from what ccache compares, so that what one worktree compiled is there for the next one."""
    environment = dict(os.environ)
    configured = shutil.which("ccache") and subprocess.run(["ccache", "-k", "base_dir"], capture_output=True, text=True).stdout.strip()
    if not configured:
        environment.setdefault("CCACHE_BASEDIR", str(ROOT))
    environment.setdefault("CCACHE_NOHASHDIR", "1")
    return environment


def forget_old(present):
    """Removes all but the few revisions that were used last."""
    folders = sorted((f for f in KEPT.iterdir() if (f / "source").exists() and f != present), key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[MOST_KEPT - 1:]:
        git("worktree", "remove", "--force", str(folder / "source"))
        shutil.rmtree(folder)


def own_compiler():
    """The C++ compiler that this tree is built with, or None before it is: what a compiler of ours prints depends on the order in
    which the compiler that built it evaluates arguments, so that two revisions are compared as built by one."""
    cache = ROOT / "build" / "CMakeCache.txt"
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return found and found[1]


def build(source, jobs, log):
    """Builds the recorder of the tree `source` in its folder build/, and returns the program."""
    environment = shared_ccache()
    if not (source / "build" / "build.ninja").exists():
        compiler = own_compiler()
        run(["cmake", "-S", str(source), "-B", str(source / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             *([f"-DCMAKE_CXX_COMPILER={compiler}"] if compiler else [])], log, environment)
    run(["cmake", "--build", str(source / "build"), "-j", str(jobs), "--target", RECORDER], log, environment)
    return source / "build" / RECORDER


def folder_of(commit):
    return KEPT / commit[:12]


def require_recorder(commit):
    if not git("ls-tree", "--name-only", commit, "tools/replay/main.cpp"):
        first = git("log", "--diff-filter=A", "--format=%h", "--", "tools/replay/main.cpp").split("\n")[-1]
        raise RevisionError(f"{commit[:12]} has no tools/replay, which came with {first or 'a later commit'}: name one that has it")


def recorder_of(commit, jobs):
    """The recorder that `commit` builds."""
    folder = folder_of(commit)
    source = folder / "source"
    if not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(source), commit)
    os.utime(folder)
    forget_old(folder)
    return build(source, jobs, folder / "build.log")
