"""`awoke dead-letter`: what of the letters is shown, counted and sent again, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.app import application
from awoke.cli import dead_letter as commands
from awoke.cli import letters
from awoke.cli.consent import Consent
from awoke.cli.dead_letter import (
    Group,
    Targets,
    as_document,
    cells,
    confirm_all,
    in_column,
    in_range,
    left_out,
    report,
    whole,
)
from awoke.operate.dead_letters.letters import Letter, letter_of
from awoke.payloads import dead_letter as form
from awoke.payloads.registry import Schema, SchemaRegistry
from awoke.testing.registry import EmbeddedRegistry
from tests.support.clusters import MockCluster, unique
from tests.support.messages import changed, stored_message
from tests.unit.cli.fakes import FIRST_MS, FakeAdmin, letter, run, stored

STRANGER: Any = stored_message(None, b"no letter", [])


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages of the dead letter topic."""
    messages: list[Any] = []

    def read(*_: Any) -> Iterator[Any]:
        return iter(messages)

    monkeypatch.setattr(letters, "messages", read)
    return messages


def test_letters_are_listed_in_columns_and_strangers_are_counted(topic: list[Any]) -> None:
    topic += [stored(0), STRANGER, stored(12, error_text="no bank", topic="payments")]
    names, first, second, count = run("dead-letter", "list", "dead").output.splitlines()
    assert names.split() == ["at", "from", "group", "attempts", "failed", "at", "error"]
    assert first.split()[:5] == ["0:0", "orders[3]", "5", "billing", "2"]
    assert second.startswith("0:12  payments[3] 5  billing")
    assert second.endswith("ValueError: no bank")
    assert count == "2 dead letters; 1 other message skipped"


def test_a_list_is_limited_and_filtered(topic: list[Any]) -> None:
    topic += [stored(number, error_text="no bank" if number % 2 else "no card") for number in range(6)]
    assert run("dead-letter", "list", "dead", "--limit", "4").output.endswith("4 dead letters\n")
    assert run("dead-letter", "list", "dead", "--error", "BANK", "--limit", "1").output.splitlines()[1][:3] == "0:1"
    assert run("dead-letter", "list", "dead", "--handler", "other").output.endswith("0 dead letters\n")


def test_a_list_for_programs_has_a_document_a_line(topic: list[Any]) -> None:
    topic.append(stored(4, value=b"\xff", origin_offset="9" * 40))
    first, count = run("dead-letter", "list", "dead", "--json").output.splitlines()
    document = json.loads(first)
    assert (document["offset"], document["value"], document["origin"]["offset"]) == (4, {"base64": "/w=="}, "9" * 40)
    assert (document["origin"]["error_text"], document["origin"]["failed_at_ms"]) == ("no card", FIRST_MS)
    assert count == "1 dead letter"


def test_errors_and_keys_are_complete_if_that_is_wanted() -> None:
    long = letter(error_text="x" * 100)
    assert cells(long, full=False)[-1] == "ValueError: " + "x" * 47 + "…"
    assert cells(long, full=True)[-1] == "ValueError: " + "x" * 100
    assert cells(long, full=True)[1] == "orders[3] 5 key k"


@pytest.mark.parametrize(
    ("words", "shown"),
    [("x" * 60, "x" * 60), ("x" * 61, "x" * 59 + "…"), ("\x1b" * 30, r"\x1b" * 14 + r"\x1" + "…"), ("", "")],
)
def test_text_is_shortened_to_the_width_of_its_column_after_its_escapes(words: str, shown: str) -> None:
    assert in_column(words) == shown


def test_a_summary_counts_by_a_field_the_most_frequent_first(topic: list[Any]) -> None:
    topic += [
        stored(0, error_type="TimeoutError"),
        stored(1, failed_at_ms=str(FIRST_MS + 9), key=b"\xff"),
        STRANGER,
        stored(2, failed_at_ms=str(FIRST_MS - 9)),
    ]
    lines = map(json.loads, run("dead-letter", "summary", "dead", "--json").output.splitlines())
    assert [(each["error"], each["count"]) for each in lines] == [("ValueError", 2), ("TimeoutError", 1)]
    found = run("dead-letter", "summary", "dead", "--by", "key").output.splitlines()
    assert [line.split()[:2] for line in found] == [["count", "key"], ["2", "k"], ["1", r"\\xff"]]
    assert run("dead-letter", "summary", "dead", "--by", "topic", "--handler", "none").output.count("\n") == 1


