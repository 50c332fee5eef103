"""Commands for a running swarm: `awoke status`, `stop`, `quiet`, `reload`, `scale`, `dump`, `resume` and `skip`.

`awoke resume` and `awoke skip` also work for an app in a single process.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import AsJson, Quiet, Socket, Target
from awoke.cli.output import say, say_done, say_json, show_table
from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands import client
from awoke.operate.commands.socket_paths import find_socket, others_text
from awoke.operate.commands.verbs import VERBS, Reach
from awoke.settings import load_run
from awoke.text.durations import duration

Group = Annotated[str | None, typer.Option(help="The consumer group. By default all groups of the app.")]


def ask(target: str, socket: str | None, command: str, within_s: float | None = None, **fields: Any) -> dict[str, Any]:
    """Returns the answer of a swarm's supervisor, or of an app's single process.

    Blocks up to `within_s`, or as long as the command may take.

    The app is the one of this name in the working directory, or the one at the socket of the option, of the environment
    or of awoke.toml.

    Raises:
        ConfigError: No process listens there, or the command is wrong.
        AwokeError: The process does not answer, or the command failed.
    """
    socket = load_run({"socket": socket}).values.socket
    if socket is None and ":" not in target:
        raise ConfigError(f"{target!r} names no app; pass MODULE:APP, as in {target}:app", "target")
    path = socket or find_socket(target)
    try:
        return client.ask(path, command, within_s, target, **fields)
    except client.NothingListens as error:
        raise ConfigError(nothing_there(target, path, command, error.why), "socket") from None


def tell(target: str, socket: str | None, command: str, is_quiet: bool, **fields: Any) -> None:
    """Has a swarm execute a command, and prints its effect on one line; else as `ask`."""
    found = ask(target, socket, command, **fields)
    say_done(str(found.get("text") or f"{command} is done"), is_quiet=is_quiet)


def nothing_there(target: str, path: str, command: str, why: str) -> str:
    """Returns the error text for a socket on which no process listens."""
    is_for_both = command in VERBS and VERBS[command].reach is not Reach.SWARM
    wanted, options = ("process or swarm", "") if is_for_both else ("swarm", " --nodes")
    others = others_text(target)
    remedy = f"but {others}" if others else f"start it with awoke run {target}{options}"
    return f"no {wanted} of {target} listens at {path}: {why}; {remedy}"


@command(Section.WATCH)
def status(target: Target, socket: Socket = None, json: AsJson = False) -> None:
    """Show the nodes of a swarm: state, memory, the oldest running job, partitions, lag, restarts."""
    found = ask(target, socket, "status")
    found.pop("done", None)
    if json:
        say_json(msgspec.json.encode(found).decode())
        return
    say(f"{found['target']}: supervisor {found['pid']}, up {duration(found['uptime_s'])}")
    show_table(COLUMNS, [node_row(each) for each in found["nodes"]])
    for line in _remarks(found):
        say(line)
    for each in found["nodes"]:
        if each["last_error"]:
            say(f"node {each['node']}: {each['last_error']}")


COLUMNS = ("node", "pid", "state", "MiB", "oldest job", "assigned", "lag", "restarts", "up")
"""Together at most 80 characters wide, as long as no number is huge."""


def node_row(node: dict[str, Any]) -> tuple[str, ...]:
    """Returns a node's line of the table."""
    return (
        str(node["node"]),
        str(node["pid"] or "-"),
        "quiet" if node["is_quiet"] and node["state"] == "up" else node["state"],
        f"{node['memory_bytes'] / (1 << 20):.0f}" if node["memory_bytes"] else "-",
        duration(node["oldest_job_s"]) if node["oldest_job_s"] else "-",
        str(node["assigned"]),
        "-" if node["lag"] is None else str(node["lag"]),
        str(node["restarts"]),
        duration(node["uptime_s"]),
    )


