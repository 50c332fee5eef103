"""The tag of the admin's index: the address of awoke's console."""

from __future__ import annotations

from django import template
from django.conf import settings

from awoke.django.app import CONSOLE_URL

register = template.Library()


@register.simple_tag
def awoke_console_url() -> str:
    """Returns `settings.AWOKE["console_url"]`; empty where it is not set, and the index then has no link."""
    return str(getattr(settings, "AWOKE", {}).get(CONSOLE_URL) or "")
