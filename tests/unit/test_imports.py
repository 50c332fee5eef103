"""A program loads what it uses, and no more: an import of awoke is small, and the command line's libraries stay out."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

OF_THE_COMMAND_LINE = {"click", "rich", "shellingham", "typer"}
OF_A_RUNNING_APP = {
    *("awoke.console", "awoke.observe.metrics", "awoke.observe.web", "awoke.runtime.extension"),
    *("http", "prometheus_client"),
}
OF_ANY_CLIENT = {"asyncio", "awoke._native", "msgspec", "ssl"}
OPTIONAL = {"opentelemetry", "pydantic"}

AN_APP = """
import awoke
app = awoke.App("shop", group="shop")
@app.on("orders")
def handle(message: awoke.Message[bytes]) -> None: ...
"""


def loaded_by(program: str) -> set[str]:
    """Returns the modules and packages that a program has loaded at its end, in a fresh process."""
    told = f"import atexit, sys\natexit.register(lambda: print('\\n', *sys.modules, file=sys.stderr))\n{program}"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def command(*words: str) -> str:
    """Returns a program that does what the script `awoke` does with these words."""
    return f"sys.argv = {['awoke', *words]!r}\nfrom awoke.cli import main\nmain()"


def test_an_import_loads_no_client() -> None:
    loaded = loaded_by("import awoke")
    assert loaded & (OF_THE_COMMAND_LINE | OF_A_RUNNING_APP | OF_ANY_CLIENT | OPTIONAL) == set()
    own = {name for name in loaded if name.startswith("awoke.")}
    assert own == {"awoke.preconditions", "awoke.preconditions.installation"}


def test_an_app_that_does_not_run_loads_nothing_of_a_running_one() -> None:
    assert loaded_by(AN_APP) & (OF_THE_COMMAND_LINE | OF_A_RUNNING_APP | OPTIONAL) == set()


def test_every_public_name_can_be_used_without_the_command_line() -> None:
    loaded = loaded_by("import awoke\nfor name in awoke.__all__: getattr(awoke, name)")
    assert loaded & (OF_THE_COMMAND_LINE | OPTIONAL) == set()


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_no_import_turns_the_gil_on() -> None:
    """Each module of the package, and all that they import. Django's need a project: they are left out."""
    program = (
        "import pkgutil, sys, awoke\n"
        "for module in pkgutil.walk_packages(awoke.__path__, 'awoke.'):\n"
        "    if not module.name.endswith('.__main__') and 'django' not in module.name: __import__(module.name)\n"
        "assert not sys._is_gil_enabled()"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [[], ["topics", "list"], ["run"], ["produce"]], ids=" ".join)
def test_a_page_of_help_loads_no_library_that_only_some_commands_use(words: list[str]) -> None:
    """Typer itself loads pydantic when it makes the parameters of a command."""
    loaded = loaded_by(command(*words, "--help"))
    assert loaded & {"asyncio", "awoke._native", "http", "prometheus_client", "rich", "ssl"} == set()
    assert words or loaded & {"email", "importlib.metadata", "pydantic"} == set()


def test_the_version_needs_the_native_module_and_no_event_loop() -> None:
    loaded = loaded_by(command("--version"))
    assert "awoke._native" in loaded
    assert loaded & {"asyncio", "prometheus_client", "rich"} == set()


def test_a_command_to_a_swarm_loads_no_kafka_client() -> None:
    asked = "from awoke.cli.swarm import ask\ntry: ask('shop:app', '/nowhere', 'status')\nexcept Exception: pass"
    assert loaded_by(asked) & {"asyncio", "awoke._native", "prometheus_client", "rich"} == set()
