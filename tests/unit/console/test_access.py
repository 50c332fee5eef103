"""The clients of a console: they have the settings of the app, and are of no transaction."""

from __future__ import annotations

from awoke.console.access import Brokers
from awoke.settings import load


def test_clients_have_the_brokers_and_properties_of_the_app_without_its_transactions() -> None:
    kafka = {"client.id": "shop", "transactional.id": "tx"}
    options = Brokers(load({"bootstrap_servers": "a:1", "kafka": kafka}).values).options()
    assert options["bootstrap_servers"] == "a:1"
    assert options["kafka"] == {"client.id": "shop"}