def test_a_summary_by_something_else_is_refused(topic: list[Any]) -> None:
    with pytest.raises(awoke.ConfigError, match="--by takes one of error, text, topic, handler, key, not 'colour'"):
        run("dead-letter", "summary", "dead", "--by", "colour")


def test_a_group_keeps_its_first_and_last_time_and_one_example() -> None:
    group = Group(letter(7, error_text="first"))
    for at_ms in (FIRST_MS + 9, FIRST_MS - 9, FIRST_MS):
        group.add(letter(8, failed_at_ms=str(at_ms)))
    assert group.as_dict() == {
        "count": 3,
        "first_ms": FIRST_MS - 9,
        "last_ms": FIRST_MS + 9,
        "at": "0:7",
        "example": "ValueError: first",
    }
    assert group.cells()[2:] == ("0:7", "ValueError: first")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, 7),
        ((1 << 63) - 1, (1 << 63) - 1),
        (1 << 63, str(1 << 63)),
        (-(1 << 63), -(1 << 63)),
        (-(1 << 63) - 1, str(-(1 << 63) - 1)),
        ("text", "text"),
        (None, None),
    ],
)
def test_a_number_that_json_can_not_hold_is_text(value: Any, shown: Any) -> None:
    assert in_range(value) == shown


def test_a_letter_is_shown_completely(topic: list[Any]) -> None:
    topic += [stored(6), stored(7, value=b"first\n\tsecond\x1b", error_text="no card\nsays the bank")]
    shown = run("dead-letter", "show", "dead", "0:7").output
    assert "topic: orders\npartition: 3\noffset: 5\n" in shown
    assert "error_text: no card\n    says the bank\n" in shown, "no line of an error looks like another field"
    assert shown.endswith("key: k\nheaders:\n  trace: a\nvalue:\nfirst\n\tsecond\\x1b\n")
    assert "value_bytes" not in shown
    assert json.loads(run("dead-letter", "show", "dead", "0:7", "--json").output) == json.loads(
        as_document(letter_of(topic[1]))
    )


def test_a_letter_without_its_value_shows_size_and_digest() -> None:
    message = stored()
    more = [(form.VALUE_BYTES, b"5000"), (form.VALUE_SHA256, b"abc")]
    shown = whole(letter_of(changed(message, headers=[*message.headers, *more], value=b"")))
    assert "value_bytes: 5000\nvalue_sha256: abc\n" in shown


@pytest.mark.parametrize(
    ("place", "said"), [("0:9", r"dead\[0\] has no message at offset 9"), ("0:7", "no dead letter")]
)
def test_a_place_without_a_letter_is_named(place: str, said: str, topic: list[Any]) -> None:
    topic.append(STRANGER)
    with pytest.raises(awoke.AwokeError, match=said):
        run("dead-letter", "show", "dead", place)


def test_a_replay_reads_all_letters_and_checks_the_places_that_were_named(topic: list[Any]) -> None:
    topic += [stored(0), STRANGER, stored(1)]
    assert [each.place for each in commands.read_all("dead", [(0, 1)], None, None)] == [(0, 0), (0, 1)]
    with pytest.raises(awoke.AwokeError, match=r"dead\[0\] has no message at offset 5"):
        commands.read_all("dead", [(1, 0), (0, 5)], None, None)
    with pytest.raises(awoke.AwokeError, match="is no dead letter"):
        commands.read_all("dead", [(0, 7)], None, None)


def test_an_empty_topic_has_nothing_to_replay(topic: list[Any]) -> None:
    topic.append(STRANGER)
    with pytest.raises(awoke.AwokeError, match="dead holds no dead letters"):
        run("dead-letter", "replay", "dead")


class FakeMemory:
    """Knows the letters that were sent before; `checked` has the letters whose room was asked for."""

    def __init__(self, *sent: tuple[int, int]) -> None:
        self._sent = sent
        self.opened: tuple[Any, ...] = ()
        self.checked: list[Letter] = []

    def __call__(self, *options: Any) -> FakeMemory:
        self.opened = options
        return self

    def __enter__(self) -> FakeMemory:
        return self

    def __exit__(self, *_: object) -> None: ...

    def load(self, found: list[Letter], partitions: list[int], tell: Callable[[str], object]) -> None: ...

    def has_sent(self, each: Letter) -> bool:
        return each.place in self._sent

    def check_room(self, wanted: list[Letter]) -> None:
        self.checked = wanted


class FakeSender:
    """Sends letters, and refuses those of the offsets `refused`."""

    refused: tuple[int, ...] = ()
    made: list[FakeSender] = []

    def __init__(self, producer: Any, memory: Any, targets: Targets, rate: float | None) -> None:
        self.rate, self.targets = rate, targets
        self.sent, self.failures = 0, list[tuple[Letter, BaseException]]()
        self.chosen: list[Letter] = []
        self.made.append(self)

    def send(self, chosen: list[Letter], stop_at_failure: bool) -> None:
        self.chosen = chosen
        for each in chosen:
            if each.message.offset in self.refused:
                self.failures.append((each, ValueError("too large")))
                if stop_at_failure:
                    return
            else:
                self.sent += 1


class FakeProducer:
    """A producer that is not used."""

    made: list[dict[str, Any]] = []

    def __init__(self, bootstrap_servers: str | None, **options: Any) -> None:
        self.made.append({"bootstrap_servers": bootstrap_servers, **options})

    def __enter__(self) -> FakeProducer:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, topic: list[Any]) -> FakeMemory:
    """A dead letter topic with five letters, of which the second was sent before."""
    topic += [stored(number, error_text=f"error {number}") for number in range(5)]
    memory = FakeMemory((0, 1))
    monkeypatch.setattr(commands, "ReplayMemory", memory)
    monkeypatch.setattr(commands, "Sender", FakeSender)
    monkeypatch.setattr(FakeSender, "made", [])
    monkeypatch.setattr(FakeSender, "refused", ())
    monkeypatch.setattr(FakeProducer, "made", [])
    monkeypatch.setattr(awoke, "Producer", FakeProducer)
    monkeypatch.setattr(awoke, "Admin", FakeAdmin(dead={0: (0, 5)}))
    return memory


def offsets_sent() -> list[int]:
    (sender,) = FakeSender.made
    return [each.message.offset for each in sender.chosen]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ([], [0, 2, 3, 4]),
        (["--again"], [0, 1, 2, 3, 4]),
        (["--only", "0:3", "--only", "0:2"], [2, 3]),
        (["--error", "error 4"], [4]),
        (["--only", "0:3", "--error", "error 4", "--again"], []),
    ],
)
def test_letters_are_sent_that_are_chosen_and_were_not_sent_before(
    options: list[str], offsets: list[int], memory: FakeMemory
) -> None:
    done = run("dead-letter", "replay", "dead", "--yes-topic", "orders", *options)
    if offsets:
        assert offsets_sent() == offsets
        assert done.output == f"sent {len(offsets)} to orders; the dead letters are still in dead\n"
        assert [each.message.offset for each in memory.checked] == offsets
    else:
        assert (done.output, FakeSender.made) == ("dry run: would send none\n", [])


def test_a_replay_that_is_only_tried_sends_nothing_and_names_foreign_topics(memory: FakeMemory) -> None:
    done = run("dead-letter", "replay", "dead", "--dry-run")
    assert done.output == (
        "dry run: would send 4 to orders (1 sent before are left out: --again sends them)\n"
        "it would ask about foreign topics: 4 to orders\n"
    )
    assert FakeSender.made == []
    assert "foreign" not in run("dead-letter", "replay", "dead", "--dry-run", "--topic", "repaired").output


