"""The reference, a page a header: what each declares, in its order, with what its comments say. Signatures stand as they are written,
without bodies, and without the last argument, the caller's line."""
import re

import public_api

FOLDERS = (("tensor", "Tensors, compile(), gradients"), ("nn", "Layers, models, training"), ("formats", "Files"), ("tile", "Tile kernels"), ("base", "What all is made of"),
           ("perf", "What work costs, what machines can do"), ("passes", "Choices of the compiler"), ("", "The library as a whole"))
CALLER = re.compile(r",?\s*(?:const (?:Location|std::source_location)& \w+\s*=\s*Location::current\(\)|\bTW_HERE\b)")
WORD = re.compile(r"`[^`]+`|\bdocs/\w+\.md\b|[A-Za-z_]\w*<[\w:]+>\(\)|(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*\(\)|(?:[A-Za-z_]\w*::)+[A-Za-z_]\w*|\b[A-Z]\w*[a-z][A-Z]\w*")
LONGEST_HEADING = 4  # names


def anchor_of(name):
    return "api-" + re.sub(r"[^a-z0-9]+", lambda c: "-" if c[0] == "::" else "".join(f"{ord(each):x}" for each in c[0]), name.lower())


class Names:
    """Every public name, and where it stands: a name that several headers have, in the first of them."""

    def __init__(self, headers):
        self.anchors, self.owners = {}, {}
        order = [folder for folder, _ in FOLDERS]
        for header in sorted(headers.values(), key=lambda h: order.index(folder_of(h))):
            self.add(header, header.declarations)

    def add(self, header, declarations):
        for each in declarations:
            name = self.key(each)
            if name not in self.anchors:
                anchor = anchor_of(name)  # case does not tell names apart there
                self.anchors[name] = anchor + "-" * (anchor in self.owners) + "type" * (anchor in self.owners)
                self.owners[self.anchors[name]] = header.path
            self.add(header, each.members)

    def key(self, declaration):
        return declaration.full_name.removeprefix("::").removeprefix("tilewright::")

    def find(self, word, scopes):
        """The anchor of a name as it is used within `scopes`, innermost first: "tile::Builder", "tile", ""."""
        word = word.removesuffix("()").removeprefix("tilewright::").removeprefix("tw::")
        for scope in scopes:
            if (key := f"{scope}::{word}" if scope else word) in self.anchors:
                return self.anchors[key]
        return None

    def link(self, word, scopes=("",)):
        shown = word.strip("`")
        anchor = self.find(shown, scopes)
        return f"[`{shown}`]({anchor})" if anchor else f"`{shown}`"


def folder_of(header):
    parts = header.path.split("/")
    return parts[1] if len(parts) > 2 else ""


def escaped(text):
    return re.sub(r"([\\*_\[\]<>|#~$])", r"\\\1", text)


def linked(word, names, scopes):
    if word.endswith(".md"):
        return f"[{word.removeprefix('docs/')}](../{word})"
    is_code = names.find(word, scopes) or re.search(r"[`(:]", word)
    return names.link(word, scopes) if is_code else word


def prose(lines, names, scopes):
    """A comment as Markdown: what is indented in it is code, names are code that leads to them."""
    out, code, in_list = [], [], False

    def end_code():
        if code:
            out.extend(["", "```cpp" if ";" in "".join(code) else "```text", *code, "```", ""])
            code.clear()

    for line in lines:
        in_list = bool(line) and (in_list or line.startswith("- "))
        if re.match(r"\s{2,}\S", line) and not in_list:
            code.append(line.strip() if not code else line.removeprefix("  "))
            continue
        end_code()
        at, made = 0, ""
        for found in WORD.finditer(line):
            made += escaped(line[at:found.start()]) + linked(found[0], names, scopes)
            at = found.end()
        made += escaped(line[at:])
        out.append(re.sub(r"^(\d+)\.", r"\1\\.", re.sub(r"^([-+]) (?!\S)", r"\\\1 ", made)))
    end_code()
    return "\n".join(out).strip()


def without_body(text):
    """A function's declaration alone."""
    depth = 0
    for at, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif depth == 0 and text.startswith("//", at):
            return text
        elif depth == 0 and c == "{":
            return text[:at].rstrip() + ";"
        elif depth == 0 and c == ":" and text[at - 1] == " " and text[at + 1] == " " and ")" in text[:at]:
            return text[:at].rstrip() + ";"  # initialisers of members
    return text


def dedented(text):
    lines = text.splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def code_of(header, declarations):
    out, seen = [], set()
    for each in declarations:
        if each.first in seen:
            continue
        seen.add(each.first)
        text = dedented("\n".join(header.lines[each.first - 1:each.last]))
        if each.kind == "function":
            text = without_body(text)
        text = CALLER.sub("", text)
        text = re.split(r"^\s*(?:private|protected):$", text, flags=re.MULTILINE)
        out.append(text[0].rstrip() + ("\n};" if len(text) > 1 else ""))
    return "\n".join(out)


def has_methods(type_):
    """Whether its members are worth entries of their own; else its source shows all of it."""
    return any(member.kind == "function" and not member.name.rsplit("::", 1)[-1].startswith("operator==") and
               member.name.split("::")[-1] != type_.name.split("::")[-1] for member in type_.members)


