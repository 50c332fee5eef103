"""The app of `bench.swarm`: computes, and allocates the given amount of memory."""

from __future__ import annotations

import os

import awoke

app = awoke.App("bench-swarm")
done = os.open(os.environ.get("BENCH_DONE", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
LOOPS = int(os.environ.get("BENCH_LOOPS", "0"))
# Many small objects, as an app has after its imports.
ballast = [{"number": number, "text": f"text {number}"} for number in range(int(os.environ.get("BENCH_OBJECTS", "0")))]


@app.on(os.environ.get("BENCH_TOPIC", "none"))
def compute(message: awoke.Message[bytes]) -> None:
    """Keeps the interpreter busy, and reports its end."""
    total = 0
    for number in range(LOOPS):
        total += number
    os.write(done, b".")
