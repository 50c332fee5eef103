"""Hides secrets in the arguments of this process, which every user of the machine may read (`ps`, /proc/PID/cmdline).

Other users can read them until this has run, and the shell's history keeps them. The environment is a better place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from awoke.cli.output import say

SECRET_WORDS = ("password", "secret", "token", "key", "pem")
SECRET_PREFIXES = ("sasl.", "ssl.")
"""All properties with these prefixes are hidden: one whose name is misspelt has the same secret."""
USERINFO = re.compile(r"://[^/]*@")
ARG_START, ARG_END = 45, 46
"""Indexes of fields in /proc/PID/stat after the program's name: the numbers of proc(5) less three."""


def hide_secrets(properties: Mapping[str, str]) -> None:
    """Overwrites the values of secret properties in the arguments of this process; warns if that is impossible."""
    secrets = {name: value for name, value in properties.items() if value and is_secret(name, value)}
    if secrets and not _overwrite(secrets):
        names = ", ".join(secrets)
        say(f"warning: other users can see the arguments of this process, and so {names}: {ADVICE}", err=True)


ADVICE = "use the environment instead, as in AWOKE_KAFKA_SASL_PASSWORD"


def is_secret(name: str, value: str) -> bool:
    """Returns whether other users must not see a property's value. Needs no Kafka client: a supervisor has none."""
    known = name.lower()
    return (
        known.startswith(SECRET_PREFIXES) or any(word in known for word in SECRET_WORDS) or bool(USERINFO.search(value))
    )


def _overwrite(secrets: Mapping[str, str]) -> bool:
    """Overwrites `name=SECRET` at the end of an argument; returns false if the arguments can't be found (not Linux)."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[ARG_START]), int(fields[ARG_END])
    except (OSError, IndexError, ValueError):
        return False
    if not 0 < start < end:
        return False
    import ctypes  # Here, because secrets in arguments are rare.

    at = start
    for argument in ctypes.string_at(start, end - start).split(b"\0"):
        for name, value in secrets.items():
            secret = value.encode(errors="surrogateescape")
            if argument.endswith(name.encode(errors="surrogateescape") + b"=" + secret):
                ctypes.memset(at + len(argument) - len(secret), ord("*"), len(secret))
        at += len(argument) + 1
    return True