class Page:
    def __init__(self, header, names, meant):
        self.header, self.names, self.meant = header, names, meant
        self.out, self.anchored = [], set()

    def anchors(self, declarations):
        for each in declarations:
            anchor = self.names.anchors[self.names.key(each)]
            if anchor not in self.anchored and self.names.owners[anchor] == self.header.path:
                self.anchored.add(anchor)
                self.out.append(f"({anchor})=")

    def scopes_of(self, declaration):
        space = declaration.space.removeprefix("tilewright").removeprefix("::")
        parts = [part for part in space.split("::") if part] + declaration.name.split("::")[:-1]
        if declaration.kind == "type":
            parts.append(declaration.name.split("::")[-1])
        return ["::".join(parts[:n]) for n in range(len(parts), -1, -1)]

    def heading(self, declarations, level):
        names = list(dict.fromkeys(self.names.key(each) for each in declarations))
        shown = ", ".join(f"`{name}`" for name in names[:LONGEST_HEADING])
        self.out += [f"{'#' * level} {shown}{', …' if len(names) > LONGEST_HEADING else ''}", ""]

    def write_list(self, group):
        """Functions from a list: a paragraph each, that says what it does; methods are the functions of their names."""
        if "::" in group.declarations[0].name:
            methods = []
            for each in group.declarations:
                name = each.name.split("::")[-1]
                methods.append(f"[`{name}({', '.join(each.arguments)})`]({self.names.find(name, [''])})")
            self.anchors(group.declarations)
            self.out += [" · ".join(methods), ""]
            return
        for each in group.declarations:
            self.anchors([each])
            self.out += [f"`{each.name}({', '.join(each.arguments)})`: {self.meant.get(each.name, '')}".rstrip(": "), ""]

    def write(self, group, level):
        first = group.declarations[0]
        if group.section:
            title, _, rest = group.section.partition(":")
            self.out += [f"{'#' * (level - 1)} {title[0].upper() + title[1:]}", ""]
            if rest:
                group.doc.insert(0, rest.strip())
        types = [each for each in group.declarations if each.kind == "type" and has_methods(each)]
        if not first.listed:
            self.anchors(group.declarations)
            if not types:
                self.anchor_members(group.declarations)
        self.heading(group.declarations, level)
        if not types and not first.listed:
            self.out += ["```cpp", code_of(self.header, group.declarations), "```", ""]
        self.out += [prose(group.doc, self.names, self.scopes_of(first)), ""]
        if first.listed:
            self.write_list(group)
        for each in types:
            for members in self.header.groups(each.members):
                members.section = ""
                self.write(members, level + 1)

    def anchor_members(self, declarations):
        """Fields and nested types stand in the source that is shown: its group is where they are."""
        for each in declarations:
            for member in each.members:
                self.anchors([member])
                self.anchor_members([member])

    def text(self):
        header = self.header
        self.out = [f"# {header.path.removeprefix('tilewright/')}", "", "```cpp", f"#include <{header.path}>", "```", "",
                    prose(header.about, self.names, self.scopes_of(header.declarations[0])), ""]
        groups = header.groups(header.declarations)
        sections = any(group.section for group in groups)
        if sections and not groups[0].section:
            self.out += ["## Types" if groups[0].declarations[0].kind == "type" else "## General", ""]
        for group in groups:
            self.write(group, 3 if sections else 2)
        return "\n".join(self.out) + "\n"


def index_of(headers, names):
    out = ["# Reference", "", "Every public function and type, from the headers, as Clang reads them. A program includes `<tilewright/tilewright.hpp>`, "
           "which brings what most need; a page says which header it is of.", "",
           "All stands in the namespace `tilewright`, which is left out here, as is the last argument of most functions: the caller's line, "
           "`const Location& where = Location::current()`, of which errors speak.", ""]
    for folder, title in FOLDERS:
        of_folder = [header for header in headers.values() if folder_of(header) == folder and header.declarations]
        if not of_folder:
            continue
        out += [f"## {title}", "", "| header | |", "|---|---|"]
        for header in of_folder:
            first = re.split(r"(?<=\.)\s|\s{2,}", " ".join(header.about), maxsplit=1)[0].strip()
            about = prose([first], names, ["tile", ""] if folder == "tile" else [""]).replace("\n", " ")
            out.append(f"| [{header.path.removeprefix('tilewright/')}]({page_of(header)}) | {about} |")
        out += ["", "```{toctree}", ":hidden:", "", *(page_of(header).removesuffix(".md") for header in of_folder), "```", ""]
    out += ["## By name", ""]
    letters = {}
    for name, anchor in names.anchors.items():
        if "::" not in name.removeprefix("tile::").removeprefix("perf::").removeprefix("dlpack::").removeprefix("passes::"):
            plain = name.split("::")[-1]
            letters.setdefault(plain[0].upper() if plain[0].isalpha() and not plain.startswith("operator") else "operators", []).append((plain.lower(), name, anchor))
    for letter in sorted(letters, key=lambda l: (len(l), l)):
        out += [f"**{letter}** " + " · ".join(f"[`{name}`]({anchor})" for _, name, anchor in sorted(letters[letter])), ""]
    return "\n".join(out)


def page_of(header):
    return header.path.removeprefix("tilewright/").replace("/", "-").rsplit(".", 1)[0] + ".md"


def pages():
    """({name: text}, the names for links from other pages)."""
    headers = public_api.read_headers()
    names, meant = Names(headers), public_api.meanings()
    out = {page_of(header): Page(header, names, meant).text() for header in headers.values() if header.declarations}
    out["README.md"] = index_of(headers, names)
    return out, names
