"""Processes of the Django project of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from tests.support.postgres import Postgres
from tests.support.processes import REPOSITORY

MANAGE = ("-m", "django")
SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.django_project.settings"}


def environment(server: Postgres, **more: str) -> dict[str, str]:
    return {**SETTINGS, "DATABASE": str(server.port), **more}


def run_django(env: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *MANAGE, *words],
        env={**os.environ, **env},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
