"""The versions of awoke and of the libraries in its native module, and how the module was built."""

from __future__ import annotations

import platform
import sysconfig
from datetime import UTC, datetime

import awoke


def line() -> str:
    """Returns the versions of awoke, librdkafka, OpenSSL and Python in one line."""
    from awoke._native import library_versions

    of = dict(library_versions())
    return (
        f"awoke {awoke.__version__} (librdkafka {of['librdkafka']}, OpenSSL {of['OpenSSL']}, "
        f"Python {platform.python_version()})"
    )


def rows() -> list[tuple[str, str]]:
    """Returns all versions, and how the native module was built, each with its name."""
    from awoke._native import library_versions

    return [
        ("awoke", awoke.__version__),
        *library_versions(),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("platform", f"{sysconfig.get_platform()} ({platform.platform()})"),
        ("wheel", wheel_tag() or "(not installed from a wheel)"),
        ("build", build()),
    ]


def wheel_tag() -> str | None:
    """Returns the tag of the wheel that awoke was installed from; `None` if it was not installed."""
    import importlib.metadata  # Here, because it is slow to load, and only this needs it.

    try:
        text = importlib.metadata.distribution("awoke").read_text("WHEEL") or ""
    except importlib.metadata.PackageNotFoundError:
        return None
    tags = [value.strip() for name, _, value in (row.partition(":") for row in text.splitlines()) if name == "Tag"]
    return ", ".join(tags) or None


def build() -> str:
    """Returns how the native module was built: profile, target, and where the build was told, commit and date."""
    from awoke._native import build_facts

    of = dict(build_facts())
    date = None if of["time"] is None else datetime.fromtimestamp(int(of["time"]), UTC).date().isoformat()
    said = [f"profile {of['profile']}", str(of["target"])]
    said += [f"{name} {value}" for name, value in (("commit", of["commit"]), ("of", date)) if value]
    return ", ".join(said)
