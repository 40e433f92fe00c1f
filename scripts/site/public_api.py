#!/usr/bin/python3
"""What the public headers declare, and what their comments say of it, as Clang reads them: the reference (reference.py) and the check of
docstrings (check_docstrings.py) are made of this.

Comments are plain `//` lines. A block of them directly above a declaration is its docstring, and that of the declarations behind it up
to the next blank line or comment; one behind a declaration, on its line, is its own. `// --- words` opens a section. Functions that come
from a list (unary.def and its like) have the meaning that docs/ops.md gives of their op, or the expression that the list makes them of.

Libclang, and not Doxygen: that of Debian 12 sees none of the functions that come from lists, and drops `requires`.

Debian's Python: python3-clang-19 is installed for it (scripts/setup.sh test)."""
import dataclasses
import pathlib
import re

from clang import cindex
from clang.cindex import AccessSpecifier, CursorKind

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE = ROOT / "include"
NAMESPACE = "tilewright"
TYPES = {CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE}
FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR,
             CursorKind.CONVERSION_FUNCTION}
VALUES = {CursorKind.ENUM_DECL, CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPEDEF_DECL, CursorKind.VAR_DECL, CursorKind.FIELD_DECL,
          CursorKind.TYPE_ALIAS_TEMPLATE_DECL, CursorKind.CONCEPT_DECL}
FORWARD = re.compile(r"template <.*>|(class|struct) \w+;")
SECTION = re.compile(r"\s*// --- (.*)")


@dataclasses.dataclass
class Declaration:
    name: str  # within its namespace: "Tensor::item"
    space: str  # "tilewright", "tilewright::tile"
    kind: str  # "type", "function", "value" or "macro"
    first: int  # its lines in its header
    last: int
    listed: str = ""  # the list that it comes from: "tilewright/ops/unary.def"
    arguments: tuple = ()  # of a function: ("x", "alpha = 1"), without the caller's line
    partial: bool = False  # a specialisation of a class template: its primary one is the type
    members: list = dataclasses.field(default_factory=list)

    @property
    def full_name(self):
        return f"{self.space}::{self.name}"


@dataclasses.dataclass
class Group:
    """Declarations that stand together, and what is said of them."""
    declarations: list
    doc: list  # lines, without slashes
    section: str = ""  # the one that it opens


@dataclasses.dataclass
class Header:
    path: str  # "tilewright/tensor/tensor.h"
    about: list  # what it says of itself
    lines: list
    declarations: list = dataclasses.field(default_factory=list)

    def groups(self, declarations):
        return list(groups_of(self.lines, declarations))


def is_comment(line):
    return line.lstrip().startswith("//")


def comment_above(lines, first):
    """The lines of the comment that ends directly above line `first`, by number; a class template may be declared between."""
    at = first - 1
    while at > 0 and FORWARD.fullmatch(lines[at - 1]):
        at -= 1
    end = at + 1
    while at > 0 and is_comment(lines[at - 1]):
        at -= 1
    return range(at + 1, end)


def groups_of(lines, declarations):
    """Declarations from the same place of a list, or on the same line, are always together."""
    group = None
    for each in sorted(declarations, key=lambda d: d.first):
        before = group.declarations[-1] if group else None
        above = comment_above(lines, each.first)
        doc = [lines[n - 1] for n in above]
        section = next((SECTION.match(line)[1] for line in doc if SECTION.match(line)), "")
        doc = [line.strip().removeprefix("//").removeprefix(" ") for line in doc if not SECTION.match(line)]
        follows = before and (each.first == before.first or
                              (not above and not each.listed and not before.listed and each.first == before.last + 1 and
                               each.kind == before.kind and (each.kind != "function" or before.first == before.last or before.name == each.name or
                                                             lines[before.last - 1].rstrip().endswith(";"))))
        if follows:
            group.declarations.append(each)
            continue
        if group:
            yield group
        group = Group([each], doc, section)
    if group:
        yield group


def arguments_of(cursor):
    """As a user writes them: names, with what they are where they are not given."""
    out = []
    for argument in cursor.get_arguments():
        if argument.type.spelling.endswith(("source_location &", "Location &")):
            continue
        tokens = [token.spelling for token in argument.get_tokens()]
        out.append(argument.spelling + (" = " + "".join(tokens[tokens.index("=") + 1:]) if "=" in tokens else ""))
    return tuple(out)


def is_exempt(cursor, lines, first, last):
    """What says nothing of its own: copies, moves and comparisons as the compiler makes them."""
    return re.search(r"= (default|delete);", "\n".join(lines[first - 1:last])) is not None


