"""Masks the parts of a JSON document that paths name as secret.

A path is a JSON pointer (RFC 6901), as in `/card/number`. `*` stands for each member of an object and each element of
a list. Paths can be sent to a program that does not have the types which they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from awoke.text.secrets import HIDDEN

EACH = "*"
"""Each member of an object, or each element of a list. A member with this name is written `~2`."""

Replace = Callable[[Any, str], Any]
"""Returns what stands in the place of a secret, of which it gets the value and the path."""


class SecretPaths:
    """The secret parts of the documents of one type. It never changes."""

    __slots__ = ("_root", "_wanted", "fields", "keyed", "optional", "same")

    def __init__(
        self,
        fields: Iterable[str] = (),
        optional: Iterable[str] = (),
        same: Iterable[tuple[str, str]] = (),
        keyed: Iterable[str] = (),
    ) -> None:
        self.fields = tuple(dict.fromkeys(fields))
        """The paths that each document of the type has."""
        self.optional = tuple(dict.fromkeys(optional))
        """The paths that a document may have."""
        self.same = tuple(dict.fromkeys(same))
        """Pairs of paths: what is at the first has the secrets of what is at the second, as in a tree."""
        self.keyed = frozenset(keyed)
        """Of these paths, those of objects whose names of members are secret, too."""
        self._wanted = [tokens_of(each) for each in self.fields]
        self._root = _Place("")
        for path in (*self.fields, *self.optional):
            self._root.reach(path).is_secret = True
        for path, to in self.same:
            self._root.reach(path).links.append(self._root.reach(to))

    def __bool__(self) -> bool:
        return bool(self.fields or self.optional)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretPaths) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"SecretPaths{self._parts()!r}"

    def masked(self, document: Any, replace: Replace = lambda value, path: HIDDEN) -> Any:
        """Returns a document in which no secret is shown. A null stays one."""
        return _masked([self._root], document, replace)

    def fits(self, document: Any) -> bool:
        """Tells whether a document has all parts that each document of the type has."""
        if document is not None and not isinstance(document, dict | list) and not self._root.is_secret:
            return False  # It has no parts, and each path leads to one.
        if isinstance(document, list) and not self._has_elements():
            return False  # It has no members, and each path leads to one.
        return all(_has(document, tokens) for tokens in self._wanted)

    def _has_elements(self) -> bool:
        """Tells whether a list may be a document of the type."""
        places = _linked([self._root])
        words = [word for each in places for word in each.inner]
        return any(each.is_secret for each in places) or any(word == EACH or word.isdecimal() for word in words)

    def covers(self, other: SecretPaths) -> bool:
        """Tells whether each of these paths is among this type's: what they mask, these mask, too."""
        own = {*self.fields, *self.optional}
        is_within = own.issuperset((*other.fields, *other.optional)) and self.keyed >= other.keyed
        return is_within and set(self.same).issuperset(other.same)

    def _parts(self) -> tuple[Any, ...]:
        return self.fields, self.optional, self.same


class _Place:
    """A place in documents."""

    __slots__ = ("inner", "is_secret", "links", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_secret = False
        self.inner: dict[str, _Place] = {}
        """The places within it, by the words of paths as they are written."""
        self.links: list[_Place] = []

    def reach(self, path: str) -> _Place:
        """Returns the place at a path below this one."""
        found = self
        for word in path.split("/")[1:]:
            found = found.inner.setdefault(word, _Place(f"{found.path}/{word}"))
        return found

    def at(self, word: str) -> Iterator[_Place]:
        """Yields the places of a member or an element."""
        for each in (word, EACH):
            if each in self.inner:
                yield self.inner[each]


def escaped(name: str) -> str:
    """Returns the name of a member as a word of a path."""
    written = name.replace("~", "~0").replace("/", "~1")
    return "~2" if written == EACH else written


def tokens_of(path: str) -> tuple[str, ...]:
    """Returns the words of a path as they are written."""
    return tuple(path.split("/")[1:])


def shown(path: str) -> str:
    """Returns a path for people, as in `card.number`; empty for a document as a whole."""
    words = (each.replace("~2", "*").replace("~1", "/").replace("~0", "~") for each in tokens_of(path))
    return ".".join(words)


def _masked(places: Sequence[_Place], document: Any, replace: Replace) -> Any:
    if document is None or not places:
        return document
    places = _linked(places)
    for each in places:
        if each.is_secret:
            return replace(document, each.path)
    if isinstance(document, dict):
        return {name: _masked(_inner(places, escaped(str(name))), part, replace) for name, part in document.items()}
    if isinstance(document, list | tuple | set | frozenset):
        return [_masked(_inner(places, str(index)), part, replace) for index, part in enumerate(document)]
    if isinstance(document, bool | int | float):
        return document
    return replace(document, places[0].path)  # It may be a document with the secrets that are looked for in it.


def _inner(places: Sequence[_Place], word: str) -> list[_Place]:
    return [found for each in places for found in each.at(word)]


def _linked(places: Sequence[_Place]) -> list[_Place]:
    """Returns the places, and those whose secrets they have, too."""
    found = list(places)
    for each in found:  # It grows.
        found += [to for to in each.links if not any(to is known for known in found)]
    return found


def _has(document: Any, tokens: Sequence[str]) -> bool:
    if not tokens:
        return True
    word, rest = tokens[0], tokens[1:]
    if isinstance(document, dict):
        if word == EACH:
            return all(_has(part, rest) for part in document.values())
        return any(_has(part, rest) for name, part in document.items() if escaped(str(name)) == word)
    if isinstance(document, list):
        if word == EACH:
            return all(_has(part, rest) for part in document)
        return word.isdecimal() and int(word) < len(document) and _has(document[int(word)], rest)
    return False
