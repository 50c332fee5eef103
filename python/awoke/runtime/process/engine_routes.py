"""Converts a route of the app into a route of the engine."""

from __future__ import annotations

from awoke import _native
from awoke.declare.routing import Route
from awoke.settings import Settings

TURN_S_MIN = 0.01
"""A job of single messages runs at least this long before another partition has its turn."""


def engine_route(route: Route, settings: Settings, scheduler: _native.Scheduler) -> _native.Route:
    """Returns the engine's route; its jobs come from this scheduler."""
    return _native.Route(
        route.topic,
        scheduler,
        messages_max=route.batch.max_messages,
        bytes_max=route.batch.max_bytes,
        wait_max_s=route.batch.max_wait_s,
        delay_s=route.flow.delay_s,
        rate_per_s=route.flow.per_s,
        weight=route.weight,
        tick_every_s=route.tick_every_s,
        start=route.start,
        concurrency=route.lanes,
        is_transactional=route.is_exactly_once,
        turn_max_s=None if route.consumer is not None else max(TURN_S_MIN, settings.commit_interval_s / 4),
        batch_time_max_s=route.batch.max_time_s,
        stores_by_hand=route.is_manual,
        jobs_max=route.jobs_max,
        number=route.number,
        partitions=list(route.partitions),
    )
