"""The table of verbs, and the one check of a command: of a socket, a console, `awoke act` and the pages of the console.

A new verb is a row here and an action in `actions`. Nothing in this file needs the engine: a supervisor checks commands
too, and has no Kafka client.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.settings import Settings

INT_MAX = (1 << 63) - 1
TOPIC_MAX = 249
"""The longest name of a topic in Kafka."""
GROUP_MAX = 1_000
"""The longest name of a group in a command; Kafka has no bound."""
TEXT_MAX = 1_000
"""The most characters of a reason, and of a person's name."""
NODES_MAX = 1_000
"""The most nodes that a swarm is scaled to."""
EVERY = "*"
"""Stands for all verbs that a console may send."""

Value = str | int | bool | None
KINDS: Mapping[type, str] = {int: "an integer", str: "a string", bool: "true or false"}


class VerbParameter(msgspec.Struct, frozen=True):
    """One argument of a verb."""

    name: str
    kind: type[int] | type[str] | type[bool]
    least: int = 0
    """The least number, or the fewest characters."""
    most: int = INT_MAX
    is_optional: bool = False

    def check(self, value: Any) -> None:
        """Checks a value.

        Raises:
            ConfigError: It has another type, or is out of bounds.
        """
        if type(value) is self.kind:  # True is an integer, too.
            size = len(value) if isinstance(value, str) else value
            if isinstance(value, bool) or self.least <= size <= self.most:
                return
        raise ConfigError(f"{self.name} must be {self.wanted}, not {reprlib.repr(value)}", self.name)

    def parsed(self, text: str) -> Value:
        """Returns the value of a text that a person has typed.

        Raises:
            ConfigError: The text is not such a value. A number out of bounds is refused, and never made another one.
        """
        if self.kind is bool:
            return text in ("true", "on")
        is_number = text.removeprefix("-").isdecimal() and len(text) <= len(str(INT_MAX)) + 1
        value = int(text) if self.kind is int and is_number else text
        self.check(value)
        return value

    @property
    def wanted(self) -> str:
        """The values that it takes, in words."""
        what = KINDS[self.kind]
        if self.kind is int:
            return f"{what} from {self.least} to {self.most}"
        return f"{what} of {self.least} to {self.most} characters" if self.kind is str else what


class Reach(Enum):
    """The processes that execute a verb."""

    PARTITION = "the process to which the partition is assigned; of a swarm, each node is asked"
    PROCESS = "the process that is asked; of a swarm, each node, and the answers are one"
    SWARM = "the supervisor"


