"""Schemas for encoders and decoders, which never wait: they raise `SchemaNeeded` for what is not loaded yet.

The code that runs them loads it where it may wait, and calls them again: the executor of a route between two tries of
a job, a producer and a reader on the thread that called them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import ipaddress
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn
from urllib.parse import urlsplit
from weakref import WeakSet, WeakValueDictionary

from awoke.errors import AwokeError, ConfigError
from awoke.payloads.registry.cache import UNKNOWN_FOR_S, BoundedDict, Counts
from awoke.payloads.registry.errors import InvalidSchema, RegistryRefused, SchemaNotFound
from awoke.payloads.registry.schema import Reference, RegisteredSchema, Schema
from awoke.settings import Settings
from awoke.waiting.clock import monotonic_s
from awoke.waiting.drive import is_in_event_loop

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry

Register = Literal["never", "dev", "always"]
"""When a producer registers a schema: never, only in a registry on this machine, or always."""

LOADS_MAX = 10
"""The most schemas that one value needs. More would mean that the cache drops them faster than they are used."""


class SchemaNeeded(AwokeError):
    """A schema, or a key of encryption, is not loaded yet.

    Code that runs on an event loop outside of awoke's handlers sees it. `load` loads the schema.
    """

    def __init__(self, text: str, load: Callable[[], object]) -> None:
        super().__init__(text)
        self._load = load

    def load(self) -> None:
        """Loads the schema. Blocks for the registry's answer.

        Raises:
            RegistryError: The registry gave none. SchemaNotFound: It does not have the schema.
        """
        self._load()


class Imported(NamedTuple):
    """A schema that another one imports, under the subject of its own name."""

    name: str
    schema: Schema
    imports: tuple[Imported, ...] = ()


class Wanted(NamedTuple):
    """A schema that is to be written for a subject."""

    subject: str
    schema: Schema | None
    """None: the latest version of the subject."""
    imports: tuple[Imported, ...] = ()


class Schemas:
    """The schemas of a registry, as encoders and decoders ask for them. Any thread; only `prefetch` blocks."""

    def __init__(
        self, open_registry: Callable[[], SchemaRegistry], register: Callable[[], Register] = lambda: "never"
    ) -> None:
        self._open_registry, self._register = open_registry, register
        self._registry: SchemaRegistry | None = None
        self._lock = threading.Lock()
        self._prefetching: threading.Thread | None = None
        self.is_required = False
        """True if there is a format that can't do without the registry."""
        self.loads = 0
        """The loads that gave a schema; written under the lock."""
        self.counts = Counts()
        self._kept = WeakValueDictionary[int, BoundedDict]()
        """The dicts of formats, as long as they are used; under the lock."""
        self._written: dict[Wanted, RegisteredSchema] = self.kept()
        self._referred: dict[Schema, Mapping[str, Schema]] = self.kept()
        self._missing: dict[Schema, tuple[float, SchemaNotFound]] = self.kept()
        """The schemas of which a reference is missing, and until when the registry is not asked again."""
        self._of_subjects: dict[tuple[str, Schema], tuple[bool, float]] = self.kept()
        """Whether a subject has a schema, and until when the registry is not asked again if not."""
        self._expected: list[Wanted] = []
        """The schemas that the formats need first."""
        _all.add(self)

    @classmethod
    def none(cls) -> Schemas:
        """Returns the schemas of no registry: each request for one raises ConfigError."""
        return cls(_no_registry)

    @property
    def registry(self) -> SchemaRegistry:
        """The registry's client, made on first use.

        Raises:
            ConfigError: No registry is set.
        """
        with self._lock:
            if self._registry is None:
                self._registry = self._open_registry()
                for each in self._kept.values():  # It may be another registry, where the same ids are other schemas.
                    each.clear()
                    each.entries_max = self._registry.cache.entries_max
            return self._registry

    def kept(self) -> BoundedDict:
        """Returns a new dict for what a format makes of schemas.

        It has at most as many entries as the client keeps schemas, and is emptied when a new client is made.
        """
        with self._lock:
            most = {} if self._registry is None else {"entries_max": self._registry.cache.entries_max}
            found = BoundedDict(self.counts, **most)
            self._kept[id(found)] = found
        return found

    def counters(self) -> dict[str, float]:
        """Returns the counters of the cache and of the client's requests; empty before the client is made.

        Does not block: the metrics show them.
        """
        registry = self._registry
        if registry is None:
            return {}
        cache = registry.cache
        return {
            "hits": cache.hits + self.counts.hits,
            "misses": cache.misses,
            "evictions": cache.evictions + self.counts.evictions,
            "entries": len(cache),
            **registry.counters(),
        }

    def by_id(self, number: int | str) -> RegisteredSchema:
        """Returns the schema of an id, or of a GUID.

        Raises:
            SchemaNeeded: It is not loaded yet. SchemaNotFound: The registry does not have it.
        """
        registry = self.registry
        found = registry.cached(number)
        if found is None:
            if (why := registry.cache.why_unknown(number)) is not None:
                raise why
            name = f"schema {number}" if isinstance(number, int) else f"the schema with GUID {number}"
            raise SchemaNeeded(
                f"{name} is not loaded from the registry yet", lambda: self._loaded(registry.schema, number)
            )
        return found

    def for_writing(self, subject: str, schema: Schema | None, imports: tuple[Imported, ...] = ()) -> RegisteredSchema:
        """Returns the schema to write for a subject: this one, where it is registered, or else the latest version.

        Raises:
            SchemaNeeded: It is not loaded yet.
        """
        wanted = Wanted(subject, schema, imports)
        found = self._written.get(wanted)
        if found is None:
            text = f"the schema of {subject!r} is not loaded from the registry yet"
            raise SchemaNeeded(text, functools.partial(self._load, wanted, self.registry))
        return found

    def references(self, schema: Schema) -> Mapping[str, Schema]:
        """Returns the schemas that a schema refers to, and those behind them, by the names of the references.

        Each comes after those that it refers to itself.

        Raises:
            SchemaNeeded: They are not loaded yet. SchemaNotFound: The registry does not have one of them.
        """
        if not schema.references:
            return {}
        until_s, missing = self._missing.get(schema, (0.0, None))
        if missing is not None and monotonic_s() < until_s:
            raise copy.copy(missing)  # An error that is raised many times would keep a traceback for each.
        found = self._referred.get(schema)
        if found is None:
            text = "the references of a schema are not loaded from the registry yet"
            raise SchemaNeeded(text, functools.partial(self._refer, schema, self.registry))
        return found

    def has(self, subject: str, schema: Schema) -> bool:
        """Tells whether a subject has a schema. One that it does not have is asked for again after 10 s.

        Raises:
            SchemaNeeded: It is not known yet.
        """
        is_there, until_s = self._of_subjects.get((subject, schema), (False, 0.0))
        if not is_there and until_s <= monotonic_s():
            text = f"the schemas of {subject!r} are not loaded from the registry yet"
            raise SchemaNeeded(text, functools.partial(self._look_up, subject, schema, self.registry))
        return is_there

    def expect(self, subject: str, schema: Schema | None = None, imports: tuple[Imported, ...] = ()) -> None:
        """Notes what `prefetch` loads: the latest version of a subject, or the schema that is to be written."""
        with self._lock:
            if Wanted(subject, schema, imports) not in self._expected:
                self._expected.append(Wanted(subject, schema, imports))

    def check(self) -> None:
        """Checks that there is a registry, if a format needs one. Opens no connection.

        Raises:
            ConfigError: None is set, or a setting of it is wrong.
        """
        if self.is_required:
            self.registry  # noqa: B018 - it is made here.

    def start(self) -> None:
        """Begins to load what is expected, on a thread that ends when it is there. Does not block."""
        if self._expected:
            # With the client of this start: a thread that is late must not open another one beside `close`.
            arguments = (self.registry,)
            thread = threading.Thread(target=self._prefetch, args=arguments, name="awoke-schemas", daemon=True)
            self._prefetching = thread
            thread.start()

    def prefetch(self) -> None:
        """Loads what is expected. Blocks. What can't be loaded is left to the first message that needs it."""
        self._prefetch(self.registry)

    def _prefetch(self, registry: SchemaRegistry) -> None:
        for wanted in list(self._expected):
            if self._registry is not registry:
                return  # It was closed.
            with contextlib.suppress(AwokeError):
                self._load(wanted, registry)

    def close(self, timeout_s: float | None = None) -> None:
        """Closes the registry's client, if there is one; the next use makes a new one. Blocks up to `timeout_s`."""
        with self._lock:
            registry, self._registry = self._registry, None
            prefetching, self._prefetching = self._prefetching, None
        if registry is not None:
            registry.close()
        if prefetching is not None:
            prefetching.join(timeout_s)

    def renew_locks(self) -> None:
        """Makes a new lock in a forked process: a thread of the parent may have held the old one."""
        self._lock, self._prefetching = threading.Lock(), None

    def _loaded(self, load: Callable[..., Any], *arguments: Any) -> Any:
        """Loads something, and counts it."""
        found = load(*arguments)
        with self._lock:
            self.loads += 1
        return found

    def _refer(self, schema: Schema, registry: SchemaRegistry) -> None:
        try:
            found = self._loaded(registry.references, schema)
        except SchemaNotFound as missing:
            with self._lock:
                self._missing[schema] = (monotonic_s() + UNKNOWN_FOR_S, missing)
            raise
        self._keep(self._referred, schema, found, registry)

    def _look_up(self, subject: str, schema: Schema, registry: SchemaRegistry) -> None:
        try:
            self._loaded(registry.look_up, subject, schema)
            found = True, 0.0
        except (SchemaNotFound, InvalidSchema):
            found = False, monotonic_s() + UNKNOWN_FOR_S
        self._keep(self._of_subjects, (subject, schema), found, registry)

    def _load(self, wanted: Wanted, registry: SchemaRegistry) -> None:
        if wanted not in self._written:
            try:
                found = self._loaded(self._found, registry, wanted)
            except SchemaNotFound as error:  # Of no message, but of the whole topic: it waits until there is one.
                text = f"the registry has no schema of {wanted.subject!r}: register one with awoke schema register"
                raise RegistryRefused(text, error.url, error.status, error.code) from None
            self._keep(self._written, wanted, found, registry)

    def _keep(self, kept: dict[Any, Any], key: Any, found: Any, registry: SchemaRegistry) -> None:
        """Keeps what this client has loaded, unless there is another one meanwhile."""
        with self._lock:
            if self._registry is registry:
                kept[key] = found

    def _found(self, registry: SchemaRegistry, wanted: Wanted) -> RegisteredSchema:
        subject, schema, imports = wanted
        if schema is None:
            return registry.latest(subject)
        if imports:
            schema = schema._replace(references=tuple(self._reference(registry, each) for each in imports))
        if self._may_register(registry):
            return registry.register(subject, schema)
        try:
            return registry.look_up(subject, schema)
        except SchemaNotFound:
            return registry.latest(subject)

    def _reference(self, registry: SchemaRegistry, imported: Imported) -> Reference:
        found = self._found(registry, Wanted(imported.name, imported.schema, imported.imports))
        if found.version is None:
            found = registry.look_up(imported.name, found.schema)
        return Reference(imported.name, imported.name, found.version or 1)

    def _may_register(self, registry: SchemaRegistry) -> bool:
        register = self._register()
        return register == "always" or (register == "dev" and is_on_this_machine(registry.url))


