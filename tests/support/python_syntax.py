"""The shape of Python code, read from its syntax: imports and their circles, sleeps, polling loops, twins."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "awoke"
STATEMENTS_OF_A_TWIN = 3
"""A function with more statements than this has logic of its own, and is no mere delegation."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_of(file: Path) -> str:
    """Returns the dotted name of a file of the package."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def tree_of(file: Path) -> ast.Module:
    """Returns the syntax tree of a file."""
    return ast.parse(file.read_text())


@functools.lru_cache(maxsize=1)
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """Returns all nodes of a tree. Several searches of one tree, one after the other, share a walk."""
    return list(ast.walk(tree))


@functools.cache
def imports_of(module: str) -> set[str]:
    """Returns awoke's modules that one imports: anywhere in its file, also in functions and for types only."""
    file = MODULES[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    found = {name for node in nodes_of(tree_of(file)) for name in names_in(node, package)}
    return {name for name in found if name in MODULES and name not in (module, "awoke")}


def names_in(node: ast.AST, package: str) -> list[str]:
    """Returns the modules that a statement may name, in each of the forms of import."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*parents, *([node.module] if node.module else [])])
    deeper = [f"{base}.{each.name}" for each in node.names]
    return [name if name in MODULES else base for name in deeper]


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Returns the groups of modules that reach one another by imports."""
    reached = {module: reachable(graph, module) for module in graph}
    groups = {frozenset(other for other in reached[each] if each in reached[other]) for each in graph}
    return {group for group in groups if group}


def reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Returns the modules that one imports, directly or by others."""
    found: set[str] = set()
    ahead = set(graph[start])
    while ahead:
        module = ahead.pop()
        found.add(module)
        ahead |= graph[module] - found
    return found


def sleeping_lines(tree: ast.Module) -> list[int]:
    """Returns the lines that use `time.sleep`, or `asyncio.sleep` with a fixed time, as a poll does."""
    found = []
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "asyncio"):
            found += [node.lineno for each in node.names if each.name == "sleep"]
        if isinstance(node, ast.Attribute) and node.attr == "sleep" and ast.unparse(node) == "time.sleep":
            found.append(node.lineno)
        if isinstance(node, ast.Call) and is_sleep(node.func) and ast.unparse(node.func) == "asyncio.sleep":
            is_timer = bool(node.args) and not isinstance(node.args[0], ast.Constant)
            found += [] if is_timer else [node.lineno]
    return found


def is_sleep(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "sleep"


def disguised_sleeps(tree: ast.Module) -> list[int]:
    """Returns the lines that wait on an event that can not be set: a new one, or a variable that is only waited on."""
    if not any(is_new_event(node) for node in nodes_of(tree)):
        return []
    found = {node.lineno for node in nodes_of(tree) if is_wait(node) and is_new_event(node.value)}
    for scope in nodes_of(tree):
        if isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            found |= {line for name in events_of(scope) for line in lines_only_waited(scope, name)}
    return sorted(found)


def is_wait(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "wait"


def is_new_event(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return (isinstance(function, ast.Attribute) and function.attr == "Event") or (
        isinstance(function, ast.Name) and function.id == "Event"
    )


def events_of(scope: ast.AST) -> set[str]:
    """Returns the variables of a scope that hold a new event, one of several in a line too."""
    found = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = zip(elements(target), elements(node.value), strict=False)
                found |= {one.id for one, value in pairs if isinstance(one, ast.Name) and is_new_event(value)}
    return found


def elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def lines_only_waited(scope: ast.AST, name: str) -> set[int]:
    """Returns the lines that use a variable, if each of them waits on it; none otherwise."""
    waited = {id(node.value) for node in ast.walk(scope) if isinstance(node, ast.Attribute) and node.attr == "wait"}
    uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
    uses = [node for node in uses if isinstance(node.ctx, ast.Load)]
    return {node.lineno for node in uses} if all(id(node) in waited for node in uses) else set()


def polling_lines(tree: ast.Module) -> list[int]:
    """Returns the lines of loops that wait for a fixed time in each round, as a poll does."""
    loops = [node for node in nodes_of(tree) if isinstance(node, ast.While)]
    calls = {node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call) and is_wait(node.func)}
    return sorted(node.lineno for node in calls if node.args and is_fixed(node.args[0]))


def is_fixed(node: ast.expr) -> bool:
    """Tells whether an argument is a number or a constant by its name."""
    is_constant = isinstance(node, ast.Name) and node.id.isupper()
    return is_constant or (isinstance(node, ast.Constant) and isinstance(node.value, (int, float)))


def twins(tree: ast.Module) -> list[str]:
    """Returns the functions with logic that a class or a module has for threads and again for event loops."""
    found = []
    for scope in nodes_of(tree):
        if isinstance(scope, (ast.Module, ast.ClassDef)):
            functions = {node.name: node for node in scope.body if isinstance(node, Function)}
            pairs = [(each, functions.get(other)) for each in functions.values() for other in twin_names(each.name)]
            found += [each.name for each, other in pairs if other is not None and are_twins(each, other)]
    return sorted(found)


def twin_names(name: str) -> Iterator[str]:
    """Yields the names that the twin of a function for event loops has by habit."""
    bare = name.lstrip("_")
    for twin in (f"a{bare}", f"async_{bare}", f"{bare}_async"):
        yield "_" * (len(name) - len(bare)) + twin


def are_twins(blocking: Function, other: Function) -> bool:
    is_pair = isinstance(blocking, ast.FunctionDef) and isinstance(other, ast.AsyncFunctionDef)
    return is_pair and min(statements_of(blocking), statements_of(other)) > STATEMENTS_OF_A_TWIN


def statements_of(function: Function) -> int:
    """Returns the number of statements of a function, nested ones too, without its docstring."""
    own = sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1
    return own - (ast.get_docstring(function) is not None)


def exported_names(trees: Iterable[ast.Module]) -> set[str]:
    """Returns the names in the `__all__` of these modules."""
    found = set()
    for node in (node for tree in trees for node in tree.body):
        is_list = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if is_list and isinstance(node, ast.Assign):
            found |= {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
    return {name for name in found if isinstance(name, str)}


def classes_of(tree: ast.Module) -> list[str]:
    """Returns the names of the classes of a module that do not begin with an underscore, nested ones left out."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
"""Public, in spite of their names."""


def foreign_privates(tree: ast.Module) -> list[str]:
    """Returns the uses of private attributes that no class of the module has, of objects other than `self`."""
    own = OF_NAMED_TUPLES.union(name for node in nodes_of(tree) for name in names_set_by(node))
    found = []
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr) and node.attr not in own:
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os", "sys")
            is_parent = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            found += [] if is_own or is_parent else [f"{node.lineno} {ast.unparse(node)}"]
    return found


def names_set_by(node: ast.AST) -> list[str]:
    """Returns the name that a statement defines, or the attribute of `self` that it sets."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name]
    return []
