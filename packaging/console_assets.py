"""Fetches the scripts of others that the web console uses, with their licences: `python packaging/console_assets.py`.

They come from npm, are compared with the checksums below, and are not committed. The pages work without them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
VENDOR = REPOSITORY / "python" / "awoke" / "console" / "web" / "static" / "vendor"

SCRIPTS = {
    "uplot@1.6.32": (
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "dist/uPlot.iife.min.js": "uPlot.iife.min.js",
            "dist/uPlot.min.css": "uPlot.min.css",
            "LICENSE": "uPlot.LICENSE.txt",
        },
    ),
}
"""The checksum (SHA-512) of each package, and its files with their names here."""
AXE = {
    "axe-core@4.14.1": (
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        {"axe.min.js": "axe.min.js"},
    )
}
"""For the tests of the console in a browser. It goes to target/, and never into a wheel."""


class WrongChecksum(Exception):
    """A package is not the one that was pinned."""


def fetch(packages: dict[str, tuple[str, dict[str, str]]], folder: Path) -> None:
    """Writes the files of the packages into a folder, unless they are there. Blocks."""
    for package, (checksum, files) in packages.items():
        if all((folder / name).exists() for name in files.values()):
            continue
        content = packed(package)
        found = base64.b64encode(hashlib.sha512(content).digest()).decode()
        if found != checksum:
            raise WrongChecksum(f"{package} has the checksum {found}, and not {checksum}")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for inside, name in files.items():
                member = archive.extractfile(f"package/{inside}")
                assert member is not None
                (folder / name).write_bytes(member.read())


def packed(package: str) -> bytes:
    """Returns a package as npm's archive."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", package, "--pack-destination", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        (found,) = Path(folder).glob("*.tgz")
        return found.read_bytes()


def main() -> int:
    """Fetches the scripts; the exit code, 0 also where npm is missing: the pages work plainly then."""
    try:
        fetch(SCRIPTS, VENDOR)
        if "--axe" in sys.argv:
            fetch(AXE, REPOSITORY / "target" / "console")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the console gets no charts, for npm could not be asked: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
