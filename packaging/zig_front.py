"""The C compiler, linker and archiver of wheels: puts zig behind the names and arguments that the builds expect.

`toolchain.py` makes one launcher a tool. Zig brings the C library's headers and symbols of the version that is asked
for. So a wheel that is built on a new distribution runs on old ones.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable

NOWHERE = '"/nonexistent"'
SETTINGS = "AWOKE_ZIG"
"""The environment variable with the settings, in JSON: `zig`, `flags` and `libgcc`."""

UNKNOWN_TO_ZIG = ("--target=", "-Wl,--no-undefined-version")
"""Openings of arguments that zig refuses. The target is in `flags`, with the version of the C library."""

LENIENT = ("-Wl,--undefined-version",)
"""librdkafka's list of exported names has one that it does not define."""

PLACES_OF_OPENSSL = ("-DENGINESDIR=", "-DMODULESDIR=")
"""Folders that OpenSSL would load libraries from. It loads none, and their names would hold the path of the build."""


def arguments(given: Iterable[str], flags: Iterable[str], libgcc: str) -> list[str]:
    """Returns the arguments of zig for those of a compiler or linker.

    A library must unwind with the process's own libgcc. Zig would link a second unwinder into it, and two unwinders do
    not understand one another's frames: so the library's file stands in the place of `-lgcc_s`.
    """
    given = [part for each in given for part in apart(each)]
    is_library = "-shared" in given
    found = []
    for each in given:
        if each.startswith(UNKNOWN_TO_ZIG):
            continue
        name = next((place for place in PLACES_OF_OPENSSL if each.startswith(place)), None)
        if name is not None:
            found.append(name + NOWHERE)
        else:
            found.append(libgcc if is_library and each == "-lgcc_s" else each)
    return [*found, *flags, *(LENIENT if is_library else ())]


def apart(argument: str) -> list[str]:
    """Returns the parts of a linker's argument with an archive in it: zig takes archives as its own arguments only."""
    if not argument.startswith("-Wl,") or ".a" not in argument:
        return [argument]
    parts = argument.removeprefix("-Wl,").split(",")
    return [part if part.endswith(".a") else f"-Wl,{part}" for part in parts]


def main() -> None:
    """Runs one of zig's tools in the place of this process."""
    settings = json.loads(os.environ[SETTINGS])
    tool, *given = sys.argv[1:]
    if tool in ("cc", "c++"):
        given = arguments(given, settings["flags"], settings["libgcc"])
    os.execv(settings["zig"], [settings["zig"], tool, *given])


if __name__ == "__main__":
    main()
