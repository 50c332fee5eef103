"""The commands to processes, each with a reason, and the audit of all that were sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from awoke.console.commands import VERBS, Commander
from awoke.console.web.grants import Role
from awoke.console.web.page import Action, Asked, Block, Done, Page, Rows, Wrong
from awoke.errors import RpcError
from awoke.operate.commands.verbs import BOUNDS, Verb
from awoke.operate.commands.views import Audit

OF_ADMINS = frozenset({"stop", "reload", "scale", "seek"})
"""The verbs that need the role `admin`; the others need `operate`."""
SENDER = "awoke console"


class AuditPage(msgspec.Struct, kw_only=True):
    """The last commands."""

    problem: str | None
    commands: Rows[Audit]


def audit(asked: Asked) -> AuditPage:
    """Returns the last commands, the newest first."""
    now = asked.snapshot()
    columns: dict[str, Callable[[Audit], object]] = {
        "at": lambda each: each.at_ms,
        "who": lambda each: each.who,
        "verb": lambda each: each.verb,
        "result": lambda each: each.result,
        "node": lambda each: each.node,
    }
    table = asked.rows(now.audit, "at", columns, is_descending=True, text=text_of)
    return AuditPage(problem=now.problem, commands=table)


def text_of(command: Audit) -> str:
    """Returns the text in which a filter looks."""
    return f"{command.who} {command.verb} {command.node} {command.reason} {command.result}"


def act(verb: Verb, asked: Asked) -> Done:
    """Sends a command, and returns its answer. Blocks."""
    form = asked.form
    reason, node = form.get("reason", "").strip(), form.get("node", "")
    if not reason:
        raise Wrong("a command needs a reason")
    back = f"/processes/{node}" if not form.get("back", "").startswith("/") else form["back"]
    try:
        with Commander(asked.app, settings=asked.settings, name=SENDER) as commander:
            who = asked.grant.who or "not named"
            answer = commander.send(node, verb.name, who=who, reason=reason, **arguments_of(verb, asked))
    except RpcError as error:
        return Done(text=f"{error.code.replace('_', ' ')}: {error}", back=back, is_failed=True)
    stacks = [
        Block(title=f"{each.owner}: {each.name}" if each.owner else each.name, text="\n".join(each.lines))
        for each in answer.stacks
    ]
    return Done(text=answer.text, back=back, blocks=stacks)


def arguments_of(verb: Verb, asked: Asked) -> dict[str, Any]:
    """Returns the arguments that a form has for a command.

    Raises:
        Wrong: A number is none.
    """
    found: dict[str, Any] = {}
    for name in verb.fields:
        text = asked.form.get(name, "").strip()
        if name == "durable":
            found[name] = text == "on"
        elif text and name in BOUNDS:
            found[name] = whole(name, text)
        elif text:
            found[name] = text
    return found


def whole(name: str, text: str) -> int:
    """Returns a number as it was typed: one that is out of bounds is refused, and never made another one.

    Raises:
        Wrong: It is no number, or out of bounds.
    """
    least, most = BOUNDS[name]
    if not (text.removeprefix("-").isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise Wrong(f"{name} is a number from {least} to {most}, not {text[:40]!r}")
    return int(text)


def action_of(verb: Verb) -> Action:
    """Returns the action of a verb."""
    role = Role.ADMIN if verb.name in OF_ADMINS else Role.OPERATE
    return Action(f"/commands/{verb.name}", verb.doc, partial(act, verb), verb=verb.name, role=role)


PAGES = [Page("/audit", "Audit", audit, "audit.html", section="Processes")]
ACTIONS = [action_of(verb) for verb in VERBS.values()]