def _remarks(found: dict[str, Any]) -> list[str]:
    """Returns lines about the mold and the last reload, if there is something to report."""
    remarks = ["quiet: no new jobs begin; a reload ends it"] if found["is_quiet"] else []
    if found["mold_state"] == "waiting":
        remarks.append(f"no mold: {found['mold_error']}; another one is made in {duration(found['mold_retry_in_s'])}")
    elif found["mold_state"] == "importing":
        failed = f"; the one before: {found['mold_error']}" if found["mold_error"] else ""
        remarks.append(f"no mold yet: it imports the app{failed}")
    reload = found["reload"]
    if reload["state"] != "idle":
        at = f", node {reload['node']}" if reload["node"] is not None else ""
        remarks.append(f"reload: {reload['state']}{at}")
    elif reload["last_error"]:
        remarks.append(f"the last reload failed: {reload['last_error']}")
    return remarks


@command(Section.STEER)
def stop(target: Target, socket: Socket = None, quiet: Quiet = False) -> None:
    """Stop a swarm: running jobs finish, offsets are committed."""
    tell(target, socket, "stop", quiet)


@command(Section.STEER)
def quiet(
    target: Target,
    socket: Socket = None,
    says_nothing: Annotated[bool, typer.Option("--quiet", help="Print nothing if the command succeeds.")] = False,
) -> None:
    """Make a swarm begin no new jobs, but keep its partitions. A reload ends that."""
    tell(target, socket, "quiet", says_nothing)


@command(Section.STEER)
def reload(
    target: Target,
    socket: Socket = None,
    timeout_s: Annotated[float, typer.Option(help="The longest wait. The reload itself continues.")] = VERBS[
        "reload"
    ].answers_within_s,
    quiet: Quiet = False,
) -> None:
    """Import the app again, replace the nodes one by one, and wait until every node runs the new code."""
    with contextlib.nullcontext() if quiet else reload_shown(target, socket):
        tell(target, socket, "reload", quiet, within_s=timeout_s)


REFRESH_S = 1.0


@contextlib.contextmanager
def reload_shown(target: str, socket: str | None) -> Iterator[None]:
    """Writes each step of a swarm's reload to standard error, inside the block."""
    ended = threading.Event()

    def write_steps() -> None:
        before = ""
        with contextlib.suppress(AwokeError):  # The command itself reports it.
            while not ended.wait(REFRESH_S):
                step = step_of(ask(target, socket, "status"))
                if step not in ("", before):
                    say(step, err=True)
                before = step

    say(f"reloading {target}: importing the app", err=True)
    thread = threading.Thread(target=write_steps, name="awoke-reload-steps", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def step_of(status: Mapping[str, Any]) -> str:
    """Returns the step of a reload that is under way, by the answer to `status`; nothing while the app is imported."""
    node, nodes = status["reload"]["node"], [each["node"] for each in status["nodes"]]
    return f"replacing node {node} ({nodes.index(node) + 1} of {len(nodes)})" if node in nodes else ""


@command(Section.STEER)
def scale(
    target: Target,
    nodes: Annotated[int, typer.Argument(help="The number of nodes.")],
    socket: Socket = None,
    quiet: Quiet = False,
) -> None:
    """Change the number of nodes."""
    tell(target, socket, "scale", quiet, nodes=nodes)


@command(Section.WATCH)
def dump(
    target: Target,
    node: Annotated[int, typer.Argument(help="The node's number.")],
    socket: Socket = None,
    quiet: Quiet = False,
) -> None:
    """Make a node write the stacks of all its threads to the log."""
    tell(target, socket, "dump", quiet, node=node)


@command(Section.STEER)
def resume(
    target: Target,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The partition's topic.")],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition's number.")],
    group: Group = None,
    socket: Socket = None,
    quiet: Quiet = False,
) -> None:
    """Resume a partition that its route has paused, or that is stuck. A stuck one continues at its first message."""
    ask(target, socket, "resume", topic=topic, partition=partition, group=group)
    say_done(f"resumed {topic}[{partition}]", is_quiet=quiet)


@command(Section.STEER)
def skip(
    target: Target,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The message's topic.")],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition's number.")],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="The message's offset.")],
    group: Group = None,
    socket: Socket = None,
    quiet: Quiet = False,
) -> None:
    """Skip a message that fails and blocks its partition. The partition continues after it."""
    ask(target, socket, "skip", topic=topic, partition=partition, offset=offset, group=group)
    say_done(f"{topic}[{partition}] continues after offset {offset}", is_quiet=quiet)
