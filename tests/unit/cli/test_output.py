"""The output of the commands: harmless text, JSON, tables, and bytes as they are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from awoke.cli import output


def test_a_line_is_made_harmless_but_for_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\tb\x1b[31m\n")
    output.say("a\tb\x1b[31m\nc", keep=output.KEPT)
    output.say("wrong", err=True)
    written = capsys.readouterr()
    assert written.out == "a\\tb\\x1b[31m\\n\na\tb\\x1b[31m\nc\n"
    assert written.err == "wrong\n"


def test_json_is_one_line_that_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"name": "a\u2028\x9b", "of": [1]}
    output.say_json(json.dumps(document, ensure_ascii=False, indent=1))
    written = capsys.readouterr().out
    assert written.count("\n") == 1
    assert written.rstrip("\n").isprintable()
    assert json.loads(written) == document


def test_a_styled_line_is_plain_and_whole_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[red]warning[/red] 'x' " * 30
    output.say_styled(text, "yellow", err=True)
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", text + "\n")


def test_bytes_are_written_unchanged_behind_the_text_before_them(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    sys.stdout.write("text ")
    output.write_raw(b"\x1b\xff")
    assert capsysbinary.readouterr().out == b"text \x1b\xff\n"


def test_a_table_cuts_nothing_and_a_cell_of_several_lines_continues_below_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = "abcdefghijklmnopqrstuvwxyz0123456789"
    output.show_table(("name", "value"), [("one", value), ("t\x1bwo", "x\ny")], title="all\x1b")
    assert capsys.readouterr().out.splitlines() == [
        r"all\x1b",
        "name     value",
        f"one      {value}",
        r"t\x1bwo  x",
        "         y",
    ]


def test_a_list_is_columns_for_people_and_documents_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", 7, None, [1, 2], True), ("b", 10, "x", [], False)]
    names = ("name", "next offset", "note", "replicas", "is made")
    output.show_list(names, rows, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "name  next offset  note  replicas  is made",
        "a               7  -     1,2       yes",
        "b              10  x               no",
    ]
    output.show_list(names, rows, as_json=True)
    first, _ = capsys.readouterr().out.splitlines()
    assert json.loads(first) == {"name": "a", "next_offset": 7, "note": None, "replicas": [1, 2], "is_made": True}


@pytest.mark.parametrize("answer", [True, False])
def test_a_question_is_harmless_and_answered_by_y_or_n(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("awoke.cli.output.typer.confirm", confirm)
    assert output.ask("Send to \x1b?") is answer
    assert asked == [r"Send to \x1b?"]


GONE = """
import sys
from awoke.cli import output
sys.stdin.read()
try:
    for _ in range(100_000):
        output.say("x" * 100)
except BrokenPipeError:
    output.drop_the_rest()
    sys.exit(7)
"""


def test_a_process_whose_reader_has_gone_ends_without_a_complaint() -> None:
    command = [sys.executable, "-c", GONE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert (process.wait(30), process.stderr.read()) == (7, b"")


def test_what_takes_long_is_counted_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(output.with_count(range(3), "message")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert list(output.with_count(range(1_234), "message")) == list(range(1_234))
    shown = capsys.readouterr()
    assert (shown.out, "1 messages read" in shown.err) == ("", True)
