"""Commands in a shell: pipes between them, a full disk, closed streams, odd encodings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster

AWOKE = f"{sys.executable} -m awoke"
TEXT = "\u00fc\u20ac\U0001f600"
MESSAGES: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (b"\xff\x00", b"\x80\xfe", [("id", b"\xff"), ("id", None), (TEXT, b"v")]),
    (TEXT.encode(), b"7", []),
    (None, b"gone", []),
    (b'{"base64": "/wA="}', None, [("a", b'{"base64": "!"}')]),
    (b"", b"", [("b", b"")]),
]


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with EmbeddedCluster() as cluster:
        for topic in ("from", "to", "ascii"):
            cluster.create_topic(topic)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number, (value, key, headers) in enumerate(MESSAGES, 1):
                producer.produce("from", value, key=key, headers=headers, timestamp_ms=number).wait(30)
        yield cluster.bootstrap_servers


def shell(command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command of the shell in which `awoke` is this one. Blocks."""
    script = f'set -o pipefail; awoke() {{ {AWOKE} "$@"; }}; {command}'
    own = {**os.environ, **env}
    return subprocess.run(["bash", "-c", script], env=own, capture_output=True, check=False, timeout=120)


def messages_of(brokers: str, topic: str) -> list[tuple[object, ...]]:
    with awoke.Reader(topic, bootstrap_servers=brokers, start="earliest") as reader:
        return [
            (each.value, each.key, list(each.headers), each.partition, each.timestamp_ms)
            for each in reader.read_until_end()
        ]


@pytest.mark.parametrize(("topic", "encoding"), [("to", "utf-8"), ("ascii", "ascii")])
def test_a_topic_is_copied_by_a_pipe_byte_for_byte(brokers: str, topic: str, encoding: str) -> None:
    reading = f"awoke tail from --until-end --json -b {brokers}"
    done = shell(f"{reading} | awoke produce {topic} --format envelope -b {brokers} --quiet", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert messages_of(brokers, topic) == messages_of(brokers, "from")
    assert [each[:3] for each in messages_of(brokers, topic)] == MESSAGES


@pytest.mark.parametrize("command", ["--version --verbose", "doctor --help", "deploy grafana"])
def test_a_full_disk_is_one_line_and_an_exit_code(command: str) -> None:
    done = shell(f"awoke {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == b"error: the output can't be written: No space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_command_works_whatever_stream_is_closed(closed: str, brokers: str) -> None:
    done = shell(f"awoke topics list -b {brokers} {closed}")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert (b"from" in done.stdout) is (">&-" not in closed.replace("2>&-", ""))


def test_input_that_is_closed_is_empty(brokers: str) -> None:
    done = shell(f"awoke produce to -b {brokers} <&-")
    assert (done.returncode, done.stderr) == (0, b"delivered 0 messages to to\n")


def test_a_reader_that_has_seen_enough_ends_a_command_in_silence(brokers: str) -> None:
    done = shell(f"awoke tail from --until-end --json -b {brokers} | head -n 1; echo ${{PIPESTATUS[0]}} >&2")
    assert json.loads(done.stdout)["offset"] == 0
    assert done.stderr.split()[0] in (b"0", b"1")
