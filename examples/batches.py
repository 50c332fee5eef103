"""A class for each partition, with batches and lifecycle hooks: `python examples/batches.py`."""

from __future__ import annotations

import logging
import threading

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running

SENSORS = ("attic", "cellar", "kitchen", "garden")
READINGS = 10_000
WAIT_S = 30.0


class Reading(msgspec.Struct):
    """The values of topic `readings`."""

    sensor: str
    celsius: float


app = awoke.App("batches")
left = threading.Semaphore(0)
"""Released once for each sensor whose readings are all there."""


@app.consumer("readings", value=Reading, batch=awoke.Batching(max_messages=500))
class Warmest(awoke.Consumer):
    """The warmest reading of each sensor of one partition; its methods run one at a time: no lock needed."""

    def assigned(self) -> None:
        """Before the first batch: load or open what the partition needs."""
        self.batches = 0
        self.counts: dict[str, int] = {}
        self.warmest: dict[str, float] = {}

    def consume(self, batch: awoke.Batch[Reading]) -> None:
        """Take a batch; should it raise, the messages after the last that was marked come again."""
        self.batches += 1
        for message in batch:
            reading = message.value
            warmest = self.warmest.get(reading.sensor, reading.celsius)
            self.warmest[reading.sensor] = max(warmest, reading.celsius)
            self.counts[reading.sensor] = self.counts.get(reading.sensor, 0) + 1
            self.mark(message)
            if self.counts[reading.sensor] == READINGS // len(SENSORS):
                left.release()

    def revoked(self) -> None:
        """After the last batch, when another member takes the partition over: write out what is held."""
        self.tell("revoked")

    def lost(self) -> None:
        """Another member already has the partition: drop what is collected."""
        self.warmest.clear()

    def shutdown(self) -> None:
        """After the last batch, when the process stops: write out what is held."""
        self.tell("shutdown")

    def tell(self, hook: str) -> None:
        """Show the partition's result."""
        warmest = ", ".join(f"{sensor} {celsius:.1f} °C" for sensor, celsius in sorted(self.warmest.items()))
        count = sum(self.counts.values())
        seen = f"{count} readings in {self.batches} batches"
        line = f"{hook}: partition {self.partition} had {seen}; warmest: {warmest or 'none'}\n"
        print(line, end="")  # One write: other partitions print at the same time.


def main() -> None:
    """Produce readings, run the app until it has them all, and stop it: each partition tells what it has."""
    logging.basicConfig()  # Without it a handler's failure is not shown.
    celsius = [15.0 + number * 7 % 113 / 10 + number % 4 for number in range(READINGS)]
    readings = [Reading(SENSORS[number % 4], each) for number, each in enumerate(celsius)]
    with EmbeddedCluster() as cluster:
        cluster.create_topic("readings", partitions=2)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            awoke.wait_all(producer.produce_many("readings", [(each, each.sensor) for each in readings]))
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            for _ in SENSORS:
                if not left.acquire(timeout=WAIT_S):
                    raise TimeoutError(f"not all readings were processed within {WAIT_S:.0f} s")


if __name__ == "__main__":
    main()
