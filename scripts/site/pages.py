"""Our documents as the sources of one site: copies at the same places, so that links among them stay as they are; the lessons and the
projects of users as pages of their own; links to files that are no page lead to the page that shows them."""
import pathlib
import re
import subprocess

import public_api

ROOT = public_api.ROOT
FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()([^)\s#:]*)(#[^)\s]*)?(?=\))")
IMAGE = re.compile(r'<p><img src="([^"]+)"[^>]*?alt="([^"]*)"[^>]*></p>')
COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
# What our fences are called, and what highlights them.
LANGUAGES = {"c++": "cpp", "cpu": "text", "console run": "console", "graph": "text", "simplified": "text", "tile": "text"}
# What the guide means by names that several have.
OF_COMPILED = {f"{name}()": f"Compiled::{name}" for name in ("into", "explain", "report", "measure", "edit")}
CAPTIONS = (
    ("Guide", ["docs/guide/README.md"]),  # with its pages, in its order
    ("Tutorial", ["tutorial/README.md", "examples/README.md"]),
    ("Reference", ["reference/README.md", "docs/ops.md", "docs/commands.md"]),
    ("How fast", ["docs/benchmarks.md", "docs/roofline.md", "docs/method.md", "docs/lab.md", "lab/README.md"]),
    ("Inside", ["docs/README.md", "docs/tour.md", "src/README.md", "docs/layers.md", "docs/attention.md", "docs/products.md", "docs/rows.md",
                "docs/cpu.md", "docs/launches.md", "docs/numerics.md", "HACKING.md"]),
    ("Records", ["CHANGELOG.md", "docs/notes/README.md"]),
)


def documents():
    """Every document of the tree."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split() if (ROOT / path).exists()]


def lessons():
    return sorted((ROOT / "tutorial").glob("lesson_*/*.cpp"))


def pages_of_others():
    """{a path of the tree that is no document: the page that shows it}."""
    shown = {"README.md": "index.md", "tutorial": "tutorial/README.md", "include/tilewright": "reference/README.md", "docs/layers.txt": "docs/layers.md"}
    for lesson in lessons():
        page = f"tutorial/{lesson.parent.name}.md"
        shown[str(lesson.relative_to(ROOT))] = shown[str(lesson.parent.relative_to(ROOT))] = page
    for project in ("installed", "subdirectory"):
        shown[f"examples/{project}"] = f"examples/{project}.md"
    return shown


def outside_of_fences(text, change):
    out, at = [], 0
    for fence in FENCE.finditer(text):
        out += [change(text[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join(out + [change(text[at:])])


def relative(path, page):
    up = len(pathlib.PurePosixPath(page).parent.parts)
    return "../" * up + path


class Site:
    def __init__(self, folder, reference, names):
        self.folder, self.reference, self.names = folder, reference, names
        self.documents, self.shown = documents(), pages_of_others()

    def page(self, path):
        """Where a document stands in the site."""
        return self.shown.get(path, path)

    def write(self, page, text):
        file = self.folder / page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link(self, page, source, found):
        target = found[1]
        if not target:
            return found[0]
        path = str((ROOT / source).parent.joinpath(target).resolve().relative_to(ROOT))
        if not path.endswith(".md") and path not in self.shown:
            if not path.endswith(".svg"):
                raise SystemExit(f"site: {source} links to {path}, which no page of the site shows")
            self.write(path, (ROOT / path).read_text())
        return relative(self.page(path), page) + (found[2] or "")

    def document(self, source):
        page = self.page(source)
        guide = source.startswith("docs/guide/")

        def change(text):
            text = COMMENT.sub("", IMAGE.sub(r"![\2](\1)", text))
            text = LINK.sub(lambda found: self.link(page, source, found), text)
            if guide:  # what is called by its name leads to the reference
                members = {} if "tile" in source else OF_COMPILED
                text = re.sub(r"(?<![\[`])`([A-Za-z_]\w*(?:::\w+)*(?:\(\))?)`(?!\])", lambda found: self.named(found[1], members), text)
            return text

        text = outside_of_fences((ROOT / source).read_text(), change)
        text = re.sub(r"^```(\S[^\n]*)$", lambda fence: "```" + LANGUAGES.get(fence[1], fence[1]), text, flags=re.MULTILINE)
        if page == "index.md":
            text += self.contents()
        if source == "docs/notes/README.md":
            notes = sorted(pathlib.Path(path).stem for path in self.documents if path.startswith("docs/notes/2"))
            text += toctree(notes)
        self.write(page, text)

    def named(self, word, members):
        if word in members:
            return f"[`{word}`]({self.names.find(members[word], [''])})"
        known = word.endswith("()") or "::" in word or re.search(r"[a-z][A-Z]", word)
        return self.names.link(word) if known and word != "main()" else f"`{word}`"

    def contents(self):
        out = ""
        for caption, pages in CAPTIONS:
            if caption == "Guide":
                text = (ROOT / pages[0]).read_text()
                pages = pages + [f"docs/guide/{page}" for page in dict.fromkeys(re.findall(r"\]\((\w+\.md)\)", text))]
            out += toctree([page.removesuffix(".md") for page in pages], caption)
        return out

    def tutorial(self):
        out = ["# Tutorial", "", "Six lessons, each a program that the tests build and run. `build/lesson_NN_…` is what they are called there.", ""]
        for lesson in lessons():
            lines = lesson.read_text().splitlines()
            end = next(n for n, line in enumerate(lines) if not line.startswith("//"))
            about = [line.removeprefix("//").removeprefix(" ") for line in lines[:end]]
            title = about[0].rstrip(".")
            text = [f"# {title}", "", re.sub(r"^   *", "    ", "\n".join(about[1:]).strip(), flags=re.MULTILINE), "",
                    "```cpp", "\n".join(lines[end:]).strip(), "```", ""]
            self.write(f"tutorial/{lesson.parent.name}.md", "\n".join(text))
            out.append(f"- [{title}]({lesson.parent.name}.md)")
        self.write("tutorial/README.md", "\n".join(out) + "\n" + toctree([lesson.parent.name for lesson in lessons()]))

    def projects(self):
        for project in ("installed", "subdirectory"):
            out = [f"# The project {project}", ""]
            for file, language in (("CMakeLists.txt", "cmake"), ("Makefile", "make"), ("main.cpp", "cpp")):
                path = ROOT / "examples" / project / file
                if path.exists():
                    out += [f"`{file}`:", "", f"```{language}", path.read_text().rstrip(), "```", ""]
            self.write(f"examples/{project}.md", "\n".join(out))
        layers = (ROOT / "docs/layers.txt").read_text().rstrip()
        self.write("docs/layers.md", f"# Who may include whom\n\n```text\n{layers}\n```\n")

    def write_all(self):
        for source in self.documents:
            self.document(source)
        example = self.folder / "examples/README.md"
        example.write_text(example.read_text() + toctree(["installed", "subdirectory"]))
        self.tutorial()
        self.projects()
        for page, text in self.reference.items():
            self.write(f"reference/{page}", text)


def toctree(pages, caption=""):
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption else "") + "\n" + "\n".join(pages) + "\n```\n"
