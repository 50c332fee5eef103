"""The shape of Rust code, read by a small lexer: code without comments and strings, product without tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.language import RUST_TOKEN, end_of_block

CRATES = Path(__file__).resolve().parents[2] / "crates"
TEST_MODULE = re.compile(r"#\[cfg\([^\]]*\btest\b[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod \w+ \{")
SLEEP = re.compile(r"\b(?:sleep|sleep_ms|park_timeout|yield_now|spin_loop)\s*\(")
POLL = re.compile(r"\bpark_until\(\s*&Deadline::after\(\s*Some\(\s*[A-Z][A-Z_]*\s*\)")
FFI = re.compile(r"\b(?:rdkafka_sys\b|rd_kafka_\w+|RD_KAFKA_\w+|kafka::(?:ffi\b|\{[^}]*\bffi\b))")


def code_of(source: str) -> str:
    """Returns Rust code with blanks in place of its comments, strings and characters; lines stay where they are."""
    parts, position = list[str](), 0
    while found := RUST_TOKEN.search(source, position):
        end = end_of_block(source, found.start()) if found["block"] else found.end()
        parts += [source[position : found.start()], re.sub(r"[^\n]", " ", source[found.start() : end])]
        position = end
    return "".join([*parts, source[position:]])


def without_tests(code: str) -> str:
    """Returns code with blanks in place of the modules that are built for tests only."""
    while found := TEST_MODULE.search(code):
        end = end_of_braces(code, found.end() - 1)
        code = code[: found.start()] + re.sub(r"[^\n]", " ", code[found.start() : end]) + code[end:]
    return code


def end_of_braces(code: str, start: int) -> int:
    """Returns where the block ends whose opening brace is at `start`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def product_files() -> list[Path]:
    """Returns the Rust files of the product: neither tests nor models."""
    files = sorted(CRATES.glob("*/src/**/*.rs"))
    return [file for file in files if not {"tests", "tests.rs", "models.rs", "fuzzing.rs"} & set(file.parts)]


def lines_with(pattern: re.Pattern[str], source: str) -> list[int]:
    """Returns the lines of the product's code that hold a pattern: not those of tests, comments and strings."""
    code = without_tests(code_of(source))
    return [code.count("\n", 0, found.start()) + 1 for found in pattern.finditer(code)]
