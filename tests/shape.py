"""The shape of the code in numbers, each with its goal: `make shape` prints them, and a unit test keeps those met.

It reads the tree only, and runs nothing. What `python -m bench` and `make models` measure is not in it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support import layers, python_syntax, rust_syntax
from tests.support.python_syntax import MODULES, REPOSITORY, tree_of

SMALL_FILE_LINES = 100
TESTS = REPOSITORY / "tests"
CHANGING = REPOSITORY / "docs" / "internals" / "changing.md"
COUNT = re.compile(
    r"^## (?P<what>.+)\n\nCount: \*?(?P<count>[^.*]+)\*?\. Goal: (?:at most )?(?P<goal>\d+)\.", re.MULTILINE
)
"""A section of the page: an addition, and the files that it touches."""
KNOWN_POLLS = {
    "python/awoke/admin/topics.py": "Kafka has no request that waits for a topic",
    "python/awoke/runtime/process/topic_watch.py": "Kafka has no request that waits for a topic",
    "python/awoke/cli/swarm.py": "a supervisor answers a command once: `awoke reload` shows its steps meanwhile",
    "crates/engine/src/consume/group_member/starts.rs": "a failed look-up of a start is tried again after a pause",
}
"""Files of the product with a poll that has a reason: docs/internals/limits.md."""


@dataclass(frozen=True)
class Measure:
    """A number, its goal, and the places that it counts."""

    name: str
    value: int | None
    goal: int
    places: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Tells whether the value is known and not above the goal."""
        return self.value is not None and self.value <= self.goal


@functools.cache
def measures() -> tuple[Measure, ...]:
    """Returns all of them, in the order of the table. They are read once."""
    return (*plan(), *changes(), *walls(), *pieces(), *sizes(), *habits())


def plan() -> list[Measure]:
    """Returns the numbers of the floor plan: rooms at the top of the package, floors, and arrows between rooms.

    A room stands above all rooms that it imports. An arrow is an import of one room by another, however often.
    """
    rooms = layers.rooms(MODULES)
    beyond = layers.upward(MODULES)
    return [
        counted("rooms at the top of python/awoke", sorted(rooms), 22),
        Measure("floors", max(layers.floors(rooms).values()), 14),
        Measure("arrows between rooms", sum(map(len, rooms.values())), 152),
        Measure("layers", len(layers.LAYERS), 8),
        counted("imports that point upward", (f"{module} imports {other}" for module, other in beyond), 0),
    ]


def changes() -> list[Measure]:
    """Returns the numbers of files that a change touches, as docs/internals/changing.md has counted them."""
    found = COUNT.finditer(CHANGING.read_text())
    return [Measure(f"files: {each['what'].lower()}", first_number(each["count"]), int(each["goal"])) for each in found]


def first_number(text: str) -> int | None:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else None


def walls() -> list[Measure]:
    """Returns what stands between the parts: imports in circles, librdkafka beyond its crate, models that build it."""
    circles = python_syntax.circles({module: python_syntax.imports_of(module) for module in MODULES})
    crates = {file.parent.name: file.read_text() for file in sorted((REPOSITORY / "crates").glob("*/Cargo.toml"))}
    return [
        counted(
            "circles of imports, lazy and type-only ones included", (" ".join(sorted(each)) for each in circles), 0
        ),
        counted(
            "Rust files outside crates/kafka that name librdkafka's symbols", in_rust(rust_syntax.FFI, is_outside), 0
        ),
        counted(
            "crates with models that build librdkafka", (name for name, text in crates.items() if is_slow(text)), 0
        ),
    ]


def is_outside(file: Path) -> bool:
    """Tells whether a file is not in crates/kafka."""
    return "kafka" not in file.relative_to(rust_syntax.CRATES).parts[:1]


def is_slow(manifest: str) -> bool:
    """Tells whether a crate has models, and depends on librdkafka also without its feature of that name."""
    has_models = re.search(r"^model = ", manifest, re.MULTILINE) is not None
    needs_client = re.search(r"^(rdkafka-sys|awoke-kafka)\b", manifest, re.MULTILINE) is not None
    can_do_without = re.search(r'^librdkafka = \[.*"awoke-kafka/librdkafka"', manifest, re.MULTILINE) is not None
    return has_models and needs_client and not can_do_without


