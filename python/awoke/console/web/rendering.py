"""Writes view models as HTML: all text is escaped, its control characters shown. Keeps the files that pages load."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.responses import PlainTextResponse, Response

from awoke.text.durations import duration
from awoke.text.printable import harmless
from awoke.waiting.clock import wall_ms

TEMPLATES = Path(__file__).parent / "templates"
FIRST = ("parts.html", "frame.html", "overview.html")
"""The templates of the first page."""
UNITS = ("B", "kB", "MB", "GB", "TB")
STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


def environment() -> jinja2.Environment:
    """Returns the environment of all templates."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        number=number,
        bytes=size,
        duration_ms=duration_ms,
        ago=ago,
        age=age,
        until=until,
        counted=counted,
        segment=segment,
        clock=clock,
        iso=iso,
    )
    found.globals.update(points=points)
    return found


def prepare(templates: jinja2.Environment) -> None:
    """Compiles the templates of the first page, which would wait for it."""
    for each in FIRST:
        templates.get_template(each)


def visible(value: Any) -> Any:
    """Returns text of others with its control characters made visible; None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, str) and not isinstance(value, Markup):
        return harmless(value, keep="\n\t")
    return value


def number(value: float | None) -> str:
    """Returns a number with thin spaces between its thousands."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:,.1f}"
    return text.replace(",", "\u202f")


def size(value: float | None) -> str:
    """Returns a number of bytes with its unit."""
    if value is None:
        return "–"
    step = 0
    while value >= 1_000 and step < len(UNITS) - 1:
        value, step = value / 1_000, step + 1
    return f"{value:.0f} {UNITS[step]}" if value >= 10 or step == 0 else f"{value:.1f} {UNITS[step]}"


def duration_ms(value_ms: float | None) -> str:
    """Returns a duration with its largest fitting unit."""
    return "–" if value_ms is None else duration(value_ms / 1_000)


def ago(at_ms: int | None) -> str:
    """Returns how long ago a moment was."""
    if at_ms is None:
        return "–"
    past_ms = wall_ms() - at_ms
    return f"{duration_ms(past_ms)} ago" if past_ms >= 1_000 else "now"


def age(at_ms: int | None) -> str:
    """Returns the time since a moment."""
    return "–" if at_ms is None else duration_ms(wall_ms() - at_ms)


def counted(count: float, noun: str, plural: str = "s") -> str:
    """Returns a number with its noun, which has the ending of the plural unless there is one."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}{plural}"


def until(at_ms: int | None) -> str:
    """Returns how far away a moment is."""
    if at_ms is None:
        return "–"
    left_ms = at_ms - wall_ms()
    return f"in {duration_ms(left_ms)}" if left_ms > 0 else "now"


def clock(at_ms: int | None) -> str:
    """Returns a moment in UTC, for people."""
    return "–" if at_ms is None else _utc(at_ms).strftime("%Y-%m-%d %H:%M:%S")


def iso(at_ms: int | None) -> str:
    """Returns a moment in UTC, for programs."""
    return "" if at_ms is None else _utc(at_ms).isoformat(timespec="milliseconds")


def _utc(at_ms: int) -> datetime.datetime:
    least, most = 0, 253_402_300_799_000
    return datetime.datetime.fromtimestamp(min(most, max(least, at_ms)) / 1_000, datetime.UTC)


def segment(value: object) -> str:
    """Returns text as one segment of a path."""
    return quote(str(value), safe="", errors="surrogatepass")


def points(values: list[float], width: int = 160, height: int = 32) -> str:
    """Returns the points of a line through values, the first on the left."""
    if len(values) < 2:
        values = [*values, *values] or [0.0, 0.0]
    top = max(values) or 1.0
    step = width / (len(values) - 1)
    return " ".join(f"{at * step:.1f},{height - 1 - value / top * (height - 2):.1f}" for at, value in enumerate(values))


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