def loading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that loads the schemas that an encoder or a decoder needs, on the calling thread."""

    def call(*arguments: Any) -> Any:
        for _ in range(LOADS_MAX):
            try:
                return function(*arguments)
            except SchemaNeeded as needed:
                needed.load()
        return function(*arguments)

    return call


def load_here(function: Callable[..., Any], needed: SchemaNeeded, *arguments: Any) -> Any:
    """Loads what a function needs and calls it again, unless an event loop runs on this thread: it must not wait.

    Raises:
        SchemaNeeded: An event loop runs here. RegistryError: The registry does not give the schema.
    """
    if is_in_event_loop():
        raise needed
    needed.load()
    return loading(function)(*arguments)


def is_on_this_machine(url: str) -> bool:
    """Tells whether all of these addresses, separated by commas, are of the loopback interface."""
    if "," in url:
        return all(map(is_on_this_machine, url.split(",")))
    host = urlsplit(url.strip()).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_registry(settings: Settings) -> SchemaRegistry:
    """Returns a client of the registry in the settings. Opens no connection.

    Raises:
        ConfigError: No registry is set; a setting is wrong; httpx2 is not installed.
    """
    if settings.registry_url is None:
        _no_registry()
    from awoke.payloads.registry.access import BasicAuth, BearerToken, OAuth, Tls
    from awoke.payloads.registry.client import SchemaRegistry
    from awoke.payloads.registry.options import RegistryOptions

    options = RegistryOptions(
        timeout_s=settings.registry_timeout_s,
        cache_max=settings.registry_cache_max,
        headers=settings.headers_of_registry(),
    )
    if settings.registry_token is not None:
        options["auth"] = BearerToken(settings.registry_token)
    elif settings.registry_oauth_url is not None:
        options["auth"] = OAuth(
            settings.registry_oauth_url,
            settings.registry_user or "",
            settings.registry_password or "",
            settings.registry_oauth_scope,
        )
    elif settings.registry_user is not None:
        options["auth"] = BasicAuth(settings.registry_user, settings.registry_password or "")
    if settings.registry_ca or settings.registry_certificate:
        options["tls"] = Tls(
            settings.registry_ca,
            settings.registry_certificate,
            settings.registry_key,
            settings.registry_key_password,
        )
    return SchemaRegistry(settings.registry_url, **options)


def schemas_of(settings: Settings) -> Schemas:
    """Returns the schemas of the registry in the settings. Opens no connection."""
    return Schemas(lambda: open_registry(settings), lambda: settings.registry_register)


def _no_registry() -> NoReturn:
    text = "a format reads and writes schemas of a registry, and none is set: say registry_url='http://…'"
    text = f"{text}, or set AWOKE_REGISTRY_URL"
    raise ConfigError(text, "registry_url")


_all: WeakSet[Schemas] = WeakSet()
NO_SCHEMAS = Schemas.none()


def _renew_all() -> None:
    for each in list(_all):
        each.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
