"""Text of messages reaches no terminal and no log as it is, whatever bytes a topic holds."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import sys
import unicodedata
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import awoke
from awoke.cli import dead_letter as commands
from awoke.cli import failures, letters, output, rpc, tail
from awoke.observe import logs
from awoke.observe.events import JobFailed, NamedEvent, PartitionPaused
from awoke.observe.events.bus import write
from awoke.observe.logs import ConsoleFormatter, JsonFormatter
from awoke.observe.metrics.recorder import Health
from awoke.observe.web.endpoint import Endpoint
from awoke.payloads import dead_letter
from awoke.payloads.dead_letter import letter
from awoke.text.printable import harmless, harmless_json, printable, shown
from tests.support.messages import stored_message

HOSTILE = "\x00\x07\x1b[31m\x7f\x9b2J\u202e\u2066\u200b\u2028\u2029\u00ad\U000e0041\ufeff\r\n\t\\x1b\\n[/x][red]:boom:"
"""Control characters of both sets, bidirectional overrides, separators, a tag, text that looks escaped, markup."""

CLI = Path(awoke.__file__).parent / "cli"

texts = st.text(st.one_of(st.sampled_from(HOSTILE), st.characters()), max_size=40)
contents = st.one_of(st.binary(max_size=40), texts.map(lambda text: text.encode(errors="surrogatepass")))


def controls_in(text: str, allowed: str = "") -> list[str]:
    """The characters of a text that a terminal obeys, but for those that awoke puts there itself."""
    return [
        each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") and each not in allowed
    ]


@given(st.one_of(texts, contents))
def test_printable_text_has_no_controls_and_is_unambiguous(content: str | bytes) -> None:
    text = printable(content)
    assert controls_in(text) == []
    assert read_back(text, is_text=isinstance(content, str)) == content


def read_back(text: str, *, is_text: bool) -> str | bytes:
    """Returns the original of a printable text: its escapes are Python's."""
    if is_text:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    found, rest = b"", text
    while rest:
        length = {"\\x": 4, "\\u": 6, "\\U": 10}.get(rest[:2], 2 if rest[0] == "\\" else 1)
        character = rest[:length].encode("latin-1", "backslashreplace").decode("unicode_escape")
        is_byte = rest.startswith("\\x")
        found += character.encode("latin-1") if is_byte else character.encode()
        rest = rest[length:]
    return found


@given(texts)
def test_a_line_of_awokes_is_harmless(text: str) -> None:
    assert controls_in(harmless(text)) == []
    assert harmless(harmless(text)) == harmless(text)
    assert controls_in(harmless(text, keep="\n"), "\n") == []


@given(
    st.recursive(
        texts.filter(str.isprintable) | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
        max_leaves=10,
    )
)
def test_json_is_harmless_and_means_the_same(document: Any) -> None:
    encoded = json.dumps(document, ensure_ascii=False)
    assert controls_in(harmless_json(encoded)) == []
    assert json.loads(harmless_json(encoded)) == document


@given(contents, st.none() | contents)
def test_tail_shows_no_controls(value: bytes, key: bytes | None) -> None:
    message: Any = stored_message(key, value, [("trace", value)])
    line = tail.plain(message, True)
    assert controls_in(line, "\t") == []
    assert line.count("\t") == 1
    assert tail.raw_of(message, False) == value


