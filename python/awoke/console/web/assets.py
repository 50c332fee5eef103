"""The style, the scripts and the pictures of the console, under names that change with their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.responses import PlainTextResponse, Response

STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


class Assets:
    """The files of a folder, read once. Those of others (`vendor`) may be missing: the pages work without them."""

    def __init__(self, folder: Path = STATIC) -> None:
        files = [each for each in sorted(folder.rglob("*")) if each.suffix in KINDS]
        self._content = {str(each.relative_to(folder)): each.read_bytes() for each in files}
        self._names = {name: hashed(name, content) for name, content in self._content.items()}
        self._by_name = {each: name for name, each in self._names.items()}

    def path(self, name: str) -> str | None:
        """Returns the path of a file, as in `/static/console.1f2e3d4c.css`; None where it is missing."""
        return f"/static/{self._names[name]}" if name in self._names else None

    def answer(self, name: str) -> Response:
        """Returns the content of a file by its hashed name."""
        found = self._by_name.get(name)
        if found is None:
            return PlainTextResponse("there is no such file\n", 404)
        kind = KINDS[Path(found).suffix]
        return Response(self._content[found], media_type=kind, headers={"Cache-Control": FOREVER})


def hashed(name: str, content: bytes) -> str:
    """Returns a name that changes with the content."""
    path = Path(name)
    digest = hashlib.blake2b(content, digest_size=4).hexdigest()
    return str(path.with_name(f"{path.stem}.{digest}{path.suffix}"))