def test_the_options_of_a_replay_reach_memory_sender_and_producer(memory: FakeMemory) -> None:
    run(
        "dead-letter", "replay", "dead", "--topic", "repaired", "--yes", "--rate", "5", "-b", "a:1", "--kafka", "acks=1"
    )
    assert list(memory.opened) == ["dead", "awoke-replay.dead", "a:1", {"acks": "1"}]
    (sender,), (producer,) = FakeSender.made, FakeProducer.made
    assert (sender.rate, sender.targets.of(letter())) == (5.0, "repaired")
    assert (producer["bootstrap_servers"], producer["kafka"]["acks"]) == ("a:1", "1")
    assert int(producer["kafka"]["message.max.bytes"]) == form.LETTER_BYTES_MAX
    run("dead-letter", "replay", "dead", "--topic", "repaired", "--yes", "--group", "mine")
    assert memory.opened[1] == "mine"


def test_letters_that_were_refused_are_named_and_the_replay_has_failed(
    memory: FakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSender, "refused", (2, 4))
    with pytest.raises(awoke.AwokeError, match="2 of 4 dead letters were not sent; the next replay sends them"):
        run("dead-letter", "replay", "dead", "--yes-topic", "orders")


def test_a_report_names_what_was_sent_and_the_first_failures(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [letter(number) for number in range(20)]
    sender: Any = FakeSender(None, None, Targets(None, None, []), None)
    sender.sent, sender.failures = 3, [(each, ValueError("too large")) for each in chosen[3:15]]
    with pytest.raises(awoke.AwokeError, match="17 of 20 dead letters were not sent"):
        report("dead", sender, Targets(None, None, []), chosen)
    written = capsys.readouterr()
    assert written.out == "sent 3 to orders; the dead letters are still in dead\n"
    assert written.err.splitlines() == [f"0:{number} was not sent: too large" for number in range(3, 13)]


def test_known_topics_are_confirmed_together_and_foreign_ones_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(question: str) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("awoke.cli.consent.ask", answer)
    monkeypatch.setattr("awoke.cli.dead_letter.ask", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    chosen = [letter(0, topic="signups"), letter(1, topic="orders"), letter(2, topic="signups")]
    known = Targets(None, "examples.hello:app", [])
    assert confirm_all(known, chosen, " (1 sent before)", Consent(False, False)) == chosen
    assert asked[0].startswith("Send 1 to orders? It is a foreign topic")
    assert asked[1:] == ["Send 2 to signups (1 sent before)?"]
    asked.clear()
    assert confirm_all(Targets(None, None, ["signups", "orders"]), chosen, "", Consent(False, False)) == chosen
    assert asked == [], "the operator has named each of them"


@pytest.mark.parametrize(("count", "said"), [(0, ""), (3, " (3 sent before are left out: --again sends them)")])
def test_letters_that_were_sent_before_are_mentioned(count: int, said: str) -> None:
    assert left_out(count) == said


def test_a_letter_is_shown_decoded(mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, letter_ = unique("dead"), stored(value=b'\0\0\0\0\1{"a": 1}')
    mock_cluster.create_topic(topic)
    monkeypatch.setenv("AWOKE_BOOTSTRAP_SERVERS", mock_cluster.bootstrap_servers)
    with EmbeddedRegistry() as registry, SchemaRegistry(registry.url) as client, awoke.Producer() as producer:
        client.register("orders-value", Schema('{"type": "object"}', "JSON"))
        for value in (letter_.value, b"{}"):
            producer.produce(topic, value, key=letter_.key, headers=letter_.headers).wait(30)
        words, at = ("dead-letter", "show", topic), ("--decode", "--registry-url", registry.url)
        assert run(*words, "0:0", *at).output.endswith('key: k\nheaders:\n  trace: a\nvalue:\n{\n  "a": 1\n}\n')
        document = json.loads(run(*words, "0:0", *at, "--json").output)
        undecoded = run(*words, "0:1", *at).output
    assert (document["value"], document["value_schema"], document["origin"]["topic"]) == ({"a": 1}, 1, "orders")
    assert undecoded.startswith(f"note: {topic}[0] offset 1: the value is not decoded: the bytes begin with 7b 7d")
    assert undecoded.endswith("value:\n{}\n")


class Order(msgspec.Struct):
    card: Annotated[str, awoke.Secret]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app `shop:app`, whose orders have a secret field, and go to the dead letter topic `orders.dead`."""

    def found(target: str) -> awoke.App:
        app = awoke.App("shop")

        @app.on("orders", dead_letter="orders.dead")
        def charge(message: awoke.Message[Order]) -> None: ...

        return app

    monkeypatch.setattr(application, "find_app", found)


def test_a_letter_is_shown_by_the_types_of_an_app_without_its_secrets(topic: list[Any], shop: None) -> None:
    topic += [stored(0, value=b'{"card":"4711"}'), stored(1, value=b'{"cardd":"4711"}')]
    words = ("dead-letter", "show", "orders.dead")
    assert run(*words, "0:0", "--app", "shop:app").output.endswith('value:\n{\n  "card": "[secret]"\n}\n')
    document = json.loads(run(*words, "0:0", "--app", "shop:app", "--json").output)
    assert (document["value"], document["origin"]["topic"]) == ({"card": "[secret]"}, "orders")
    hidden = run(*words, "0:1", "--app", "shop:app").output
    assert hidden.startswith("note: orders.dead[0] offset 1: the value is not decoded: it has secret fields, and is")
    assert hidden.endswith("value:\n[secret]\n")
    kept = run(*words, "0:0", "--app", "shop:app", "--keep-secrets").output
    assert kept.endswith('value:\n{\n  "card": "4711"\n}\n')


KEYS = [b'{"card":"4711"}', b'{"card":"4712"}', b'{"card":"4711"}', b'{"card":"4711"}\x1b']


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch, topic: list[Any]) -> None:
    """The app `shop:app`, whose keys have a secret field; the last of the letters has a key that does not decode."""

    def found(target: str) -> awoke.App:
        app = awoke.App("shop")
        app.on("orders", key=Order, value=Order, dead_letter="orders.dead")(lambda message: None)
        return app

    monkeypatch.setattr(application, "find_app", found)
    topic += [stored(number, key=key, value=key) for number, key in enumerate(KEYS)]


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("words", [["list", "--full"], ["list", "--json"], ["summary", "--by", "key"]])
def test_lists_and_summaries_show_no_secret_of_an_app(words: list[str]) -> None:
    command, *options = words
    call = ("dead-letter", command, "orders.dead", *options)
    found = run(*call, "--app", "shop:app").output
    assert "471" not in found
    assert found.count("[secret]") >= 3
    assert run(*call, "--app", "shop:app", "--keep-secrets").output.count("4711") >= 2
    assert "4711" in run(*call).output
    with pytest.raises(awoke.ConfigError, match="name it with --app"):
        run(*call, "--keep-secrets")


@pytest.mark.usefixtures("keyed")
def test_a_summary_counts_secret_keys_apart_and_shows_them_masked() -> None:
    words = ("dead-letter", "summary", "orders.dead", "--by", "key", "--json", "--app", "shop:app")
    found = [json.loads(line) for line in run(*words).output.splitlines()]
    assert [(each["count"], each["key"]) for each in found] == [
        (2, '{"card":"[secret]"}'),
        (1, "[secret]"),
        (1, '{"card":"[secret]"}'),
    ]
    by_error = run("dead-letter", "summary", "orders.dead", "--app", "shop:app").output
    assert by_error.splitlines()[1].split()[:2] == ["4", "ValueError"]


@pytest.mark.usefixtures("keyed")
def test_a_list_has_the_documents_of_the_app() -> None:
    lines = run("dead-letter", "list", "orders.dead", "--json", "--app", "shop:app").output.splitlines()
    first, last = json.loads(lines[0]), json.loads(lines[3])
    assert (first["key"], first["value"]) == ({"card": "[secret]"}, {"card": "[secret]"})
    assert (last["key"], last["value"], "hidden" in last["value_note"]) == ("[secret]", "[secret]", True)


def test_options_that_do_not_fit_an_app_are_refused(topic: list[Any], shop: None) -> None:
    words = ("dead-letter", "show", "orders.dead", "0:0")
    assert run(*words, "--app", "shop:app", "--decode").exit_code == 2
    with pytest.raises(awoke.ConfigError, match="name it with --app"):
        run(*words, "--keep-secrets")
