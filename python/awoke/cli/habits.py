"""What hands type that know other tools (Kafka's scripts, kcat, Celery, Faust, FastStream), and what to type."""

from __future__ import annotations

from collections.abc import Collection

COMMANDS = {
    "consume": "tail TOPIC",
    "consumer": "tail TOPIC",
    "dev": "run MODULE:APP --watch",
    "delete": "topics delete TOPIC",
    "describe": "topics describe TOPIC",
    "list": "topics list",
    "ps": "status MODULE:APP",
    "publish": "produce TOPIC MESSAGE",
    "reset": "groups reset GROUP",
    "send": "produce TOPIC MESSAGE",
    "serve": "run MODULE:APP",
    "start": "run MODULE:APP",
    "worker": "run MODULE:APP",
}
"""Commands of others, and awoke's."""

BROKERS = "pass --bootstrap-servers HOST:PORT, or -b"
APP = "the app is an argument: awoke run MODULE:APP"
TOPIC = "the topic is an argument: awoke {command} TOPIC"
BEGIN = "pass --from with earliest, latest, an offset, a time or an age"
PROPERTY = "pass --kafka NAME=VALUE"
OPTIONS = {
    "--bootstrap-server": BROKERS,
    "--broker": BROKERS,
    "--broker-list": BROKERS,
    "--brokers": BROKERS,
    "--zookeeper": f"clients ask brokers, not ZooKeeper: {BROKERS}",
    "-A": APP,
    "--app": APP,
    "--app-dir": "set PYTHONPATH to the folder of the module, or change to it",
    "-t": TOPIC,
    "--topic": TOPIC,
    "--group": "the group is an argument: awoke {command} GROUP",
    "--from-beginning": "pass --from earliest",
    "--offset": BEGIN,
    "--since": BEGIN,
    "--start": BEGIN,
    "-o": BEGIN,
    "-e": "pass --until-end",
    "-c": "pass --count N for messages, --workers N for threads, --nodes N for processes",
    "-n": "pass --count N",
    "--max-messages": "pass --count N",
    "--concurrency": "pass --workers N for threads, --nodes N for processes",
    "--processes": "pass --nodes N",
    "-l": "pass --log-level LEVEL",
    "--loglevel": "pass --log-level LEVEL",
    "--reload": "pass --watch",
    "--replication-factor": "pass --replicas N",
    "--delete-config": "pass --default NAME",
    "--execute": "pass --yes",
    "--force": "pass --yes",
    "--to-datetime": "pass --to-time TIME",
    "--by-duration": "pass --to-time with an age, as in 2h",
    "-H": "pass --header NAME=VALUE",
    "-K": "pass --key-separator TEXT",
    "-J": "pass --json",
    "-X": PROPERTY,
    "--property": PROPERTY,
    "--command-config": PROPERTY,
    "--consumer-property": PROPERTY,
    "--producer-property": PROPERTY,
}
"""Options of others, and what to do instead."""


def option_advice(option: str, command: str, subcommands: Collection[str] = ()) -> str | None:
    """Returns what to type instead of an option that a command (as in `topics list`) does not have; None if unknown."""
    name = option.lstrip("-")
    if name in subcommands:  # As `kafka-topics --list`.
        return f"it is a command: awoke {command} {name}"
    advice = OPTIONS.get(option)
    return None if advice is None else advice.format(command=command)
