"""Sentry: tags of one message are seen by no other, those of the process by all, and a failure has those of its own."""

from __future__ import annotations

import pytest

from tests.support.stranger_scripts import told_by

SCRIPT = """
import sentry_sdk

events = []
sentry_sdk.init("http://key@127.0.0.1:9/1", before_send=lambda event, hint: events.append(event))
sentry_sdk.set_tag("service", "shop")

import awoke

app = awoke.App("shop")
failing = awoke.Retry(attempts=1, on_exhausted="skip")

def note(value):
    sentry_sdk.set_tag("customer-" + value.decode(), "yes")
    sentry_sdk.capture_message(value.decode())
    handled.release()

{path}

run_app(app)
tell(events=[[event.get("message"), sorted(event["tags"])] for event in events if event.get("message") in "123"])
"""

PATHS = {
    "def": """
@app.on("orders")
def handle(message: awoke.Message[bytes]) -> None:
    note(message.value)
""",
    "async def": """
@app.on("orders")
async def handle(message: awoke.Message[bytes]) -> None:
    await asyncio.sleep(0)
    note(message.value)
""",
    "class": """
@app.consumer("orders", batch=awoke.Batching(max_messages=1))
class Take(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None:
        for message in batch:
            note(message.value)
""",
    "lanes": """
@app.on("orders", concurrency=awoke.unordered(1))
def handle(message: awoke.Message[bytes]) -> None:
    note(message.value)
""",
}


@pytest.mark.parametrize("path", PATHS)
def test_each_message_has_its_own_tags_and_those_of_the_process(path: str) -> None:
    found = told_by(SCRIPT.replace("{path}", PATHS[path]))
    assert sorted(found["events"]) == [[value, [f"customer-{value}", "service"]] for value in "123"]


def test_what_is_logged_of_a_failure_has_the_tags_of_its_message() -> None:
    found = told_by("""
    import logging
    import sentry_sdk
    from sentry_sdk.integrations.logging import LoggingIntegration

    events = []
    logging.getLogger("awoke").setLevel(logging.INFO)
    sentry_sdk.init(
        "http://key@127.0.0.1:9/1",
        before_send=lambda event, hint: events.append(event),
        integrations=[LoggingIntegration(event_level=logging.WARNING)],
    )
    import awoke

    app = awoke.App("shop")

    @app.on("orders", retry=awoke.Retry(attempts=1, on_exhausted="skip"))
    def handle(message: awoke.Message[bytes]) -> None:
        sentry_sdk.set_tag("customer", message.value.decode())
        handled.release()
        raise ValueError("wrong " + message.value.decode())

    run_app(app)
    failures = [event for event in events if "exception" in event and event["logger"] == "awoke.events"]
    tell(found=sorted([event["exception"]["values"][-1]["value"], event["tags"]["customer"]] for event in failures))
    """)
    assert found["found"] == [[f"wrong {value}", value] for value in "123"]
