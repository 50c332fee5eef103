"""Logins: names and passwords of a file, a proxy's header, and refusals."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from awoke.console.web.application import application
from awoke.console.web.grants import Rights, Role
from awoke.console.web.logins import Login, login_of, users_of
from awoke.errors import ConfigError
from awoke.settings import load
from tests.unit.console.web.fakes import FakeLive


def client_of(login: Login) -> TestClient:
    live: Any = FakeLive()
    web = application("shop", load({}).values, live, Rights(login.policy, ["*"], False), ())
    return TestClient(login.wrap(web), base_url="http://localhost")


def header(pair: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def test_a_file_of_users_lets_them_in_with_their_roles(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("# the team\nann:secret:admin\nbob:other\n")
    file.chmod(0o600)
    with client_of(login_of(f"basic:{file}", Role.VIEW)) as client:
        refused = client.get("/")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Basic realm="awoke"')
        assert "content-security-policy" in refused.headers
        for wrong in ("ann:other", "ann:", "eve:", ":", "eve:secret"):
            assert client.get("/", headers=header(wrong)).status_code == 401
        assert client.get("/", headers={"Authorization": "Basic ?"}).status_code == 401
        assert '"role">admin' in client.get("/", headers=header("ann:secret")).text
        assert '"role">view' in client.get("/", headers=header("bob:other")).text


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("ann:secret\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        users_of(file)
    file.chmod(0o600)
    assert users_of(file)["ann"].role is None
    file.write_text("ann\n")
    with pytest.raises(ConfigError, match="user 1 is not NAME:PASSWORD"):
        users_of(file)


def test_a_proxy_names_the_user() -> None:
    with client_of(login_of("header:X-User", Role.OPERATE)) as client:
        assert client.get("/").status_code == 403
        assert "ann" in client.get("/", headers={"X-User": "ann"}).text


@pytest.mark.parametrize("text", ["", "basic", "basic:", "header:", "none:x", "open"])
def test_another_login_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="basic:FILE, header:NAME or none"):
        login_of(text, Role.VIEW)


def test_a_password_may_have_colons_and_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("ann:pass:word:admin\nbob:pass:word\neve:a:b:nobody\n")
    file.chmod(0o600)
    users = users_of(file)
    assert [(user.password, user.role) for user in users.values()] == [
        (b"pass:word", Role.ADMIN),
        (b"pass:word", None),
        (b"a:b:nobody", None),
    ]
    with pytest.raises(ConfigError) as caught:
        login_of("ann:canary-4711", Role.VIEW)
    assert "canary" not in str(caught.value)
