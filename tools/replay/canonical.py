"""The canonical form of a printed text: comments and layout gone, and what the text itself declares renamed in the order in which it
is declared. Two texts with one canonical form are the same but for names. Names that a text uses without declaring them (functions
and types of the device headers, members, keywords) stay as they are, and so does whatever is not surely a declaration: a
renaming may then be shown as a difference, but never a difference taken for a renaming."""
import re

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:[\w.']|(?<=[eEpP])[+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>->|::|\+\+|--|<<=?|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|\S)
  | (?P<newline>\n)
""", re.VERBOSE | re.MULTILINE | re.DOTALL)

BUILT_IN = set("void char bool int float double short long signed unsigned auto".split())
# A word after one of these is no declared name, and these are none themselves.
STATEMENT = set("return else case goto new delete throw sizeof operator not and or do co_return".split())
KEYWORDS = BUILT_IN | STATEMENT | set(
    "const constexpr volatile static extern inline struct class enum union namespace using typedef template typename if for while "
    "switch break continue default true false nullptr this static_cast reinterpret_cast const_cast alignas alignof asm __asm__ "
    "__restrict__ __restrict __global__ __device__ __host__ __shared__ __constant__ __forceinline__ __grid_constant__ "
    "__launch_bounds__ __cluster_dims__ __attribute__ __volatile__ __builtin_expect".split())
# A keyword that stands directly before a declared name; before others stands a type: __shared__ Ring<4> ring.
INTRODUCES = BUILT_IN | {"struct", "class", "enum", "using", "typename"}
QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict", "*", "&", "&&"}
# Types of the device headers: f32, vi64, u32; Vec, Block, TensorMap.
TYPE_NAME = re.compile(r"(v?[fiu](8|16|32|64)|v?bf16|v?f8e4m3|v?f8e5m2|vmask|(u?(char|short|int)|float)[124]|[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)$")


def tokens_of(text):
    """(kind, text, line) without comments and ends of lines; the two > of nested templates apart."""
    out, line = [], 0
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup, match.group()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += word.count("\n")
        else:
            out.append((kind, word.strip(), line))
    return out


class Scopes:
    """Which canonical name a declared one has where."""

    def __init__(self):
        self.blocks, self.pending, self.count = [{}], {}, 0

    def declare(self, name, in_parentheses):
        self.count += 1
        canonical = f"${self.count}"
        # What parentheses declare, of a loop or of a function, belongs to the block behind them.
        (self.pending if in_parentheses else self.blocks[-1])[name] = canonical
        return canonical

    def find(self, name):
        for scope in [self.pending, *reversed(self.blocks)]:
            if name in scope:
                return scope[name]
        return None

    def open(self):
        self.blocks.append(self.pending)
        self.pending = {}

    def close(self):
        if len(self.blocks) > 1:
            self.blocks.pop()


def ends_type(tokens, at, scopes):
    """Whether the tokens up to `at` (a word or >) surely name a type: one that is known, and no variable of the text."""
    kind, word, _ = tokens[at]
    if kind == "word":
        if at > 0 and tokens[at - 1][1] in (".", "->"):
            return False
        return word in BUILT_IN or (bool(TYPE_NAME.match(word)) and scopes.find(word) is None)
    if word != ">":
        return False
    depth = 0
    for i in range(at, -1, -1):
        sign = tokens[i][1]
        if sign == ">":
            depth += 1
        elif sign == "<":
            depth -= 1
            if depth == 0:
                return i > 0 and tokens[i - 1][0] == "word" and ends_type(tokens, i - 1, scopes)
        elif sign in (";", "{", "}", "&&", "||"):
            return False
    return False


def opens_attribute(tokens, at):
    """Whether the parenthesis that ends at `at` is an attribute's, which parts a kernel's name from its type."""
    while at > 0 and tokens[at][1] != "(":
        at -= 1
    return at > 0 and tokens[at - 1][1] in ("__launch_bounds__", "__cluster_dims__")


def declares(tokens, at, scopes):
    """Whether the word at `at` is a name that is declared here, seen from what stands before it."""
    if at == 0 or tokens[at][1] in KEYWORDS:
        return False
    i = at - 1
    if tokens[i][1] == ")":
        return opens_attribute(tokens, i)
    if tokens[i][0] == "word" and tokens[i][1] not in QUALIFIERS:
        # Without a sign between nothing but a type stands before a name, or a keyword.
        return tokens[i][1] in INTRODUCES or tokens[i][1] not in KEYWORDS
    while i > 0 and tokens[i][1] in QUALIFIERS:
        i -= 1
    return tokens[i][1] not in QUALIFIERS and ends_type(tokens, i, scopes)


def following(tokens, at):
    return tokens[at + 1][1] if at + 1 < len(tokens) else ""


def renamed(tokens):
    """The tokens with declared names canonical, as (text, line)."""
    scopes, out = Scopes(), []
    depth, parentheses = 0, 0
    declaring = None  # the depth of the declaration that the present statement is
    binding = False   # inside the brackets of auto [a, b]
    for at, (kind, word, line) in enumerate(tokens):
        text = word
        before = tokens[at - 1][1] if at else ""
        if kind == "sign":
            if word in "([{":
                depth += 1
                parentheses += word == "("
                binding = word == "[" and before in ("auto", "&") and "auto" in [t[1] for t in tokens[max(0, at - 2):at]]
            elif word in ")]}":
                depth -= 1
                parentheses -= word == ")"
                binding = False
            if word == "{":
                scopes.open()
            elif word == "}":
                scopes.close()
            if word in ";{}":
                declaring = None
                if word == ";" and parentheses == 0:
                    scopes.pending = {}
        elif kind == "word" and before not in (".", "->", "::") and word not in KEYWORDS:
            # f32 a = 1, b = 2: the second name has no type before it.
            another = before == "," and declaring == depth and following(tokens, at) in ("=", ";", "[")
            if declares(tokens, at, scopes) or another or binding:
                if not another and following(tokens, at) != "(" and before != "using":
                    declaring = depth
                text = scopes.declare(word, in_parentheses=parentheses > 0)
            else:
                text = scopes.find(word) or word
        out.append((text, line))
    return out


def lines_of_source(text):
    """(canonical line, number of the line in the text) of C++ or CUDA C++, without those that hold nothing but comments."""
    out = []
    for word, line in renamed(tokens_of(text)):
        if not out or line != out[-1][1]:
            out.append(([], line))
        out[-1][0].append(word)
    return [(" ".join(words), line) for words, line in out]


TILE_NAME = re.compile(r"[%@][A-Za-z_0-9.$]+")


def lines_of_tile(text):
    """The same of tile IR and of graphs: values (%) and kernels (@) renamed in the order in which they appear."""
    names = {}

    def canonical(match):
        return names.setdefault(match.group(), f"{match.group()[0]}${len(names) + 1}")

    # The number of a value that has a name (%row#22) is a name, too.
    return [(" ".join(TILE_NAME.sub(canonical, re.sub(r"(?<=[\w.$])#\d+", "", line.split("//")[0])).split()), number) for number, line in enumerate(text.splitlines())
            if line.split("//")[0].strip()]


def canonical_lines(text, kind):
    return lines_of_source(text) if kind in ("cpp", "cu") else lines_of_tile(text)


def form(text, kind):
    """What two texts are compared by. Where lines break does not count, but a directive has a line of its own."""
    lines = [line for line, _ in canonical_lines(text, kind)]
    return " ".join(f"\n{line}\n" if line.startswith("#") else line for line in lines)
