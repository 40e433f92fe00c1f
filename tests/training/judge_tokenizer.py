#!/usr/bin/env python3
"""Hugging Face's tokenizers and OpenAI's tiktoken judge ours: vocabularies are trained here, written in both forms, and a megabyte of
mixed text (scripts, emoji with joiners, numbers, white space, CRLF, broken UTF-8) must become the same tokens, special ones as well.

Usage: tests/training/judge_tokenizer.py ENCODE_TEXT [--bytes N] [--vocabulary N] [--seed N] [--keep FOLDER]"""
import argparse
import base64
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache/tokenizers"))  # scripts/setup.sh test
sys.path.insert(0, str(ROOT / "tests/judge"))
from draws import draws
try:
    import tiktoken
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError as error:
    sys.exit(f"judge_tokenizer: {error}; scripts/setup.sh test installs it")

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
# As their files have them: GPT-2, Llama 3 and GPT-4, GPT-4o, as of tiktoken 0.14 and of the tokenizer.json of Llama 3.
PATTERNS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    "o200k": "|".join([
        rf"""[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{CONTRACTIONS}?""",
        rf"""[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{CONTRACTIONS}?""",
        r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""]),
}
LLAMA3 = CONTRACTIONS + r"""|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""

# The first and last letters of ranges that Unicode has had since version 14, which PCRE2 10.42 knows.
SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x556), (0x5D0, 0x5EA), (0x620, 0x64A),
           (0x660, 0x669), (0x904, 0x939), (0x93E, 0x94D), (0x966, 0x96F), (0xE01, 0xE3A), (0x10D0, 0x10FA), (0x1100, 0x1112), (0x1E00, 0x1EFF),
           (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1D400, 0x1D454), (0x20000, 0x20100), (0x2160, 0x2188)]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u180e", "\u200b", "\ufeff", "\x0b", "\x0c", "\x1c"]
EMOJI = ["👩‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "🇩🇪", "❤️", "e\u0301", "n\u0303\u0323", "👨🏿‍💻", "☃", "①", "²", "½", "٣", "Ⅷ", "߷"]
MARKS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["…", "—", "«", "。", "''", "//", "...\n", "/\n", "€", "√"]
TAILS = ["'s", "'S", "'ll", "'LL", "'re", "'\u017f", "'t", "'d", "'ve", "'x", "’s"]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\x80\x80", b"\xf8\x88\x80\x80\x80",
          b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xed\xbf\xbf", b"\xe2\x28\xa1"]
SPECIAL = ["<|endoftext|>", "<|end|>", "<|fim|>"]  # none begins with another: which of the two tiktoken takes is left open there


def mixed_text(draw, size, english):
    """Bytes: pieces of every kind, in random order."""
    out, length = [], 0
    while length < size:
        kind = draw.randrange(11)
        if kind < 2:
            at = draw.randrange(len(english) - 400)
            part = english[at:at + draw.randrange(400)]
        elif kind < 4:
            low, high = draw.choice(SCRIPTS)
            part = "".join(chr(draw.randint(low, high)) for _ in range(draw.randrange(1, 12)))
        elif kind == 4:
            part = "".join(draw.choice(SPACES) for _ in range(draw.randrange(1, 6)))
        elif kind == 5:
            part = draw.choice(EMOJI) * draw.randrange(1, 4)
        elif kind == 6:
            part = str(draw.randrange(10 ** draw.randrange(1, 12)))
        elif kind == 7:
            part = "".join(draw.choice(MARKS) for _ in range(draw.randrange(1, 5)))
        elif kind == 8:
            part = draw.choice(TAILS) + draw.choice(["", " ", "Ab", "ab"])
        elif kind == 9:
            part = draw.choice(SPECIAL + ["<|endo"]) if draw.randrange(4) == 0 else draw.choice(["a", " ", "\n", "=", "の"]) * draw.randrange(40)
        else:
            part = None
        data = draw.choice(BROKEN) if part is None else part.encode()
        out.append(data)
        length += len(data)
    return b"".join(out)


def train(pre_tokenizer, texts, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=["<|endoftext|>"],
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<|fim|>", special=False, normalized=True)])
    return tokenizer


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": True} | options)


def split_by(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior="isolated") for p in patterns] + [byte_level(use_regex=False)])


def letters():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def tiktoken_ranks(tokenizer):
    """The vocabulary by merges: bytes first, then what each merge makes, as tiktoken ranks it."""
    model = json.loads(tokenizer.to_str())["model"]
    byte_of = letters()
    ranks = {bytes([b]): b for b in range(256)}
    for merge in model["merges"]:
        token = bytes(byte_of[c] for c in "".join(merge))
        ranks.setdefault(token, len(ranks))
    return ranks


class Judge:
    def __init__(self, encode_text, folder):
        self.encode_text, self.folder, self.failed = encode_text, folder, False

    def ours(self, tokenizer, text, *options):
        (self.folder / "text").write_bytes(text)
        subprocess.run([self.encode_text, tokenizer, *options, self.folder / "text", self.folder / "tokens"], check=True)
        data = (self.folder / "tokens").read_bytes()
        return memoryview(data).cast("i").tolist(), (self.folder / "tokens.text").read_bytes()

    def compare(self, name, ours, theirs, text):
        tokens, back = ours
        if tokens == theirs and back == text.encode():
            print(f"{name}: {len(theirs)} tokens are the same")
            return
        self.failed = True
        if tokens == theirs:
            print(f"{name}: decoded, the tokens give another text")
            return
        at = next((i for i, (a, b) in enumerate(zip(tokens, theirs)) if a != b), min(len(tokens), len(theirs)))
        print(f"{name}: token {at} of {len(tokens)} and {len(theirs)}: ours {tokens[at:at + 6]}, theirs {theirs[at:at + 6]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("encode_text")
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--vocabulary", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    english = (ROOT / "lab/data/tinyshakespeare.txt").read_text()
    draw = random.Random(arguments.seed)
    learned = [english, mixed_text(draw, 300_000, english).decode(errors="replace")]
    data = mixed_text(draw, draws(arguments.bytes), english)
    text = data.decode(errors="replace")
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or pathlib.Path(name)
        judge = Judge(arguments.encode_text, folder)
        kinds = {"gpt2": byte_level(), "gpt2-space": byte_level(add_prefix_space=True), "llama3": split_by(LLAMA3), "o200k": split_by(PATTERNS["o200k"]),
                 "three-splits": split_by(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
                 "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])}
        for kind, pre_tokenizer in kinds.items():
            theirs = train(pre_tokenizer, learned, arguments.vocabulary)
            for ignore_merges in (False, True) if kind == "llama3" else (False,):
                path = folder / f"{kind}.json"
                written = json.loads(theirs.to_str())
                written["model"]["ignore_merges"] = ignore_merges
                path.write_text(json.dumps(written, ensure_ascii=draw.random() < 0.5))
                theirs = Tokenizer.from_file(str(path))
                for as_tokens in (False, True):
                    theirs.encode_special_tokens = not as_tokens
                    wanted = theirs.encode(text, add_special_tokens=False).ids
                    spaced = " " if kind == "gpt2-space" and not text.startswith((" ", *SPECIAL)) else ""
                    got, back = judge.ours(path, data, *["--as-tokens"] * as_tokens)
                    # A space in front of each text between added tokens is not given back.
                    back = text.encode() if kind == "gpt2-space" else back
                    judge.compare(f"tokenizers {kind}{' ignore_merges' * ignore_merges}{' special' * as_tokens}", (got, back), wanted, text)
            if kind not in ("gpt2", "llama3"):
                continue
            ranks = tiktoken_ranks(theirs)
            path = folder / f"{kind}.tiktoken"
            path.write_text("".join(f"{base64.b64encode(t).decode()} {r}\n" for t, r in ranks.items()))
            special = {t: len(ranks) + 5 + i for i, t in enumerate(SPECIAL)}
            for pattern, expression in PATTERNS.items():
                encoding = tiktoken.Encoding(kind, pat_str=expression, mergeable_ranks=ranks, special_tokens=special)
                options = [o for t, n in special.items() for o in ("--special", f"{t}={n}")]
                given = pattern if kind == "gpt2" else expression
                judge.compare(f"tiktoken {kind} {pattern}", judge.ours(path, data, "--pattern", given, *options), encoding.encode_ordinary(text), text)
                judge.compare(f"tiktoken {kind} {pattern} special", judge.ours(path, data, "--pattern", pattern, "--as-tokens", *options),
                              encoding.encode(text, allowed_special="all"), text)
    sys.exit(judge.failed)


main()
