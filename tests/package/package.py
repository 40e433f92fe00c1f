"""What the tests of the package share: commands that must succeed, as in a fresh shell."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"


def fail(why):
    sys.exit(f"package: {why}")


def check(condition, why):
    if not condition:
        fail(why)


def run(*command, fails=False, **variables):
    """What it says. Nothing of this environment but the way to compilers and a home is there for it, and `variables`."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment | variables)
    if (done.returncode != 0) != fails:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr
