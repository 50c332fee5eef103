"""`awoke record`: which records it takes, masks, and writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke import testing
from awoke.app import application
from awoke.testing.recordings.masks import MaskRefused
from awoke.testing.recordings.recording import Recording, read_recording
from tests.support.clusters import MockCluster, unique
from tests.unit.cli.fakes import run

MESSAGES = [
    testing.message(
        b'{"card":"%d"}' % (10 * partition + offset), partition=partition, offset=offset, timestamp_ms=1_000 * offset
    )
    for offset in range(4)
    for partition in range(2)
]


class FakeReader:
    """A reader of the messages above."""

    made: list[tuple[str, Any]] = []

    def __init__(self, topic: str, *, start: Any, **options: Any) -> None:
        self.made.append((topic, start))

    def __enter__(self) -> FakeReader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def read_until_end(self) -> Iterator[Any]:
        return iter(MESSAGES)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The readers that a command makes."""
    monkeypatch.setattr(awoke, "Reader", FakeReader)
    monkeypatch.setattr(FakeReader, "made", [])
    return FakeReader.made


def recorded(path: Path, *options: str) -> Recording:
    run("record", "orders", str(path), *options)
    return read_recording(path)


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ([], "earliest"),
        (["--from", "42"], 42),
        (["--from", "2026-01-31T12:00Z"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (["--last", "5"], -5),
        (["--partition", "3", "--from", "7"], {3: 7}),
    ],
)
def test_reading_begins_where_the_options_say(
    options: list[str], start: Any, made: list[tuple[str, Any]], tmp_path: Path
) -> None:
    recorded(tmp_path / "a", *options)
    assert made == [("orders", start)]


@pytest.mark.parametrize(
    ("end", "offsets"), [([], [0, 1, 2, 3]), (["--to", "2"], [0, 1]), (["--to", "1970-01-01T00:00:03Z"], [0, 1, 2])]
)
def test_records_are_taken_up_to_the_end_of_each_partition(
    made: list[Any], tmp_path: Path, end: list[str], offsets: list[int]
) -> None:
    recording = recorded(tmp_path / "a", *end)
    assert [(each.partition, each.parts.offset) for each in recording.records] == [
        (partition, offset) for partition in range(2) for offset in offsets
    ]


def test_masks_are_applied_and_named(made: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(tmp_path / "a", "--mask", "card", "--mask-with", "stars")
    assert {each.parts.value for each in recording.records} == {b'{"card":"***"}'}
    assert recording.masked == ["value:card"]
    monkeypatch.setenv("AWOKE_MASK_KEY", "key")
    assert recorded(tmp_path / "b", "--mask", "card") == recorded(tmp_path / "c", "--mask", "card")


def test_nothing_is_written_if_a_mask_finds_nothing(made: list[Any], tmp_path: Path) -> None:
    with pytest.raises(MaskRefused, match="--mask crad"):
        recorded(tmp_path / "a", "--mask", "crad")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "value"), [("--to", "soon"), ("--mask-with", "foo"), ("--mask", ".")])
def test_a_wrong_option_is_refused_before_anything_is_read(
    made: list[Any], tmp_path: Path, option: str, value: str
) -> None:
    with pytest.raises(awoke.ConfigError, match=option):
        recorded(tmp_path / "a", option, value)
    assert made == []


def test_a_file_that_is_there_is_kept_unless_overwrite_is_said(made: list[Any], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("kept")
    with pytest.raises(awoke.ConfigError, match="--overwrite"):
        recorded(tmp_path / "a")
    assert (made, (tmp_path / "a").read_text()) == ([], "kept")
    assert len(recorded(tmp_path / "a", "--overwrite").records) == 8


def test_a_topic_of_a_broker_is_recorded(mock_cluster: MockCluster, tmp_path: Path) -> None:
    topic = unique("recorded")
    mock_cluster.create_topic(topic, 1)
    with awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        producer.produce(topic, b"\xff", key="k", headers={"h": "x"}).wait(30)
    done = run("record", topic, str(tmp_path / "a"), "-b", mock_cluster.bootstrap_servers)
    assert done.output == f"recorded 1 message of {topic} into {tmp_path / 'a'}\n"
    ((_, parts),) = read_recording(tmp_path / "a").records
    assert (parts.value, parts.key, parts.headers) == (b"\xff", b"k", [("h", b"x")])


class Order(msgspec.Struct):
    card: Annotated[str, awoke.Secret]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app `shop:app`, whose orders have a secret field."""

    def found(target: str) -> awoke.App:
        app = awoke.App("shop")

        @app.on("orders", output="receipts", dead_letter="dead", retry=awoke.Retry(attempts=1))
        def charge(message: awoke.Message[Order]) -> dict[str, str]:
            return {"paid_with": message.value.card}

        return app

    monkeypatch.setattr(application, "find_app", found)


def test_secret_fields_of_an_app_are_masked_and_named(
    made: list[Any], shop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeReader, "read_until_end", lambda self: iter(SECRETS))
    path = tmp_path / "a"
    done = run("record", "orders", str(path), "--app", "shop:app", "--mask", "id", "--mask-with", "stars")
    assert done.output.endswith("; masked the secret fields of shop:app: value:card\n")
    recording = read_recording(path)
    assert [each.parts.value for each in recording.records] == [b'{"id":0,"card":"***"}'] * 2
    assert recording.masked == ["value:id", "value:card"]
    assert run("replay", str(path), "shop:app", "--update").exit_code == 0
    assert "4711" not in Path(f"{path}.expected").read_text()
    assert run("replay", str(path), "shop:app").output == "replayed 2 messages: no difference\n"


SECRETS = [testing.message(b'{"id":%d,"card":"4711"}' % offset, offset=offset, timestamp_ms=0) for offset in range(2)]


def test_secret_fields_are_kept_only_if_that_is_said(
    made: list[Any], shop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeReader, "read_until_end", lambda self: iter(SECRETS))
    done = run("record", "orders", str(tmp_path / "a"), "--app", "shop:app", "--keep-secrets")
    assert done.output.endswith("; the secret fields of shop:app are in it as they were\n")
    assert read_recording(tmp_path / "a").records[0].parts.value == b'{"id":0,"card":"4711"}'
    done = run("record", "clicks", str(tmp_path / "b"), "--app", "shop:app")
    assert done.output.endswith("; it has no secret fields\n")
    with pytest.raises(awoke.ConfigError, match="--app"):
        recorded(tmp_path / "c", "--keep-secrets")
