"""The link to awoke's console on the first page of Django's admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.test.utils import override_settings

LINK = '<a href="{}">Console</a>'


def index() -> str:
    """Returns the first page of the admin, as its administrator sees it."""
    request = RequestFactory().get("/admin/")
    request.user = User(username="root", pk=1, is_staff=True, is_superuser=True)
    answer: Any = admin.site.index(request)
    return str(answer.rendered_content)


def test_the_first_page_of_the_admin_links_to_the_console() -> None:
    assert LINK.format(settings.AWOKE["console_url"]) in index()
    with override_settings(AWOKE={"console_url": 'http://kafka/?a="b"'}):
        assert LINK.format("http://kafka/?a=&quot;b&quot;") in index()


@pytest.mark.parametrize("own", [{}, {"console_url": ""}, {"console_url": None}])
def test_there_is_no_link_where_no_address_is_set(own: dict[str, str | None]) -> None:
    with override_settings(AWOKE=own):
        assert "awoke-console" not in index()
        assert "Recent actions" in index()
