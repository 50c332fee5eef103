"""Types and values that Hypothesis builds, for tests that what is sent is what is read."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import itertools
import operator
import typing
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st

Item = TypeVar("Item")


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class State(enum.Enum):
    IN_WORK = "in work"
    DONE = "done"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Tree(msgspec.Struct):
    label: str
    next: Tree | None = None
    more: list[Tree] = []


@dataclasses.dataclass
class Chain:
    number: int
    next: typing.Optional[Chain] = None  # noqa: UP045 - it names itself.


class Branch(pydantic.BaseModel):
    number: int
    more: list[Branch] = []


class Box(msgspec.Struct, Generic[Item]):
    content: Item
    others: list[Item] = []


class Crate(pydantic.BaseModel, Generic[Item]):
    content: Item


class Built(NamedTuple):
    """A type, and the strategy of its values."""

    hint: Any
    values: st.SearchStrategy[Any]


ZONES = st.sampled_from(
    [
        datetime.UTC,
        datetime.timezone(datetime.timedelta(hours=4)),
        datetime.timezone(-datetime.timedelta(hours=9, minutes=30)),
        datetime.timezone(datetime.timedelta(seconds=3723)),
    ]
)
FIRST, LAST = datetime.datetime(1700, 1, 1), datetime.datetime(2900, 1, 1)
NAIVE = st.datetimes(FIRST, LAST)
AWARE = st.datetimes(FIRST, LAST, timezones=ZONES)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=5)
Digits = Annotated[decimal.Decimal, msgspec.Meta(extra={"precision": 8, "scale": 2})]
ModelDigits = Annotated[decimal.Decimal, pydantic.Field(max_digits=8, decimal_places=2)]
NOT_FINITE = st.sampled_from([decimal.Decimal(text) for text in ("NaN", "Infinity", "-Infinity")])
DECIMALS = NOT_FINITE | st.decimals(allow_nan=False, allow_infinity=False) | st.decimals(-999, 999, places=2)


SCALARS = [
    Built(int, LONGS | st.integers(-(2**70), 2**70)),
    Built(int, LONGS),
    Built(float, st.floats()),
    Built(float, st.floats(allow_nan=False, allow_infinity=False)),
    Built(bool, st.booleans()),
    Built(str, TEXTS),
    Built(bytes, st.binary(max_size=5)),
    Built(datetime.datetime, AWARE),
    Built(datetime.datetime, AWARE | NAIVE),
    Built(datetime.date, st.dates()),
    Built(datetime.time, st.times()),
    Built(datetime.time, st.times(timezones=ZONES)),
    Built(uuid.UUID, st.uuids()),
    Built(datetime.timedelta, st.timedeltas(datetime.timedelta(-(10**4)), datetime.timedelta(10**4))),
    Built(decimal.Decimal, DECIMALS),
    Built(Digits, DECIMALS),
    Built(ModelDigits, DECIMALS),
    Built(Size, st.sampled_from(Size)),
    Built(State, st.sampled_from(State)),
    Built(Level, st.sampled_from(Level)),
    Built(Mixed, st.sampled_from(Mixed)),
    Built(Literal["a", "b"], st.sampled_from(["a", "b"])),
    Built(Literal[1, "b", None], st.sampled_from([1, "b", None])),
]
RECURSIVE = [
    Built(Tree, st.deferred(lambda: TREES)),
    Built(Chain, st.deferred(lambda: CHAINS)),
    Built(Branch, st.deferred(lambda: BRANCHES)),
]
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.builds(Tree, TEXTS), lambda inner: st.builds(Tree, TEXTS, inner, st.lists(inner, max_size=2)), max_leaves=4
)
CHAINS: st.SearchStrategy[Chain] = st.recursive(
    st.builds(Chain, LONGS), lambda inner: st.builds(Chain, LONGS, inner), max_leaves=4
)
BRANCHES: st.SearchStrategy[Branch] = st.recursive(
    st.builds(Branch, number=LONGS), lambda inner: st.builds(Branch, number=LONGS, more=st.lists(inner, max_size=2))
)
NAMES = ("alpha", "beta_two", "gamma", "delta")
_numbers = itertools.count()


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Built:
    """Draws a type with the strategy of its values."""
    what = draw(st.sampled_from(KINDS_OF_TYPES)) if depth else "scalar"
    if what in ("optional", "many", "generic"):
        inner = draw(types(depth - 1))
        if what == "generic":
            return generic(inner, draw(st.booleans()))
        if what == "optional":
            return Built(inner.hint | None, inner.values | st.none())
        many: Built = draw(collections(inner))
        return many
    strategies: dict[str, st.SearchStrategy[Built]] = {
        "scalar": st.sampled_from(SCALARS),
        "recursive": st.sampled_from(RECURSIVE),
        "class": classes(depth),
        "union": unions(depth),
    }
    found: Built = draw(strategies[what])
    return found


KINDS_OF_TYPES = ("scalar", "class", "class", "class", "optional", "many", "union", "recursive", "generic")


def generic(inner: Built, is_model: bool) -> Built:
    """Returns a generic class of a type."""
    try:
        kind: Any = Crate[inner.hint] if is_model else Box[inner.hint]  # type: ignore[name-defined]
    except Exception:
        return inner  # Pydantic does not know the type.
    values = inner.values.map(lambda content: made(kind, {"content": content}))
    return Built(kind, valid(values))


@st.composite
def collections(draw: st.DrawFn, inner: Built) -> Built:
    """Draws a collection of a type."""
    hint = inner.hint
    few = st.lists(inner.values, max_size=2)
    built = [
        Built(list[hint], few),  # type: ignore[valid-type]
        Built(tuple[hint, ...], few.map(tuple)),  # type: ignore[valid-type]
        Built(dict[str, hint], st.dictionaries(TEXTS, inner.values, max_size=2)),  # type: ignore[valid-type]
        Built(dict[int, hint], st.dictionaries(LONGS, inner.values, max_size=2)),  # type: ignore[valid-type]
    ]
    if isinstance(hint, type) and hint in (int, str, bytes, uuid.UUID, Size, datetime.date):
        built.append(Built(set[hint], st.sets(inner.values, max_size=2)))  # type: ignore[valid-type]
    found: Built = draw(st.sampled_from(built))
    return found


@st.composite
def unions(draw: st.DrawFn, depth: int) -> Built:
    """Draws a union: mostly of two classes with the same fields."""
    if draw(st.booleans()):
        first = draw(classes(depth))
        others = [draw(classes(depth, like=first)) if draw(st.booleans()) else draw(classes(depth))]
    else:
        first, others = draw(types(depth - 1)), draw(st.lists(types(depth - 1), min_size=1, max_size=2))
    built = [first, *others]
    hint: Any = functools.reduce(operator.or_, [each.hint for each in built])
    return Built(hint, st.one_of([each.values for each in built]))


_shapes: dict[Any, tuple[str, list[Any]]] = {}
"""The library and the fields of each class that was made, so that another one can be like it."""


@st.composite
def classes(draw: st.DrawFn, depth: int, like: Built | None = None) -> Built:
    """Draws a class with fields, of one of the libraries."""
    if like is not None and like.hint in _shapes:
        library, fields = _shapes[like.hint]
    else:
        library = draw(st.sampled_from(["struct", "data", "attrs", "model", "model", "typed dict"]))
        count = draw(st.integers(1, 3))
        fields = [(name, draw(types(depth - 1)), draw(st.booleans())) for name in NAMES[:count]]
    name = f"{library.title().replace(' ', '')}{next(_numbers)}"
    try:
        kind = MAKERS[library](draw, name, fields)
    except Exception:  # The library does not know a type.
        kind = msgspec.defstruct(name, [("alpha", int)])
        fields, library = [("alpha", SCALARS[1], False)], "struct"
    if len(_shapes) > 1_000:
        _shapes.clear()
    _shapes[kind] = (library, fields)
    values = st.fixed_dictionaries({each: built.values for each, built, _ in fields})
    return Built(kind, valid(values.map(lambda parts: made(kind, parts))))


REFUSED = object()


def made(kind: Any, parts: dict[str, Any]) -> Any:
    """Returns a value of a class; REFUSED for one that the class itself refuses."""
    if not isinstance(kind, type) or not issubclass(kind, pydantic.BaseModel):
        return kind(**parts)
    try:
        by_name: Any = kind.model_validate(parts, by_alias=False, by_name=True)
    except pydantic.ValidationError:
        return REFUSED
    return by_name


def valid(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Returns the values that their own class takes."""
    return values.filter(lambda value: value is not REFUSED)


