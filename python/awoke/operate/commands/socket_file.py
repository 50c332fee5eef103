"""The UNIX socket for commands: for this user only, never taken from a running process, removed at the end."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import weakref
from pathlib import Path

from awoke.errors import ConfigError
from awoke.observe.web.listener import QUEUE_MAX, ROOT, peer_uid

OWN_MODE = 0o700
PATH_BYTES_MAX = 107
"""The longest path of a socket in Linux, without the byte that ends it."""
CONNECT_WITHIN_S = 1.0
"""The wait for a full queue of connections: a process with such a queue runs, too."""


def own_folder_in(folder: Path) -> Path:
    """Returns the user's own folder for sockets, inside a folder for temporary files."""
    return folder / f"awoke-{os.getuid()}"


class SocketTaken(ConfigError):
    """A running process listens there."""


class SocketFile:
    """A listening UNIX socket at a path."""

    def __init__(self, path: str) -> None:
        """Listens at the path. Replaces a file that a killed process has left.

        Raises:
            SocketTaken: A running process listens there.
            ConfigError: Another file is there, or the folder is not safe or can't be used.
        """
        self._path = Path(path)
        check_folder(self._path.parent)
        try:
            self.listening = _listen(self._path)
        except OSError as error:
            raise ConfigError(f"can't listen at {path}: {error.strerror or error}", "socket") from None
        self._identity = _identity(self._path)
        _opened.add(self)

    def remove(self) -> None:
        """Removes the file, unless another process has replaced it. To be called before the socket is closed."""
        with contextlib.suppress(OSError):
            if _identity(self._path) == self._identity:
                self._path.unlink()


_opened: weakref.WeakSet[SocketFile] = weakref.WeakSet()


def _close_in_child() -> None:
    """Closes the sockets in a forked child: one that outlives this process must not seem to be it."""
    for each in list(_opened):
        each.listening.close()


os.register_at_fork(after_in_child=_close_in_child)


def check_folder(folder: Path) -> None:
    """Creates the folder with mode 0700 if there is none; checks that an existing one is safe from other users.

    Raises:
        ConfigError: It belongs to another user, other users may replace its files, or it can't be created.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        judge_folder(folder)
    except OSError as error:
        raise ConfigError(
            f"can't use the folder {folder}: {error.strerror or error}; say --socket PATH", "socket"
        ) from None


def judge_folder(folder: Path) -> None:
    """Checks that a folder is safe from other users.

    Raises:
        ConfigError: It belongs to another user, or other users may replace its files.
        OSError: Its owner and mode can't be read.
    """
    owners, mode = {folder.lstat().st_uid, folder.stat().st_uid}, folder.stat().st_mode
    is_safe = owners == {os.getuid()} and stat.S_IMODE(mode) == OWN_MODE and not folder.is_symlink()
    if folder == own_folder_in(folder.parent) and not is_safe:
        # Its name is known, and every user may make it first.
        raise ConfigError(
            f"the folder {folder} must be this user's, with mode 700: remove it, or say --socket PATH", "socket"
        )
    if not owners <= {0, os.getuid()}:
        raise ConfigError(f"the folder {folder} belongs to another user: say --socket PATH", "socket")
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        raise ConfigError(
            f"other users may write to the folder {folder}: chmod it to 700, or say --socket PATH", "socket"
        )


def check_peer(connection: socket.socket, path: Path) -> None:
    """Checks that the listening process is this user's or root's. Root may also ask those of the folder's owner.

    Raises:
        ConfigError: The listening process belongs to another user.
    """
    uid, own = peer_uid(connection), os.getuid()
    if uid not in (own, ROOT) and not (own == ROOT and uid == path.parent.stat().st_uid):
        raise ConfigError(f"the process at {path} is another user's (uid {uid}): it is not asked", "socket")


def _listen(path: Path) -> socket.socket:
    """Listens under a temporary name first: under the known name, a socket that does not listen yet looks dead."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:  # The system would say so to clients only.
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own = path.parent / f".{os.getpid()}.{listening.fileno()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            own.unlink()  # A killed process of this number has left it.
        listening.bind(str(own))
        own.chmod(0o600)  # Before `listen`: until then no process can connect, whatever the mode.
        listening.listen(QUEUE_MAX)
        _publish(own, path)
    except BaseException:
        listening.close()
        raise
    finally:
        with contextlib.suppress(OSError):
            own.unlink()
    return listening


def _publish(own: Path, path: Path) -> None:
    """Gives the socket its known name, unless a running process has that."""
    try:
        os.link(own, path)
    except FileExistsError:
        if _is_other_file(path):
            raise ConfigError(f"{path} is there and no socket: say --socket PATH", "socket") from None
        if is_alive(path):
            text = f"another swarm listens at {path}, or another process of the app: stop it, or say --socket PATH"
            raise SocketTaken(text, "socket") from None
        own.replace(path)


def _is_other_file(path: Path) -> bool:
    """Returns whether another file than a socket is there. A process that ends may remove its socket meanwhile."""
    try:
        return not stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def is_alive(path: Path) -> bool:
    """Returns whether a process listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.settimeout(CONNECT_WITHIN_S)
        try:
            other.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # Its queue of connections is full, or it is another user's.
    return True


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
