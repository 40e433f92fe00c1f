#!/usr/bin/env python3
"""One site of the front page, the guide, the tutorial, the reference, benchmarks and notes, with search, to be read from files or behind
any server. Sphinx makes it of our documents (pages.py) and headers (reference.py); what it warns of is an error here, and so is a link
that leads nowhere (check_links.py). Sphinx and its theme are in .cache/docs, where `scripts/setup.sh docs` puts them.

Usage: scripts/site/make_site.py FOLDER"""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent.parent / ".cache/docs/bin/python"
SKIPPED = 77  # ctest's SKIP_RETURN_CODE for this


def main():
    import pages
    import reference

    folder = pathlib.Path(sys.argv[1]).resolve()
    sources = folder.with_name(folder.name + "-sources")
    for each in (folder, sources):
        shutil.rmtree(each, ignore_errors=True)
    pages.Site(sources, *reference.pages()).write_all()
    made = subprocess.run([PYTHON, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", HERE,
                           "-d", sources / ".doctrees", sources, folder])
    if made.returncode:
        sys.exit(f"make_site: Sphinx found something wrong; its sources are in {sources}")
    checked = subprocess.run([PYTHON, HERE / "check_links.py", folder])
    if checked.returncode:
        sys.exit(checked.returncode)
    print(f"make_site: {folder / 'index.html'}")


if __name__ == "__main__":
    if not PYTHON.exists():
        print(f"[  SKIPPED ] make_site: {PYTHON} is not there: `scripts/setup.sh docs` installs it")
        sys.exit(SKIPPED)
    if pathlib.Path(sys.prefix) != PYTHON.parent.parent:
        os.execv(PYTHON, [PYTHON, *sys.argv])
    main()
