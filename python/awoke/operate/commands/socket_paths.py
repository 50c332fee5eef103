"""The paths of command sockets: that of an app in its folder, and those of the other apps of this user.

By default the path of a socket is made of the app's target and of the folder that it runs in, because another folder
with the same `module:app` is another app. Beside its socket, a process leaves a note that tells both to people, and a
name that lasts from one start to the next: see `note_at`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from awoke.errors import ConfigError
from awoke.operate.commands.socket_file import PATH_BYTES_MAX, check_folder, is_alive, judge_folder, own_folder_in
from awoke.text.printable import printable

NAME_MAX = 40
"""The most characters of a target in the name of a file."""
NOTE_BYTES_MAX = 8_192
OTHERS_MAX = 5
"""The most apps that an error names."""
USUAL_FOLDER = Path("/tmp")
RUNTIME_FOLDERS = Path("/run/user")


class SocketNote(msgspec.Struct, frozen=True):
    """What stands beside a socket about the app that listens there."""

    target: str
    """As in shop:app."""
    folder: str
    """The working directory of the app."""
    name: str
    """Tells this app in this folder apart from the same one on every other machine, container and volume."""


def socket_path(target: str) -> str:
    """Returns the path at which an app of this name, run in the working directory, listens by default.

    Raises:
        ConfigError: There is no folder for it.
    """
    file = _file_of(target)
    for folder in _folders():
        if len(os.fsencode(folder / file)) <= PATH_BYTES_MAX:
            return str(folder / file)
    raise ConfigError("there is no folder for the command socket: set XDG_RUNTIME_DIR, or pass --socket PATH", "socket")


def find_socket(target: str) -> str:
    """Returns the path at which the app of this name in the working directory listens, or would listen by default.

    The process may have been started by a service manager, whose runtime folder is not that of this shell.

    Raises:
        ConfigError: A folder with the user's own name is not safe.
    """
    file = _file_of(target)
    paths = []
    for folder in _folders():
        with contextlib.suppress(FileNotFoundError):
            judge_folder(folder)
            paths.append(folder / file)
    return str(next(filter(is_alive, paths), socket_path(target)))


def running_apps() -> list[tuple[SocketNote, str]]:
    """Returns the apps that listen in the folders that this user may read, each with the path of its socket."""
    folders = {*_folders(), *RUNTIME_FOLDERS.glob("*"), *USUAL_FOLDER.glob("awoke-*")}
    found = []
    for folder in sorted(folders):
        with contextlib.suppress(OSError):
            for path in sorted(folder.glob("awoke-*.sock")):
                note = _read(path)
                if note is not None and is_alive(path):
                    found.append((note, str(path)))
    return found


def others_text(target: str) -> str:
    """Returns a sentence on the apps that run elsewhere: those of this name, or else all; empty if there are none."""
    running = running_apps()
    shown = [each for each in running if each[0].target == target] or running
    if not shown:
        return ""
    texts = [f"{printable(note.target)} runs in {printable(note.folder)} (--socket {path})" for note, path in shown]
    more = f", and {len(texts) - OTHERS_MAX} more" if len(texts) > OTHERS_MAX else ""
    return "; ".join(texts[:OTHERS_MAX]) + more


def note_at(path: str, target: str) -> SocketNote:
    """Returns the note beside a socket, and writes it if the app at the path is another one, or new.

    The name in it is random. A name made of the host's is not enough for what must be unique in a cluster of brokers:
    containers, clones of a machine and hosts of two networks often have the same one, and would fence each other.

    Raises:
        ConfigError: The folder can't be used.
    """
    check_folder(Path(path).parent)
    earlier = _read(Path(path))
    if earlier is not None and (earlier.target, earlier.folder) == (target, os.getcwd()):
        return earlier
    note = SocketNote(target, os.getcwd(), secrets.token_hex(4))
    written = _note_path(Path(path))
    if is_alive(Path(path)):
        return note  # The note is that of the process which listens.
    with contextlib.suppress(OSError):  # The name then lasts as long as the process.
        draft = written.with_name(f"{written.name}.{os.getpid()}")
        draft.write_bytes(msgspec.json.encode(note))
        draft.replace(written)
    return note


def _read(path: Path) -> SocketNote | None:
    """Returns the note beside a socket, if there is one. Root also looks into folders of others, who may put a pipe."""
    try:
        descriptor = os.open(_note_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            data = file.read(NOTE_BYTES_MAX) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        return msgspec.json.decode(data, type=SocketNote)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _note_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.app")


def _file_of(target: str) -> str:
    """Returns the name of the socket of an app in the working directory."""
    shown = re.sub(r"[^A-Za-z0-9_.-]", "-", target)[:NAME_MAX]
    place = f"{target}\0{os.path.realpath(os.getcwd())}"
    return f"awoke-{shown}-{hashlib.blake2b(os.fsencode(place), digest_size=4).hexdigest()}.sock"


def _folders() -> Iterator[Path]:
    """Gives the folders in which this user's sockets may be, the best one first."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and _is_own(Path(given)):
        yield Path(given)
    with contextlib.suppress(FileNotFoundError):  # Neither TMPDIR nor /tmp, /var/tmp and so on can be written.
        yield from {own_folder_in(each): None for each in (Path(tempfile.gettempdir()), USUAL_FOLDER)}


def _is_own(folder: Path) -> bool:
    """Returns whether only this user writes to a folder. After `su`, XDG_RUNTIME_DIR may be that of another user."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
