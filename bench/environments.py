"""Python environments of their own for rivals whose dependencies contradict each other, under `.venvs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.harness import REPOSITORY


def python_with(name: str, *requirements: str) -> Path:
    """Returns the interpreter of an environment with these packages, which is made if it is not there.

    The interpreter that runs now where nothing is required.
    """
    if not requirements:
        return Path(sys.executable)
    folder = REPOSITORY / ".venvs" / name
    python, stamp, wanted = folder / "bin" / "python", folder / "requirements", "\n".join(requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), "-m", "pip", "install", *quiet, *requirements], check=True)
        stamp.write_text(wanted)
    return python