class Verb(msgspec.Struct, frozen=True):
    """One command."""

    name: str
    reach: Reach
    doc: str
    """Its effect, in one sentence."""
    parameters: tuple[VerbParameter, ...] = ()
    one_of: tuple[str, ...] = ()
    """Of these parameters, which are optional, exactly one is needed."""
    needs_admin: bool = False
    """True if it needs the role `admin` in the console; the others need `operate`."""
    is_remote: bool = True
    """False: it is taken on the host of the process only, and not from a console."""
    is_recorded: bool = True
    """False: it only looks, and leaves no record in the audit topic."""
    answers_within_s: float = 10.0
    """The longest time until its answer, where its user says no other."""

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments that are given.

        Raises:
            ConfigError: An argument is missing, unknown or of a wrong kind.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                text = f"{self.name} has no argument {reprlib.repr(name)}; it has {', '.join(known) or 'none'}"
                raise ConfigError(text, "arguments")
        for parameter in self.parameters:
            if parameter.name in given:
                parameter.check(given[parameter.name])
            elif not parameter.is_optional:
                raise ConfigError(f"{self.name} needs the argument {parameter.name!r}", parameter.name)
        if self.one_of and sum(name in given for name in self.one_of) != 1:
            raise ConfigError(f"{self.name} needs one of {' and '.join(self.one_of)}, and not both", self.one_of[0])
        return given

    def parsed(self, words: Mapping[str, str]) -> dict[str, Any]:
        """Returns the arguments that a person has typed: in a terminal, or in a form.

        Raises:
            ConfigError: As `checked`.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        values = {name: known[name].parsed(text) if name in known else text for name, text in words.items()}
        return self.checked(values)


TOPIC = VerbParameter("topic", str, 1, TOPIC_MAX)
PARTITION = VerbParameter("partition", int, 0, (1 << 31) - 1)
OFFSET = VerbParameter("offset", int)
GROUP = VerbParameter("group", str, 1, GROUP_MAX, is_optional=True)
DURABLE = VerbParameter("durable", bool, is_optional=True)
ANY_FAILING = VerbParameter("offset", int, is_optional=True)
SEEK_OFFSET = VerbParameter("offset", int, -2, is_optional=True)
"""-2 is the first message, -1 the end."""
SEEK_TIME = VerbParameter("timestamp_ms", int, is_optional=True)
NODES = VerbParameter("nodes", int, 1, NODES_MAX)
NODE = VerbParameter("node", int)

TABLE = (
    Verb("quiet", Reach.PROCESS, "Begins no new jobs; a reload, or a new process, ends that."),
    Verb("stop", Reach.SWARM, "Stops the process in order; in a swarm, the whole swarm.", needs_admin=True),
    Verb(
        "reload",
        Reach.SWARM,
        "Imports the app again and replaces the nodes of the swarm one by one.",
        needs_admin=True,
        answers_within_s=600.0,
    ),
    Verb("scale", Reach.SWARM, "Changes the number of nodes of the swarm.", (NODES,), needs_admin=True),
    Verb("stacks", Reach.PROCESS, "Shows the Python stacks of all threads."),
    Verb("pause", Reach.PARTITION, "Begins no new jobs of a partition.", (TOPIC, PARTITION, GROUP, DURABLE)),
    Verb("resume", Reach.PARTITION, "Continues a partition that is paused or stuck.", (TOPIC, PARTITION, GROUP)),
    Verb(
        "seek",
        Reach.PARTITION,
        "Continues a partition from another offset, or from a time.",
        (TOPIC, PARTITION, SEEK_OFFSET, SEEK_TIME, GROUP),
        one_of=("offset", "timestamp_ms"),
        needs_admin=True,
    ),
    Verb("skip", Reach.PARTITION, "Skips a failing message.", (TOPIC, PARTITION, OFFSET, GROUP)),
    Verb("retry", Reach.PARTITION, "Tries failing messages again at once.", (TOPIC, PARTITION, ANY_FAILING, GROUP)),
    Verb(
        "dead_letter",
        Reach.PARTITION,
        "Sends a failing message to the dead letter topic.",
        (TOPIC, PARTITION, OFFSET, GROUP),
    ),
    Verb("status", Reach.SWARM, "Shows the nodes of the swarm.", is_remote=False, is_recorded=False),
    Verb("dump", Reach.SWARM, "Makes a node write its stacks to its log.", (NODE,), is_remote=False),
    Verb("threads", Reach.PROCESS, "Shows the threads and their owners.", is_remote=False, is_recorded=False),
)
VERBS: Mapping[str, Verb] = {verb.name: verb for verb in TABLE}
REMOTE: Mapping[str, Verb] = {verb.name: verb for verb in TABLE if verb.is_remote}
"""Those that a console may send, if the app allows them."""
PARAMETERS = frozenset(parameter.name for verb in TABLE for parameter in verb.parameters)


def verb_of(name: str, verbs: Mapping[str, Verb] = VERBS) -> Verb:
    """Returns the verb of a name.

    Raises:
        ConfigError: There is no such verb.
    """
    verb = verbs.get(name)
    if verb is None:
        raise ConfigError(f"there is no command {reprlib.repr(name)}; there are {', '.join(verbs)}", "command")
    return verb


def checked(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a command that are given.

    Raises:
        ConfigError: The command does not exist; an argument is missing, unknown or of a wrong kind.
    """
    return verb_of(name).checked(arguments)


def checked_text(name: str, text: Any, *, least: int = 1) -> str:
    """Returns a text of a person without white space around it.

    Raises:
        ConfigError: It is empty, too long, or not a text.
    """
    stripped = text.strip() if isinstance(text, str) else ""
    if not isinstance(text, str) or not least <= len(stripped) <= TEXT_MAX:
        raise ConfigError(f"{name} must be a string of {least} to {TEXT_MAX} characters", name)
    return stripped


def allowed(settings: Settings) -> frozenset[str]:
    """Returns the commands that a process takes from a console.

    Raises:
        ConfigError: The setting `console_commands` names one that a console can't send.
    """
    names = settings.allowed_commands()
    if EVERY in names:
        return frozenset(REMOTE)
    if unknown := sorted(names - set(REMOTE)):
        text = f"setting 'console_commands': {unknown[0]!r} is none of {', '.join(REMOTE)}"
        raise ConfigError(text, "console_commands")
    return names
