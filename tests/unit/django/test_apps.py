"""awoke among Django's applications."""

from __future__ import annotations

from django.apps import apps


def test_the_application_has_a_label_of_its_own() -> None:
    assert apps.get_app_config("awoke").name == "awoke.django"
