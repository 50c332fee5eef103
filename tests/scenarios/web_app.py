"""A web application that sends a message for each request and does not wait for it, for servers of their own."""

from __future__ import annotations

import os

from fastapi import FastAPI

import awoke
from awoke.fastapi import CallsMiddleware, Producer, lifespan

app = awoke.App("web", shutdown_timeout_s=20)
api = FastAPI(lifespan=lifespan(app, connect="WEB_LAZY" not in os.environ))
api.add_middleware(CallsMiddleware)


@api.post("/{value}")
async def send(value: str, producer: Producer) -> int:
    """Queues a message; returns the number of the process."""
    producer.produce(os.environ["WEB_TOPIC"], value)
    return os.getpid()
