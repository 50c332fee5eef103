"""Completion in real shells: what the Tab key offers, from the scripts that `awoke --show-completion` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OFFERED = [
    ("awoke top", {"top", "topics"}, {"tail"}),
    ("awoke topics de", {"describe", "delete"}, {"list", "create"}),
    ("awoke topics delete --d", {"--dry-run"}, {"--yes"}),
    ("awoke dead-letter ", {"list", "purge", "replay"}, {"topics"}),
    ("awoke act shop:app se", {"seek"}, {"skip"}),
]
"""A line, words that are offered for its last one, and words that are not."""

BASH = """
source <(awoke --show-completion)
COMP_WORDS=($LINE)
[[ $LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_awoke_completion awoke
printf '%s\\n' "${COMPREPLY[@]}"
"""

ZSH = """
autoload -U compinit && compinit -u
source <(awoke --show-completion)
_arguments() { print -r -- "$@" }
words=(${(z)LINE})
[[ $LINE == *" " ]] && words+=("")
CURRENT=$#words
_awoke_completion
"""

FISH = """
awoke --show-completion | source
complete --do-complete "$LINE"
"""


def shell_says(shell: str, script: str, line: str, folder: Path) -> str:
    """Runs a script in a shell that finds `awoke`, with a line to be completed. Blocks."""
    program = folder / "awoke"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom awoke.__main__ import main\nsys.exit(main())\n")
    program.chmod(0o700)
    own = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LINE": line,
    }
    file = folder / f"script.{shell}"
    file.write_text(script)
    done = subprocess.run([shell, str(file)], env=own, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("line", "offered", "not_offered"), OFFERED, ids=[line for line, _, _ in OFFERED])
@pytest.mark.parametrize(
    ("shell", "script"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)], ids=["bash", "zsh", "fish"]
)
def test_a_shell_offers_the_words_that_commands_declare(
    shell: str, script: str, line: str, offered: set[str], not_offered: set[str], tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    shown = shell_says(shell, script, line, tmp_path)
    words = {
        word for each in shown.splitlines() for word in [each.partition("\t")[0].partition('":"')[0].strip('" ()')]
    }
    words |= {each.strip('"') for each in shown.replace('":"', '" ').split('"')}
    assert offered <= words, shown
    assert not (not_offered & words), shown
