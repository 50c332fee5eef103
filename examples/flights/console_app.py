"""An app with everything that the console shows: a failing key, a slow job, dead letters, and a service.

`make console` runs it in a swarm and opens its console.
"""

from __future__ import annotations

import asyncio

import msgspec

import awoke
from awoke import rpc

FLIGHTS, BAGS, INSPECTIONS = "flights", "bags", "inspections"
LOST_BAGS = "bags.lost"
TOPICS = {FLIGHTS: 12, BAGS: 4, INSPECTIONS: 2, LOST_BAGS: 1}
POISON = ("JFK", "HNL")
"""The route of the flights that have no gate."""
INSPECTION_S = 300.0
HANDLER_S = 0.004

app = awoke.App("flights", console=True, console_commands=True)
app.rpc.map_error(KeyError, rpc.NotFound)
GATES = dict(zip(("EWR", "JFK", "LGA"), ("A4", "B12", "C7"), strict=True))


class Flight(msgspec.Struct):
    """A flight, as far as this app reads it. To import the data set would start threads before the fork."""

    carrier: str
    number: int
    origin: str
    dest: str


@app.on(FLIGHTS, concurrency=awoke.by_key(20), retry=awoke.Retry(backoff_s=(5, 60)))
async def delays(message: awoke.Message[Flight]) -> None:
    """Counts delays. Flights of one route have no gate, and are tried again; only their lane waits."""
    await asyncio.sleep(HANDLER_S)
    if (message.value.origin, message.value.dest) == POISON:
        raise ValueError(f"no gate for flight {message.value.carrier} {message.value.number}")


@app.on(BAGS, dead_letter=LOST_BAGS, retry=awoke.Retry(attempts=2, backoff_s=(1, 2)))
async def bags(message: awoke.Message[Flight]) -> None:
    """Loads bags. Those of some flights are lost, also at the second attempt, and become dead letters."""
    if message.value.number % 20 == 0:
        raise LookupError(f"the bag of flight {message.value.number} is not there")


@app.on(INSPECTIONS)
async def inspect(message: awoke.Message[Flight]) -> None:
    """Takes five minutes: a slow job."""
    await asyncio.sleep(INSPECTION_S)


@app.rpc.method(idempotent=True)
def gate(airport: str) -> str:
    """Returns the gate of an airport."""
    return GATES[airport]