class Reader:
    def __init__(self):
        self.headers = {}
        for path in sorted(INCLUDE.rglob("*.h")) + sorted(INCLUDE.rglob("*.hpp")):
            name = str(path.relative_to(INCLUDE))
            lines = path.read_text().splitlines()
            end = next(n for n, line in enumerate(lines) if not is_comment(line))
            self.headers[name] = Header(name, [line.strip().removeprefix("//").removeprefix(" ") for line in lines[:end]], lines)

    def parse(self):
        source = "".join(f"#include <{name}>\n" for name in self.headers)
        cindex.Config.set_library_file("libclang-19.so.1")
        unit = cindex.Index.create().parse("all.cpp", args=["-std=c++20", f"-I{INCLUDE}"], unsaved_files=[("all.cpp", source)],
                                           options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [str(problem) for problem in unit.diagnostics if problem.severity >= cindex.Diagnostic.Error]
        if errors:
            raise SystemExit("public_api: the headers do not compile:\n" + "\n".join(errors))
        return unit

    def read(self):
        unit = self.parse()
        for cursor in unit.cursor.get_children():
            if cursor.kind == CursorKind.MACRO_DEFINITION and cursor.spelling.startswith("TILEWRIGHT_"):
                self.take_macro(cursor)
            elif cursor.kind == CursorKind.NAMESPACE and cursor.spelling == NAMESPACE:
                self.walk(cursor, NAMESPACE)
        return self.headers

    def place(self, cursor, at):
        """(header, first line, last line, list), or None for what is not ours. `at`: the header of the class that it is a member of."""
        file = pathlib.Path(cursor.extent.start.file.name) if cursor.extent.start.file else None
        if not file or not file.is_relative_to(INCLUDE):
            return None
        name = str(file.relative_to(INCLUDE))
        if name in self.headers:
            last = cursor.extent.end.line
            return self.headers[name], cursor.extent.start.line, last, ""
        # What stands in a list is where its header includes it.
        header = at or self.headers["tilewright/tensor/functions.h"]
        line = next(n for n, text in enumerate(header.lines, 1) if text == f"#include <{name}>")
        while header.lines[line - 2].startswith("#define") or header.lines[line - 2].startswith("  "):
            line -= 1  # the list's definitions belong to it, and the comment stands above them
        return header, line, line, name

    def take_macro(self, cursor):
        found = self.place(cursor, None)
        if found and not cursor.spelling.startswith("TILEWRIGHT_VERSION_"):
            header, first, last, _ = found
            header.declarations.append(Declaration(cursor.spelling, "", "macro", first, last))

    def walk(self, space, name):
        for cursor in space.get_children():
            if cursor.kind == CursorKind.NAMESPACE and cursor.spelling != "detail":
                self.walk(cursor, f"{name}::{cursor.spelling}")
            elif cursor.kind != CursorKind.NAMESPACE and (found := self.declaration(cursor, name, "", None)):
                found[0].declarations.append(found[1])

    def declaration(self, cursor, space, outer, at):
        partial = cursor.kind == CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION
        kind = ("type" if cursor.kind in TYPES or partial else "function" if cursor.kind in FUNCTIONS else
                "value" if cursor.kind in VALUES else None)
        made_by_macro = cursor.spelling.startswith("tilewright_")  # TILEWRIGHT_FIELDS
        if not kind or not cursor.spelling or made_by_macro or "(unnamed" in cursor.spelling or (kind == "type" and not cursor.is_definition()):
            return None
        found = self.place(cursor, at)
        if not found:
            return None
        header, first, last, listed = found
        if kind == "function" and not listed and is_exempt(cursor, header.lines, first, last):
            return None
        name = cursor.spelling.split("<")[0] if cursor.kind == CursorKind.CONSTRUCTOR else cursor.spelling
        out = Declaration(outer + name, space, kind, first, last, listed, partial=partial)
        if kind == "function":
            out.arguments = arguments_of(cursor)
        if kind == "type":
            for member in cursor.get_children():
                inside = member.access_specifier == AccessSpecifier.PUBLIC
                if inside and (made := self.declaration(member, space, f"{out.name}::", header)):
                    out.members.append(made[1])
        return header, out


def read_headers():
    """{path: Header}, by path."""
    return Reader().read()


MEANING = re.compile(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", re.MULTILINE)
LISTED = re.compile(r"^TW_(\w+)\((.*?)\)\s*(?://\s*(.*))?$", re.MULTILINE)


def meanings():
    """{a function from a list: what it does, in Markdown}: what docs/ops.md says of its op, with what the list says of the function."""
    ops = dict(MEANING.findall((ROOT / "docs/ops.md").read_text()))
    out = {}
    for file in sorted(INCLUDE.rglob("*.def")):
        for kind, inside, comment in LISTED.findall(file.read_text()):
            name, _, rest = inside.partition(", ")
            said = []
            if kind == "COMPOSITE":
                said.append(f"`{rest}`")
            elif kind == "COMPOSITE_OF":
                said.append(f"`{rest.split(', ', 2)[2]}`")
            elif name in ops:  # its operands are floats where the list makes them so
                said.append(ops[name].split("; of integers")[0].rstrip(".") + "." if "float_type" in rest else ops[name])
            if comment:
                said.append(comment[0].upper() + comment[1:] + ".")
            out[name] = " ".join(said)
    return out
