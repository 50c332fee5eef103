"""Finds the app that `module:attribute` names."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from awoke.app.app import IMPORTING, App
from awoke.errors import AppNotFound, AwokeError
from awoke.text.frames import is_of_awoke


def find_app(target: str) -> App:
    """The app at `package.module:attribute`, looked for from the working directory, too.

    Raises:
        AppNotFound: no such module or attribute, or it is no app; says which apps there are. Or the module imports
            something in vain; says where.
    """
    module_name, colon, attribute = target.partition(":")
    if not colon or not attribute or not all(module_name.split(".")):
        raise AppNotFound(f"{target!r} does not name an app; write module:app, as in shop:app", "app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _set_up_django()
    module = _import(module_name)
    found = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise AppNotFound(f"module {module_name!r} has no {attribute!r}; {_apps_of(module)}", "app")
        found = getattr(found, name)
    if not isinstance(found, App):
        raise AppNotFound(f"{target!r} is a {type(found).__qualname__} and no awoke.App; {_apps_of(module)}", "app")
    return found


def _set_up_django() -> None:
    """Sets up Django in a process of a Django project: modules of the project need that for their import."""
    if not os.environ.get("DJANGO_SETTINGS_MODULE") or importlib.util.find_spec("django") is None:
        return
    import django.apps

    if not django.apps.apps.ready:
        django.setup()


def _import(name: str) -> ModuleType:
    IMPORTING.append(name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the module that was asked for: another one is missing because this module, which exists, imports it.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise AppNotFound(f"there is no module {name!r} here or on Python's path", "app") from None
        raise import_failed(name, error) from error
    except ImportError as error:
        raise import_failed(name, error) from error
    except AwokeError as error:  # What is declared wrongly, as a route: its text names no line.
        error.args = (f"{_place(error)}: {error}", *error.args[1:])
        raise
    except SyntaxError as error:
        where = f"{Path(error.filename or name).name}, line {error.lineno}"
        text = f"module {name!r} can't be imported: {where}: {type(error).__name__}: {error.msg}"
        raise AppNotFound(text, "app") from error
    finally:
        IMPORTING.remove(name)


def import_failed(name: str, error: Exception) -> AppNotFound:
    """Returns the error of a module that can't be imported, with the line that says why."""
    text = f"module {name!r} can't be imported: {_place(error)}: {type(error).__name__}: {error}"
    return AppNotFound(f"{text} (--traceback shows where that comes from)", "app")


def _place(error: Exception) -> str:
    """Returns the innermost line of a module's import that is neither Python's nor awoke's."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    last = next((each for each in reversed(frames) if not is_of_awoke(each.filename)), frames[-1])
    return f"{Path(last.filename).name}, line {last.lineno}"


def _apps_of(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, App)]
    return f"its apps are: {', '.join(names)}" if names else "it has no app"