def test_tail_writes_bytes_as_they_are_where_that_is_asked_for(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    messages: list[Any] = [stored_message(b"k\xff", b"\x1b[31m\xff", []), stored_message(None, None, [])]
    tail.show(iter(messages), None, tail.writer(as_json=False, is_raw=True, with_keys=True))
    assert capsysbinary.readouterr().out == b"k\xff\t\x1b[31m\xff\n\t\n"
    tail.show(iter(messages), 1, tail.writer(as_json=False, is_raw=False, with_keys=False))
    assert capsysbinary.readouterr().out == b"\\x1b[31m\\xff\n"


@given(contents, st.none() | contents, texts, texts, texts)
def test_dead_letters_are_shown_without_controls(
    value: bytes, key: bytes | None, error: str, name: str, handler: str
) -> None:
    name = name.encode(errors="replace").decode()  # As the engine decodes names.
    message: Any = stored_message(key, value, [(name, value)], topic=name or "t")
    record = letter(message, name, 3, ValueError(error), handler)
    headers = [(each[0], each[1].encode(errors="replace")) for each in record.headers or [] if isinstance(each[1], str)]
    stored = stored_message(key, value, [(name, value), *headers])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letters, "messages", lambda *_: iter([stored]))
        for show, allowed in SHOWN.items():
            with contextlib.redirect_stdout(io.StringIO()) as written:
                show("t")
            assert controls_in(written.getvalue(), allowed) == []
            assert (
                "1 " in written.getvalue()
                or '"attempts":3' in written.getvalue()
                or "attempts: 3" in written.getvalue()
            )


SHOWN: dict[Callable[[str], None], str] = {
    commands.list_letters: "\n",
    partial(commands.list_letters, full=True): "\n",
    partial(commands.list_letters, as_json=True): "\n",
    commands.summarize: "\n",
    partial(commands.summarize, by="key"): "\n",
    partial(commands.show, place="0:7"): "\n\t",
    partial(commands.show, place="0:7", as_json=True): "\n",
}
"""A command that shows dead letters, and awoke's own control characters in its output."""


