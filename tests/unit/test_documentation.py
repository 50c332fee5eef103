"""README, guides and internals: programs run, tables agree with the code, links lead somewhere."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import docs_files
from bench.testing.questions import QUESTIONS

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
"""A program, and the output that is shown below it, if any."""
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
PROGRAMS = [(page, *found) for page in PAGES for found in BLOCK.findall(page.read_text()) if "import awoke" in found[0]]


@pytest.mark.parametrize(("page", "code", "output"), PROGRAMS, ids=[page.name for page, *_ in PROGRAMS])
def test_a_program_in_the_documentation_runs_and_prints_its_output(
    page: Path, code: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": "documentation"})
    assert not output or capsys.readouterr().out == output


def test_there_are_programs() -> None:
    assert {page.name for page, *_ in PROGRAMS} >= {"README.md", "testing.md"}


def test_every_setting_is_documented() -> None:
    from awoke.settings import RunSettings, Settings

    text = (REPOSITORY / "docs" / "settings.md").read_text()
    assert [
        name
        for name in (*Settings.__struct_fields__, *RunSettings.__struct_fields__)
        if name != "kafka" and f"`{name}`" not in text
    ] == []


def test_every_exit_code_is_documented() -> None:
    from awoke.text import exit_codes

    text = (REPOSITORY / "docs" / "swarm.md").read_text()
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert documented == sorted(value for name, value in vars(exit_codes).items() if name.startswith("EXIT_"))


INTERNALS = sorted((REPOSITORY / "docs" / "internals").glob("*.md"))
PROSE = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]


def test_the_architecture_has_two_pages() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= 130


@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: page.name)
def test_a_page_of_the_internals_opens_with_a_diagram_and_a_warning(page: Path) -> None:
    assert re.match(r"# .+\n\n```\n(?:.*\n)+?```\n\n\*\*If you are about to change\b", page.read_text())


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(("name", "least"), [("internals/invariants.md", 60), ("guarantees.md", 30)])
def test_the_tests_of_the_promises_exist(name: str, least: int) -> None:
    """Each name in the last column of the tables is a file of tests, or a test in Python or Rust."""
    page = (REPOSITORY / "docs" / name).read_text()
    column = "\n".join(line.split(" | ")[2] for line in page.splitlines() if line.count(" | ") == 2)
    files = [*(REPOSITORY / "tests").rglob("*.py"), *(REPOSITORY / "crates").glob("*/*/**/*.rs")]
    text = "\n".join(file.read_text() for file in files)
    existing = {file.name for file in files} | set(re.findall(r"\b(?:fn|def) ([a-z0-9_]+)", text))
    names = re.findall(r"`(?:[a-z_]+/)*([a-z0-9_]+\.(?:py|rs)|[a-z0-9_]{12,})`", column)
    assert len(names) > least
    assert sorted(set(names) - existing) == []


def thread_names() -> set[str]:
    """Returns the names of the threads that the Python package starts, without their numbers."""
    found = set()
    for file in (REPOSITORY / "python" / "awoke").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            for keyword in node.keywords if isinstance(node, ast.Call) else []:
                value = keyword.value.values[0] if isinstance(keyword.value, ast.JoinedStr) else keyword.value
                if keyword.arg == "name" and isinstance(value, ast.Constant) and str(value.value).startswith("awoke-"):
                    found.add(str(value.value))
    for file in (REPOSITORY / "crates").glob("*/src/**/*.rs"):
        found.update(re.findall(r"\.name\((?:format!\()?\"(awoke-[a-z-]+)", file.read_text()))
    return found


def test_every_thread_is_documented() -> None:
    page = (REPOSITORY / "docs" / "internals" / "threads_and_locks.md").read_text()
    names = thread_names()
    assert len(names) > 15
    assert sorted(name for name in names if f"`{name}" not in page) == []


@functools.cache
def sources() -> dict[Path, str]:
    """Returns the texts of all files of code. Read once, and not by each worker that collects the tests."""
    return {
        file: file.read_text()
        for folder in ("crates", "python", "tests", "bench", "packaging")
        for file in sorted((REPOSITORY / folder).rglob("*"))
        if file.suffix in (".py", ".pyi", ".rs", ".c") and "target" not in file.relative_to(REPOSITORY).parts
    }


@functools.cache
def places() -> set[str]:
    """Returns files, with and without their endings, and folders."""
    files = {file.relative_to(REPOSITORY) for file in sources()}
    return {str(place).replace("/src/", "/") for file in files for place in (file, file.with_suffix(""), *file.parents)}


def members_of_python(source: str, module: str) -> set[str]:
    """Returns `Class.member` and `module.name` of a file, attributes included."""
    found: set[str] = set()

    def look(node: ast.AST, owners: tuple[str, ...]) -> None:
        match node:
            case ast.ClassDef(name=name):
                found.update(f"{owner}.{name}" for owner in (*owners, name))
                owners = (*owners, name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.update(f"{owner}.{name}" for owner in owners)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.update(f"{owner}.{name}" for owner in owners)
        for child in ast.iter_child_nodes(node):
            look(child, owners)

    look(ast.parse(source), (module,))
    return found


RUST_OWNER = re.compile(r"(?:pub(?:\(.*?\))? )?(?:unsafe )?(?:impl|trait|enum|struct)\b(?:<.*?>)? (?:.* for )?(\w+)")
RUST_FUNCTION = re.compile(r'\s*(?:pub(?:\(.*?\))? )?(?:(?:const|unsafe|extern "C") )*fn (\w+)')
RUST_FIELD = re.compile(r"    (?:pub(?:\(.*?\))? )?(\w+)\b")


def members_of_rust(source: str, module: str) -> set[str]:
    """Returns `Type::function`, `Type::field`, `Enum::Variant` and `module::function` of a file."""
    found, owner = set(), module
    for line in source.splitlines():
        if item := RUST_OWNER.match(line):
            owner = item[1]
        elif function := RUST_FUNCTION.match(line):
            found.add(f"{owner if line[0] == ' ' else module}::{function[1]}")
        elif field := RUST_FIELD.match(line):
            found.add(f"{owner}::{field[1]}")
    return found


@functools.cache
def members() -> set[str]:
    found: set[str] = set()
    for file, source in sources().items():
        if file.suffix in (".py", ".pyi"):
            found |= members_of_python(source, file.stem)
        for module in {file.stem, file.parent.name} if file.suffix == ".rs" else ():
            found |= members_of_rust(source, module)
    return found


@functools.cache
def words(pattern: str) -> set[str]:
    return {word for source in sources().values() for word in re.findall(pattern, source)}


def is_place(name: str) -> bool:
    """Tells if a file or folder of the code has this path or ends with it; `*` stands for any letters."""
    pattern = re.compile("(?:.*/)?" + ".*".join(map(re.escape, name.strip("/").split("*"))))
    return (REPOSITORY / name.replace("*", "")).exists() or any(map(pattern.fullmatch, places()))


def exists(name: str) -> bool:
    """Tells if the code has what a page of the internals names; words that are no names of code count as there."""
    plain = name.partition("(")[0].partition(" ")[0]
    is_path = "/" in plain or plain.endswith((".py", ".pyi", ".rs", ".c"))
    if is_path and re.fullmatch(r"\w[\w.*]*(?:/[\w.*]+)*/?", plain):
        return is_place(plain.replace("/src/", "/"))
    if re.fullmatch(r"\w+::\w+|_?[A-Z]\w*\.\w+|_\w+\.\w+", plain):
        return plain in members()
    if re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)+", plain):
        return plain in members() or plain in words(r"[a-z_]+(?:\.[a-z_]+)+")
    return plain in words(r"\w+") or re.fullmatch(r"_?[a-z]+(?:_[a-z]+)+|(?:[A-Z][a-z]+){2,}", plain) is None


WRITTEN = [REPOSITORY / "ARCHITECTURE.md", *(page for page in INTERNALS if page != docs_files.PAGE)]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_what_the_internals_name_exists(page: Path) -> None:
    assert len(members()) > 5_000
    assert sorted({name for name in re.findall(r"`([^`\n]+)`", page.read_text()) if not exists(name)}) == []


@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: page.name)
def test_the_files_in_the_tables_exist(page: Path) -> None:
    """The first column of a table of files has names of files and folders only."""
    tables = re.findall(r"^\| (?:File|Place|Module)\b.*\n\|[-|]+\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE)
    first = [row.split("|")[1] for table in tables for row in table.splitlines()]
    names = {name for cell in first for name in re.findall("`(.+?)`", cell)}
    assert sorted(name for name in names if not is_place(name)) == []


def test_the_page_of_the_files_is_made_from_the_files() -> None:
    assert docs_files.PAGE.read_text() == docs_files.page(), "python packaging/docs_files.py writes it"


FIGURE = re.compile(r"\d[\d.,]* ?(?:M/s|k/s|/s|ms|µs)(?!\w)")


def test_the_figures_of_the_readme_are_in_the_measurements() -> None:
    table = re.search(r"^\| What you get \|.*\n((?:\|.*\n)+)", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    assert table is not None
    figures = FIGURE.findall(table[1])
    assert len(figures) > 10
    measured = set(FIGURE.findall((REPOSITORY / "bench" / "README.md").read_text()))
    assert [figure for figure in figures if figure not in measured] == []


TOOLS = {"awoke": "awoke_tests.py", "FastStream": "faststream_tests.py", "Temporal": "temporal_tests.py"}


def test_each_answer_about_test_tools_has_its_test() -> None:
    """A *yes* in the table of bench/README.md is a test of that tool; a tool that can't has no such test."""
    folder = REPOSITORY / "bench" / "testing"
    table = re.search(r"^\| Question \|.*\n\|[-|]+\n((?:\|.*\n)+)", (REPOSITORY / "bench/README.md").read_text(), re.M)
    assert table is not None
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]
    assert [row[0] for row in rows] == list(QUESTIONS.values())
    for number, file in enumerate(TOOLS.values(), 1):
        tests = set(re.findall(r"^(?:async )?def test_(\w+)\(", (folder / file).read_text(), re.MULTILINE))
        yes = {name for name, row in zip(QUESTIONS, rows, strict=True) if row[number] == "yes"}
        assert tests == yes, file
