"""The paths of the UNIX sockets on which awoke's processes take commands."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path


def own_folder() -> Path:
    """Returns the user's own folder for sockets, inside the system's folder for temporary files."""
    return Path(tempfile.gettempdir()) / f"awoke-{os.getuid()}"


def socket_path(name: str) -> str:
    """Returns the default path of the socket for this target and user."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or own_folder())
    return str(folder / f"awoke-{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}.sock")
