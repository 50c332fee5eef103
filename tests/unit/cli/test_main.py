"""The command line as a whole: options before a command, the exit code of an error, and a reader that has gone."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

import awoke
from awoke.__main__ import is_command
from awoke.cli import versions
from awoke.cli.main import main
from tests.unit.cli.fakes import run


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The error that the next command raises."""
    errors: list[BaseException] = []

    def command() -> None:
        raise errors[0]

    module = sys.modules[main.__module__]  # `awoke.cli.main` is also the name of its function.
    monkeypatch.setattr(module, "command_line", lambda words: command)
    monkeypatch.setattr(sys, "argv", ["awoke", "tail", "orders"])
    return errors


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("run shop:app", True),
        ("--traceback run shop:app", True),
        ("--option value run shop:app", True),
        ("topics create run", False),
        ("--traceback topics create run", False),
        ("", False),
    ],
)
def test_a_run_is_known_before_anything_is_imported(words: str, is_so: bool) -> None:
    assert is_command(words.split(), "run") is is_so


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (awoke.ConfigError("no such option", "--yes"), 2),
        (awoke.AwokeError("no broker answers"), 1),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: awoke.AwokeError, code: int, failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(error)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"error: {error}\n")


def test_a_reader_that_has_gone_ends_the_command_in_silence(
    failing: list[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dropped: list[bool] = []
    monkeypatch.setattr("awoke.cli.output.drop_the_rest", lambda: dropped.append(True))
    failing.append(BrokenPipeError())
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, dropped) == (1, [True])
    assert capsys.readouterr().err == ""


def test_a_word_that_is_not_utf_8_is_one_line(
    failing: list[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    word = os.fsdecode(b"gr\xfcn")
    failing.append(UnicodeEncodeError("utf-8", word, 2, 3, "surrogates not allowed"))
    with pytest.raises(UnicodeEncodeError):
        main()
    monkeypatch.setattr(sys, "argv", ["awoke", "tail", word])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "is not UTF-8, which names in Kafka are\n" in capsys.readouterr().err


def test_a_working_folder_that_is_gone_is_one_line(
    failing: list[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("error: the working folder can't be read: No such file or directory. ")


def test_an_error_that_is_none_of_awokes_is_passed_on(failing: list[BaseException]) -> None:
    failing.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main()


def test_versions_are_one_line_and_no_command_is_needed() -> None:
    done = run("--version")
    assert (done.exit_code, done.output) == (0, versions.line() + "\n")
    for part in (awoke.__version__, awoke.librdkafka_version(), platform.python_version()):
        assert part in versions.line()


def test_without_a_command_help_is_shown() -> None:
    shown = run()
    assert shown.exit_code in (0, 2)
    assert "Run an app:" in shown.output


def test_an_unknown_command_is_named() -> None:
    done = run("tial", "orders")
    assert done.exit_code == 2
    assert "tial" in done.output
