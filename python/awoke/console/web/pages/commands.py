"""The commands to processes, each with a reason, and the audit of all that were sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from awoke.console.commands import Commander
from awoke.console.web.grants import Role
from awoke.console.web.page import Asked, Block, Done, Page, PageAction, Rows, Wrong
from awoke.errors import ConfigError, RpcError
from awoke.operate.commands.verbs import REMOTE, Verb
from awoke.operate.commands.views import Audit

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
        Wrong: One is missing, or is not what the command takes.
    """
    fields = {parameter.name: asked.form.get(parameter.name, "").strip() for parameter in verb.parameters}
    try:
        return verb.parsed({name: text for name, text in fields.items() if text})
    except ConfigError as error:
        raise Wrong(str(error)) from None


def action_of(verb: Verb) -> PageAction:
    """Returns the action of a verb."""
    role = Role.ADMIN if verb.needs_admin else Role.OPERATE
    return PageAction(f"/commands/{verb.name}", verb.doc, partial(act, verb), verb=verb.name, role=role)


PAGES = [Page("/audit", "Audit", audit, "audit.html", section="Processes")]
ACTIONS = [action_of(verb) for verb in REMOTE.values()]
