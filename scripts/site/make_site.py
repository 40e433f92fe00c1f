#!/usr/bin/python3
"""One site of the front page, the guide, the tutorial, the reference, benchmarks and notes, with search, to be read from files or behind
any server. Sphinx makes it of our documents (pages.py) and headers (reference.py); what it warns of is an error here, and so is a link
that leads nowhere (check_links.py).

Usage: scripts/site/make_site.py FOLDER"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    sources = folder.with_name(folder.name + "-sources")
    for each in (folder, sources):
        shutil.rmtree(each, ignore_errors=True)
    pages.Site(sources, *reference.pages()).write_all()
    made = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", HERE,
                           "-d", sources / ".doctrees", sources, folder])
    if made.returncode:
        sys.exit("make_site: Sphinx found something wrong; its sources are in " + str(sources))
    checked = subprocess.run([sys.executable, HERE / "check_links.py", folder])
    if checked.returncode:
        sys.exit(checked.returncode)
    print(f"make_site: {folder / 'index.html'}")


if __name__ == "__main__":
    try:
        import furo  # noqa: F401
        import myst_parser  # noqa: F401
        import sphinx  # noqa: F401

        import pages
        import reference
    except ImportError as missing:
        print(f"[  SKIPPED ] make_site: {missing}; `scripts/setup.sh docs` installs it")
        sys.exit(77)
    main()
