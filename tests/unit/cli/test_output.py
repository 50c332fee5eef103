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


def test_a_table_folds_what_is_too_wide_and_cuts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    value = "abcdefghijklmnopqrstuvwxyz0123456789"
    output.show_table(("name", "value"), [("one", value), ("t\x1bwo", "x\ny")], title="all\x1b")
    written = capsys.readouterr().out
    cells = [line.split("│")[2].strip() for line in written.splitlines() if line.startswith("│")]
    assert "".join(cells) == value + "xy"
    assert r"all\x1b" in written
    assert r"t\x1bwo" in written
    assert max(map(len, written.splitlines())) <= 30


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
