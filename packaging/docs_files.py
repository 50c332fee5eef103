"""Makes `docs/internals/files.md` from the first sentence of each file: `python packaging/docs_files.py` writes it."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "internals" / "files.md"
FOLDERS = ("crates/wake", "crates/kafka", "crates/embedded", "crates/engine", "crates/bridge", "python/awoke")
WIDTH = 100
INTRODUCTION = """# Files: one line each

```
wake ◀─ kafka, embedded ◀─ engine ◀─ bridge ◀─ python/awoke      (an arrow points to the layer below)
```

**If you are about to change** where something lives: a folder is a room with one subject, a file is
one idea, and imports point downward. `tests/unit/test_structure.py` has the layers of the Python
half. This page is made from the first sentence of each file (`python packaging/docs_files.py`), so
say there what a file is for. [Consuming](consume.md), [producing](produce.md), [RPC](rpc.md) and
the [swarm](swarm.md) have pages that explain how their files work together.
"""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Returns the page: a table for each folder, in the order of the layers."""
    parts = [INTRODUCTION]
    for top in FOLDERS:
        rooms: dict[Path, list[Path]] = defaultdict(list)
        for file in sorted((REPOSITORY / top).rglob("*")):
            if is_source(file):
                rooms[file.parent].append(file)
        parts += [section(room, files) for room, files in sorted(rooms.items())]
    return "\n".join(parts)


def is_source(file: Path) -> bool:
    """Tells whether a file is code of the product with a first sentence of its own."""
    parts = file.relative_to(REPOSITORY).parts
    is_code = file.suffix in (".py", ".rs", ".c") and (parts[0] == "python" or "src" in parts)
    return is_code and "migrations" not in parts and not is_test(file)


def is_test(file: Path) -> bool:
    """Tells whether a file of Rust has tests or models only."""
    return file.suffix == ".rs" and (file.stem == "tests" or "tests" in file.parts or "models" in file.parts)


def section(room: Path, files: list[Path]) -> str:
    """Returns the heading of a folder, what it is, and a row for each of its files."""
    name = str(room.relative_to(REPOSITORY)).replace("/src", "")
    about, rows = "", []
    for file in files:
        sentence = first_sentence(file)
        if file.name in ("__init__.py", "mod.rs", "lib.rs"):
            about = f"\n{textwrap.fill(sentence, WIDTH)}\n"
        elif sentence:
            rows.append(f"| `{file.stem if file.suffix != '.c' else file.name}` | {sentence} |\n")
    table = f"\n| File | Content |\n|---|---|\n{''.join(rows)}" if rows else ""
    return f"## `{name}`\n{about}{table}"


def first_sentence(file: Path) -> str:
    """Returns the first sentence of a file's own documentation, on one line. Empty where it has none."""
    text = documentation(file)
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    sentence = re.match(r".*?[.:](?=\s+[A-Z*`]|$)", paragraph)
    return (sentence[0] if sentence else paragraph).removesuffix(":").replace("|", "\\|")


def documentation(file: Path) -> str:
    """Returns the text that opens a file: a docstring, `//!` lines, or the first comment of C."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return ast.get_docstring(ast.parse(source)) or ""
    if file.suffix == ".rs":
        lines = re.match(r"(?://![^\n]*\n)*", source)
        return "\n".join(line.removeprefix("//!").strip() for line in lines[0].splitlines()) if lines else ""
    comment = re.match(r"\s*/\*(.*?)\*/|((?://[^\n]*\n)+)", source, re.DOTALL)
    return re.sub(r"(?m)^\s*(?:\*|//)\s?", "", comment[1] or comment[2]) if comment else ""


if __name__ == "__main__":
    main()