def pieces() -> list[Measure]:
    """Returns what is too small, has two meanings, or reaches into others."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for imported in python_syntax.imports_of(module):
            importers[imported].add(module)
    fragments = (
        f"{place(file)} ({lines_of(file)}), of {min(importers[module])}"
        for module, file in MODULES.items()
        if len(importers[module]) == 1 and lines_of(file) < SMALL_FILE_LINES and file.stem != "__init__"
    )
    classes = (file for module, file in MODULES.items() if ".management." not in module)  # Django names those.
    names = Counter(name for file in classes for name in python_syntax.classes_of(tree_of(file)))
    return [
        counted("modules with one importer and under 100 lines", fragments, 15),
        counted("class names with two meanings", (name for name, count in sorted(names.items()) if count > 1), 0),
        counted("uses of private attributes of other objects", in_python(python_syntax.foreign_privates)[0], 0),
    ]


def sizes() -> list[Measure]:
    """Returns the lines of the Python half and of its tests."""
    tests = (file for file in TESTS.rglob("*.py"))
    return [
        Measure("lines of Python of the product", sum(map(lines_of, MODULES.values())), 52_000),
        Measure("lines of tests", sum(map(lines_of, tests)), 78_000),
    ]


def habits() -> list[Measure]:
    """Returns the constructs that the product does without."""
    waits, rounds, twins, counts, sleeps = in_python(
        python_syntax.disguised_sleeps,
        python_syntax.polling_lines,
        python_syntax.twins,
        reference_counts,
        python_syntax.sleeping_lines,
    )
    polls = [*waits, *rounds, *in_rust(rust_syntax.POLL)]
    return [
        counted("sync/async twins with logic", twins, 0),
        counted("uses of getrefcount", counts, 0),
        counted("sleeps", [*sleeps, *in_rust(rust_syntax.SLEEP)], 0),
        counted("polls without a known reason", (each for each in polls if each.split(":")[0] not in KNOWN_POLLS), 0),
    ]


def reference_counts(tree: ast.Module) -> list[int]:
    """Returns the lines that count references."""
    nodes = python_syntax.nodes_of(tree)
    names = ((node.lineno, node.attr) for node in nodes if isinstance(node, ast.Attribute))
    bare = ((node.lineno, node.id) for node in nodes if isinstance(node, ast.Name))
    return [line for line, name in [*names, *bare] if name == "getrefcount"]


def in_python(*searches: Callable[[ast.Module], Iterable[object]]) -> list[list[str]]:
    """Returns what each search finds in the package's modules, with file and line or name. Each file is read once."""
    found: list[list[str]] = [[] for _ in searches]
    for file in MODULES.values():
        tree = tree_of(file)
        for places, find in zip(found, searches, strict=True):
            places += [f"{place(file)}:{each}" for each in find(tree)]
    return found


def in_rust(pattern: re.Pattern[str], is_asked: Callable[[Path], bool] | None = None) -> list[str]:
    """Returns the product's Rust files whose code holds a pattern, each with the first line."""
    files = [file for file in rust_syntax.product_files() if is_asked is None or is_asked(file)]
    found = ((file, rust_syntax.lines_with(pattern, file.read_text())) for file in files)
    return [f"{place(file)}:{lines[0]}" for file, lines in found if lines]


def counted(name: str, places: Iterable[str], goal: int) -> Measure:
    """Returns a measure that counts places."""
    found = tuple(places)
    return Measure(name, len(found), goal, found)


def place(file: Path) -> str:
    return str(file.relative_to(REPOSITORY))


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines())


def table() -> str:
    """Returns the measures as text: name, value, goal, ok or not, and the places of those that are not met."""
    lines = [f"{'measure':<68}{'value':>7}{'goal':>7}"]
    for each in measures():
        value = "?" if each.value is None else each.value
        lines.append(f"{each.name:<68}{value:>7}{each.goal:>7}  {'ok' if each.is_met else 'NOT YET'}")
        lines += [] if each.is_met else [f"    {found}" for found in each.places]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