@pytest.mark.parametrize("columns", ["40", "200"])
def test_tables_hold_text_and_no_markup(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    method = {"signature": HOSTILE, "result_type": HOSTILE, "doc": HOSTILE, "is_idempotent": True, "is_stream": True}
    output.show_table(("method", "idempotent", "returns", "what it does"), [rpc.cells(method)], title=HOSTILE)
    output.say(HOSTILE)
    output.say_styled(HOSTILE, "red", err=True)
    written = capsys.readouterr()
    assert controls_in(written.out + written.err, "\n") == []
    assert "[/x][red]:boom:" in written.err
    assert columns == "40" or "[/x][red]:boom:" in written.out


def test_an_error_of_a_responder_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = awoke.rpc.Internal(HOSTILE)
    error.remote_traceback = f"Traceback\n  {HOSTILE}"
    caller: Any = None
    failures.show(rpc.with_advice(caller, error))
    written = capsys.readouterr().err
    assert controls_in(written, "\n") == []
    assert written.count("\n") == 2  # The second one names its page.


@given(texts, contents)
def test_a_log_line_is_one_record(text: str, value: bytes) -> None:
    for form in (ConsoleFormatter(logs.FORMAT), JsonFormatter()):
        for name, written in zip(("job.failed", "shop.opened"), logged(form, text, value), strict=True):
            first, *rest = written.split("\n")
            assert controls_in(written, "\n\t" if isinstance(form, ConsoleFormatter) else "") == []
            assert all(line.startswith("    ") for line in rest), "only a record begins at the left"
            assert name in first


def logged(form: logging.Formatter, text: str, value: bytes) -> Iterator[str]:
    """Returns the log lines of an event whose error, key and topic come from outside."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler, logger = Handler(), logging.getLogger("awoke.events")
    handler.setFormatter(form)
    logger.addHandler(handler)
    try:
        raise Custom(text)
    except Custom as error:
        failed = JobFailed(handler=text, topic=text, partition=0, offset=0, attempt=1, retry_in_s=None, error=error)
        write(failed, logging.ERROR)
        write(NamedEvent(name="shop.opened", values={"topic": text, "key": value}), logging.ERROR)
    finally:
        logger.removeHandler(handler)
    return iter(lines)


class Custom(Exception):
    """Of user code, with a text of its own."""

    def __repr__(self) -> str:
        return f"Custom: {self.args[0]}"


class Broken(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


def test_an_error_without_a_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert shown(Broken()) == "<Broken, whose repr failed>"
    with caplog.at_level(logging.WARNING, logger="awoke.events"):
        write(PartitionPaused(topic="orders", partition=0, error=Broken()), logging.WARNING)
    assert "whose repr failed" in caplog.text
    assert "whose str failed" in JsonFormatter().format(caplog.records[0])
    message: Any = stored_message(None, b"", [])
    assert ("awoke-error-message", "<Broken, whose str failed>") in (letter(message, "g", 1, Broken()).headers or [])


def test_a_dead_letter_of_any_error_can_be_sent() -> None:
    message: Any = stored_message(None, b"", [])
    made = letter(message, "group", 1, ValueError("lone \ud800"), "charge")
    assert dict(made.headers or [])[dead_letter.ERROR_TEXT] == r"lone \ud800"


def test_what_does_not_decode_is_named_without_controls() -> None:
    error = awoke.DecodeError("Object contains unknown field `\x1b[31m`", "orders", 0, 1)
    assert str(error) == r"Object contains unknown field `\x1b[31m`"
    assert controls_in(repr(error)) == []


class Shown:
    """An app whose threads have hostile names."""

    owner = name = started_at = HOSTILE

    def health(self) -> Health:
        return Health(False, [HOSTILE])

    def why_not_ready(self) -> str | None:
        return HOSTILE

    def status(self) -> dict[str, Any]:
        return {"reason": HOSTILE}

    def threads(self) -> list[Shown]:
        return [self]

    def metrics_text(self) -> bytes:
        return b""


@pytest.mark.parametrize("path", ["threads", "status", "health", "ready"])
def test_endpoints_answer_without_controls(path: str) -> None:
    endpoint = Endpoint(0, Shown())
    endpoint.start()
    try:
        with urllib.request.build_opener(Patient()).open(
            f"http://127.0.0.1:{endpoint.port}/{path}", timeout=10
        ) as answer:
            body = answer.read().decode()
    finally:
        endpoint.close()
    assert controls_in(body) == []
    assert HOSTILE in json.loads(body)[0].values() if path == "threads" else HOSTILE in str_values(json.loads(body))


class Patient(urllib.request.HTTPErrorProcessor):
    """Takes 503 for an answer, which it is."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def str_values(document: dict[str, Any]) -> list[str]:
    return [each for value in document.values() for each in (value if isinstance(value, list) else [value])]


def test_a_console_that_knows_few_characters_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    output.take_any_text()
    output.say("caf\u00e9 \u65e5")
    stream.flush()
    assert stream.buffer.getvalue() == b"caf\xe9 \\u65e5\n"


@pytest.mark.parametrize("file", sorted(CLI.glob("*.py")), ids=lambda file: file.name)
def test_only_one_module_writes_to_the_terminal(file: Path) -> None:
    if file.name == "output.py":
        return
    written = {"typer.echo", "typer.secho", "typer.confirm", "typer.prompt", "print", "sys.stdout", "sys.stderr"}
    drawn = {"rich.table", "rich.console", "rich.text", "rich.markup"}
    # The progress bar has awoke's own words only; `awoke top` makes its cells harmless itself (`test_top.py`).
    allowed = {"produce.py": {"rich.console", "rich.text"}, "top.py": drawn}.get(file.name, set())
    tree = ast.parse(file.read_text())
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))}
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert used & written == set(), f"{file.name}: use awoke.cli.output, which makes text harmless"
    assert imported & drawn <= allowed


def test_nothing_else_of_awoke_prints() -> None:
    for file in CLI.parent.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        assert "print" not in {ast.unparse(call.func) for call in calls}, f"{file.name} prints past awoke.cli.output"
        assert "print_exc(" not in file.read_text(), f"{file.name} prints a traceback as it is"
        assert "from_markup" not in file.read_text(), f"{file.name} parses text as markup"