def make_struct(draw: st.DrawFn, name: str, fields: list[Any]) -> Any:
    options: dict[str, Any] = draw(
        st.sampled_from(
            [{}, {}, {"rename": "camel"}, {"tag": True}, {"omit_defaults": True}, {"forbid_unknown_fields": True}]
        )
    )
    parts: list[Any] = [(each, built.hint) for each, built, _ in fields]
    if draw(st.booleans()):
        parts = [
            (each, built.hint, msgspec.field(default=None)) if has else (each, built.hint)
            for each, built, has in fields
        ]
        parts.sort(key=len)
    return msgspec.defstruct(name, parts, **options)


def make_data(draw: st.DrawFn, name: str, fields: list[Any]) -> Any:
    return dataclasses.make_dataclass(name, [(each, built.hint) for each, built, _ in fields])


def make_attrs(draw: st.DrawFn, name: str, fields: list[Any]) -> Any:
    return attrs.make_class(name, {each: attrs.field(type=built.hint) for each, built, _ in fields})


def make_typed_dict(draw: st.DrawFn, name: str, fields: list[Any]) -> Any:
    return typing.TypedDict(name, {each: built.hint for each, built, _ in fields})  # type: ignore[operator]


def make_model(draw: st.DrawFn, name: str, fields: list[Any]) -> Any:
    """Makes a model of pydantic's, mostly plain, sometimes with another shape for reading than for writing."""
    settings = draw(
        st.sampled_from([{}, {}, {}, {"extra": "forbid"}, {"validate_by_name": True, "validate_by_alias": True}])
    )
    space: dict[str, Any] = {}
    odd = draw(st.sampled_from(["", "", "", "computed", "serializer", "secret", "doubled"]))
    if odd == "computed":
        space["total"] = pydantic.computed_field(property(_total))
    if odd == "serializer":
        space["as_text"] = pydantic.field_serializer("alpha")(lambda self, value: str(value))
    if odd == "doubled":
        space["twice"] = pydantic.field_validator("alpha", mode="after")(lambda cls, value: _twice(value))
    parts: dict[str, Any] = {}
    for each, built, has_default in fields:
        options = draw(st.sampled_from(FIELD_OPTIONS))
        if has_default and None in typing.get_args(built.hint):
            options = {**options, "default": None}
        parts[each] = (built.hint, pydantic.Field(**options))
    if odd == "secret":
        parts["alpha"] = (pydantic.SecretStr, "hidden")
    hints = {key: hint for key, (hint, _) in parts.items()}
    space |= {key: field for key, (_, field) in parts.items()}
    return type(
        name,
        (pydantic.BaseModel,),
        {**space, "__annotations__": hints, "model_config": settings, "__module__": __name__},
    )


def _total(self: Any) -> int:
    return 7


def _twice(value: Any) -> Any:
    return value * 2 if isinstance(value, (int, str)) and not isinstance(value, enum.Enum) else value


FIELD_OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {},
    {},
    {"alias": "anAlias"},
    {"validation_alias": "readAs"},
    {"serialization_alias": "writtenAs"},
    {"validation_alias": "both", "serialization_alias": "both"},
    {"validation_alias": pydantic.AliasChoices("alpha", "other")},
    {"validation_alias": pydantic.AliasChoices("beta_two", "alpha")},
    {"validation_alias": pydantic.AliasPath("alpha", 0)},
    {"exclude": True},
]
MAKERS: dict[str, Any] = {
    "struct": make_struct,
    "data": make_data,
    "attrs": make_attrs,
    "model": make_model,
    "typed dict": make_typed_dict,
}
