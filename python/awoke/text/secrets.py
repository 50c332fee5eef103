"""Keeps secrets out of output, logs and errors: values of secret settings, and user and password in addresses."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "[secret]"
"""Shown in the place of a secret."""

SECRET_WORDS = ("secret", "pass", "token", "key", "pem", "pwd", "credential", "jaas")
"""A setting whose name contains one of these is secret."""
SECRET_NAMES = frozenset({"sasl.username", "sasl.oauthbearer.config", "registry_headers"})
"""Properties that librdkafka itself marks as secret (`_RK_SENSITIVE`), and headers, which may carry logins."""
OPEN_NAMES = frozenset({"sasl.oauthbearer.token.endpoint.url"})
MISSPELT_WORDS = ("secret", "password", "passphrase", "token", "username")
SIMILARITY_MIN = 0.8
"""A part of a name that is at least this similar to one of these words is that word, misspelt (`difflib`'s ratio)."""

_URL = re.compile(
    r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)
    (?: [^\s/?\#'"@]{0,1000} | [^\s/?\#'"@:]{0,256} : (?!\d+(?:[/?\#]|$)) [^\s'"]{0,1000} ) @""",
    re.VERBOSE,
)
"""A URL up to its host. The password may have a slash in it, although it should not."""
_QUERY = re.compile(r"""(?P<url>[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s?\#'"]{1,1000})\?[^\s'"]+""")
_NAMED = re.compile(
    r"""(?P<name>(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key)["']?\s{0,3}[=:]\s{0,3})
    (?:"[^"]*"|'[^']*'|[^\s,;&"']+)""",
    re.VERBOSE | re.IGNORECASE,
)
"""`password=…`, as in a setting that was meant for another client."""
_ADDRESS = re.compile(r"""(?<![\w])[^\s:/@,'"()\[\]]{1,256}:[^\s@'",]{0,256}@(?=[\w.:\[\]-]{1,256}:\d)""")
"""`user:password@` before `host:port`."""


def is_secret(name: str) -> bool:
    """Returns whether the value of a setting or of a librdkafka property is secret, also if its name is misspelt."""
    name = name.lower()
    if name in OPEN_NAMES:
        return False
    if name in SECRET_NAMES or any(word in name for word in SECRET_WORDS):
        return True
    return any(is_misspelt(part) for part in re.split(r"[._\-]", name))


def is_misspelt(part: str) -> bool:
    """Returns whether a part of a name is probably a misspelt word for a secret."""
    return any(difflib.SequenceMatcher(None, part, word).ratio() >= SIMILARITY_MIN for word in MISSPELT_WORDS)


def shown_value(name: str, value: Any) -> Any:
    """Returns the value of a setting, without secrets."""
    if value is not None and name.lower() in SECRET_NAMES:
        return HIDDEN
    if isinstance(value, Mapping):
        return {each: shown_value(str(each), its) for each, its in value.items()}
    if value is not None and is_secret(name):
        return HIDDEN
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(shown_value(name, each) for each in value)
    if name in ("bootstrap_servers", "bootstrap.servers", "metadata.broker.list"):
        return ",".join(_without_user(each) for each in str(value).split(","))
    return without_secrets(value) if isinstance(value, str) else value


def without_secrets(text: str) -> str:
    """Returns the text of a setting without user and password, without queries of URLs, and without named secrets."""
    return _NAMED.sub(rf"\g<name>{HIDDEN}", _QUERY.sub(rf"\g<url>?{HIDDEN}", without_userinfo(text)))


def shown_repr(owner: object, names: Iterable[str]) -> str:
    """Returns the `repr` of an object with these settings."""
    parts = [f"{name}={value!r}" for name, value in shown_fields(owner, names)]
    return f"{type(owner).__name__}({', '.join(parts)})"


def shown_fields(owner: object, names: Iterable[str]) -> list[tuple[str, Any]]:
    """Returns the settings of an object with their values, without secrets."""
    return [(name, shown_value(name, getattr(owner, name))) for name in names]


def without_userinfo(text: str) -> str:
    """Returns text in which addresses have no user and password: `http://[secret]@host`."""
    if "@" not in text:
        return text
    return _ADDRESS.sub(f"{HIDDEN}@", _URL.sub(rf"\g<scheme>{HIDDEN}@", text))


def _without_user(address: str) -> str:
    """Returns the address of a broker without user and password. It can't have them, but a user may write a URL."""
    user, at, host = address.rpartition("@")
    scheme = user.partition("://")[0] + "://" if "://" in user else ""
    return f"{scheme}{HIDDEN}@{host}" if at else address


def key_hash(key: bytes | None) -> str | None:
    """Returns a text that is the same for all messages of a key and does not show it; None without a key."""
    return None if key is None else hashlib.blake2b(key, digest_size=8).hexdigest()
