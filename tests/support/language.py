"""The checkable part of the wording rules: widths and banned words.

Comments and docstrings are found by syntax: `ast` and a small lexer for Python, another lexer for Rust, fences,
tables and code spans for Markdown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROSE_WIDTH = 100
CODE_WIDTH = 120
BANNED = re.compile(
    r"\b(whoever|whomever|carr(?:y|ies|ied|ying) out|so many|so long|stands? in line|passed over"
    r"|somebody|everybody|anybody|nobody(?! there))\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|\*“?[^*]*”?\*(?= \(F\. Kafka)")


class Text(NamedTuple):
    """A piece of prose in a file: a comment, a docstring, or a paragraph."""

    line: int
    text: str
    is_doc: bool


def markdown_texts(source: str) -> Iterator[Text]:
    """Yields the paragraphs of a Markdown file: neither its fenced code nor its quotations (`>`)."""
    paragraph: list[str] = []
    is_code = False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        is_fence = re.match(r"\s*(```|~~~)", line) is not None
        if is_fence or is_code or not line.strip() or line.startswith(">"):
            if paragraph:
                yield Text(number - len(paragraph), " ".join(paragraph), False)
            paragraph = []
        else:
            paragraph.append(line.strip())
        is_code ^= is_fence


def python_texts(source: str) -> Iterator[Text]:
    """Yields the comments and the docstrings of a Python file, of attributes too."""
    for found in PYTHON_TOKEN.finditer(source) if "#" in source else ():
        if found["comment"]:
            yield Text(source.count("\n", 0, found.start()) + 1, found["comment"].lstrip("#! "), False)
    for node in statements_of(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(node.lineno, node.value.value.strip(), True)


PYTHON_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n]*)
    | \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} # a string of several lines, a raw one too
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE | re.DOTALL,
)


def statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements within a node, those of its blocks too."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, name, ()) if not isinstance(node, (ast.Lambda, ast.IfExp)) else ():
            yield each
            yield from statements_of(each)


RUST_TOKEN = re.compile(
    r"""
      (?P<line>//[^\n]*)
    | (?P<block>/\*)
    | b?r(?P<hashes>\#*)"(?s:.*?)"(?P=hashes)       # a raw string
    | b?"(?:\\.|[^"\\])*"                           # a string
    | b?'(?:\\(?:u\{[0-9a-fA-F_]+\}|x..|.)|[^'\\])' # a character; what else begins with ' is a lifetime
    """,
    re.VERBOSE | re.DOTALL,
)


def rust_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yields the comments of a Rust file with their lines; strings and characters hold none."""
    position = 0
    while found := RUST_TOKEN.search(source, position):
        position = found.end()
        if found["line"]:
            yield source.count("\n", 0, found.start()) + 1, found["line"]
        elif found["block"]:
            position = end_of_block(source, found.start())
            yield source.count("\n", 0, found.start()) + 1, source[found.start() : position]


def end_of_block(source: str, start: int) -> int:
    """Returns where the block comment ends that starts there: they nest in Rust."""
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(source, start):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(source)


def rust_texts(source: str) -> Iterator[Text]:
    """Yields the comments of a Rust file; lines that follow each other are one text."""
    first, last, marker, lines = 0, -1, "", list[str]()
    for line, comment in rust_comments(source):
        this = next((known for known in ("//!", "///", "//", "/*") if comment.startswith(known)), "")
        if lines and (line != last + 1 or this != marker):
            yield Text(first, " ".join(lines), marker in ("//!", "///"))
            lines = []
        first, last, marker = (line if not lines else first), line, this
        lines.append(comment.removeprefix(this).strip())
    if lines:
        yield Text(first, " ".join(lines), marker in ("//!", "///"))


def widths(file: Path, source: str) -> Iterator[str]:
    """Yields the lines that are too long: prose of Markdown over 100 columns, code over 120."""
    is_markdown, is_code = file.suffix == ".md", False
    for number, line in enumerate(source.splitlines(), 1):
        is_code ^= re.match(r"\s*(```|~~~)", line) is not None
        is_free = is_markdown and not is_code and (line.startswith("|") or " " not in line.strip())
        limit = PROSE_WIDTH if is_markdown and not is_code else CODE_WIDTH
        if len(line) > limit and not is_free:
            yield f"{number}: {len(line)} columns, at most {limit}"


READERS = {".md": markdown_texts, ".py": python_texts, ".pyi": python_texts, ".rs": rust_texts}


def faults(file: Path, source: str) -> list[str]:
    """Returns the faults of a file, each with its line."""
    found = list(widths(file, source))
    for text in READERS[file.suffix](source):
        found += [f"{text.line}: {word[0]!r}" for word in BANNED.finditer(QUOTED.sub("", text.text))]
    return found
