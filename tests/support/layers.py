"""The floor plan of the package: its layers, its rooms, and the arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.support.python_syntax import imports_of

LAYERS = [
    {"_native", "errors", "waiting", "text", "preconditions"},
    {"settings", "observe"},
    {"payloads", "produce", "admin"},
    {"declare", "state"},
    {"rpc"},
    {"operate", "runtime"},
    {"console", "app", "swarm", "testing"},
    {"cli", "asgi", "fastapi", "django", "__main__"},
]
"""From the ground up: a module imports from its own layer and from those before it. ARCHITECTURE.md shows them."""

NO_ROOMS = {"awoke", "_native", "__main__"}
"""The package itself, the extension, and the way in by `python -m`."""


def room_of(module: str) -> str:
    """Returns the room of a module: `observe` for `awoke.observe.events.bus`."""
    return module.removeprefix("awoke.").split(".")[0]


def layer_of(module: str) -> int:
    """Returns the number of a module's layer."""
    return next(number for number, names in enumerate(LAYERS) if room_of(module) in names)


def rooms(modules: Iterable[str]) -> dict[str, set[str]]:
    """Returns each room with the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for module in modules:
        imported = {room_of(other) for other in imports_of(module)} - NO_ROOMS
        found.setdefault(room_of(module), set()).update(imported - {room_of(module)})
    return {room: others for room, others in found.items() if room not in NO_ROOMS}


def floors(arrows: Mapping[str, set[str]]) -> dict[str, int]:
    """Returns the floor of each room: 1 on the ground, else one above the highest room that it imports."""
    found: dict[str, int] = {}

    def floor(room: str, below: tuple[str, ...]) -> int:
        if room not in found:
            others = [floor(other, (*below, room)) for other in arrows[room] if other not in below]
            found[room] = 1 + max(others, default=0)
        return found[room]

    for room in arrows:
        floor(room, ())
    return found


def upward(modules: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the imports from a lower layer of a higher one."""
    return [
        (module, other)
        for module in modules
        if module != "awoke"
        for other in sorted(imports_of(module))
        if layer_of(other) > layer_of(module)
    ]
