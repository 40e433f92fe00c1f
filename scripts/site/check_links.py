#!/usr/bin/env python3
"""Fails on a link of a site that leads nowhere: a file that is not there, a place in a page that has no such name, a picture, script or
style that is missing or is fetched from elsewhere.

Usage: scripts/site/check_links.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse

LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("object", "data")}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.places, self.links = set(), []  # links: (address, whether the page loads it)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif name in ("href", "src", "data") and value and (tag == "a" or (tag, name) in LOADED):
                self.links.append((value, tag != "a"))


def read(file):
    reader = Reader()
    reader.feed(file.read_text())
    return reader


def problems(folder, pages):
    for file, reader in pages.items():
        for address, loaded in reader.links:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    yield f"{file.relative_to(folder)} loads {address} from elsewhere"
                continue
            target = (file.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file() or not target.is_relative_to(folder):
                yield f"{file.relative_to(folder)}: {address} is not there"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places:
                yield f"{file.relative_to(folder)}: {address}: the page has no such place"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {file: read(file) for file in sorted(folder.rglob("*.html"))}
    if not pages:
        sys.exit(f"check_links: no page in {folder}")
    wrong = list(dict.fromkeys(problems(folder, pages)))
    count = sum(len(reader.links) for reader in pages.values())
    print("\n".join(wrong + [f"check_links: {len(pages)} pages, {count} links, {len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
