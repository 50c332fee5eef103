"""Sends the app of the console flights and bags, and calls it, until it is stopped."""

from __future__ import annotations

import contextlib
import itertools
import threading

import awoke
from awoke import rpc
from examples.flights.console_app import BAGS, FLIGHTS, INSPECTIONS
from examples.flights.data import load_flights

ROWS = 20_000
EACH_S = 0.25
CALL_EACH_S, CALL_TIMEOUT_S = 0.1, 5.0
AIRPORTS = ("EWR", "JFK", "LGA", "JFK", "LAX")
"""The airports that are asked for; the app has no gate of the last one."""
FLIGHTS_EACH, BAGS_EACH = 50, 2


def send(servers: str, stopped: threading.Event) -> None:
    """Sends flights and bags at a steady speed, and two inspections."""
    flights = itertools.cycle(load_flights(ROWS))
    with awoke.Producer(servers) as producer:
        for number in range(2):
            producer.produce(INSPECTIONS, next(flights), partition=number)
        while not stopped.wait(EACH_S):
            for topic, count in ((FLIGHTS, FLIGHTS_EACH), (BAGS, BAGS_EACH)):
                for flight in itertools.islice(flights, count):
                    producer.produce(topic, flight, key=flight.route)


def call(servers: str, stopped: threading.Event) -> None:
    """Asks the app for gates, again from the start where its topics are not there yet."""
    while not stopped.wait(CALL_EACH_S):
        with contextlib.suppress(awoke.BrokerUnreachable, awoke.UnknownTopic):
            ask(servers, stopped)


def ask(servers: str, stopped: threading.Event) -> None:
    """Asks for the gate of one airport after another."""
    airports = itertools.cycle(AIRPORTS)
    with rpc.Caller("flights", servers, name="airport") as service:
        while not stopped.wait(CALL_EACH_S):
            with contextlib.suppress(awoke.RpcError):  # No gate, or no process yet.
                service.call("gate", next(airports), timeout_s=CALL_TIMEOUT_S)
