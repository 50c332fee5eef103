"""Tools that wrap `Thread.start`: OpenTelemetry's and Sentry's, in any order, work beside an app and after it."""

from __future__ import annotations

import pytest

from tests.support.stranger_scripts import told_by

OTEL = """
from opentelemetry.instrumentation.threading import ThreadingInstrumentor
ThreadingInstrumentor().instrument()
"""
SENTRY = """
import sentry_sdk
sentry_sdk.init("http://key@127.0.0.1:9/1", before_send=lambda event, hint: None)
"""
AWOKE = """
import awoke
import awoke.observe.ledger
"""

STEPS = {"otel": OTEL, "sentry": SENTRY, "awoke": AWOKE}
ORDERS = [
    ("awoke", "otel"),
    ("otel", "awoke"),
    ("awoke", "sentry"),
    ("sentry", "awoke"),
    ("otel", "sentry", "awoke"),
    ("sentry", "awoke", "otel"),
]

SCRIPT = """
from opentelemetry import baggage, context
import sentry_sdk

app = awoke.App("shop")
seen, owned = [], []

def work(value):
    scope = sentry_sdk.get_isolation_scope()
    seen.append([value, baggage.get_baggage("customer"), scope._tags.get("customer")])

@app.consumer("orders", batch=awoke.Batching(max_messages=1))
class Take(awoke.Consumer):
    def consume(self, batch: awoke.Batch[bytes]) -> None:
        for message in batch:
            value = message.value.decode()
            context.attach(baggage.set_baggage("customer", value))
            sentry_sdk.set_tag("customer", value)
            go = threading.Event()
            thread = threading.Thread(target=lambda: (go.wait(30), work(value)), name="of the user")
            thread.start()  # the place
            found = [each for each in awoke.observe.ledger.acting.get().ledger.entries() if each.name == thread.name]
            owned.extend([each.owner, each.started_at] for each in found)
            go.set()
            thread.join()
            handled.release()

before = vars(threading.Thread)["start"]
{while_running}
run_app(app)
after = vars(threading.Thread)["start"]
thread = threading.Thread(target=work, args=("behind",))
thread.start()
thread.join()
tell(seen=sorted(seen, key=str), owned=owned, is_same=before is after, kind=str(type(after)))
"""


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_each_tool_sees_each_thread_in_any_order_of_imports(order: tuple[str, ...]) -> None:
    found = told_by("\n".join(STEPS[name] for name in order) + SCRIPT.replace("{while_running}", ""))
    # Where both are there, Sentry takes OpenTelemetry's wrapper of `Thread.run` away, also in a process without awoke.
    by_otel = [None if "sentry" in order else each for each in "123"]
    by_sentry = [each if "sentry" in order else None for each in "123"]
    assert found["seen"] == [*map(list, zip("123", by_otel, by_sentry, strict=True)), ["behind", None, None]]
    assert [owner for owner, _ in found["owned"]] == ["orders[0]"] * 3
    assert all("<string>" in place and place.endswith("in consume") for _, place in found["owned"]), "not in a wrapper"
    assert found["is_same"], "what others have put there is there again, itself"


@pytest.mark.parametrize("tool", ["otel", "sentry"])
def test_a_tool_that_comes_while_the_app_runs_stays_and_works(tool: str) -> None:
    script = AWOKE + SCRIPT.replace(
        "{while_running}",
        f"""
@app.on_startup
def instrument():
{"".join(f"    {line}" + chr(10) for line in STEPS[tool].splitlines())}
""",
    )
    found = told_by(script)
    at = {"otel": 1, "sentry": 2}[tool]
    assert [each[at] for each in found["seen"]] == ["1", "2", "3", None]
    assert all(place.endswith("in consume") for _, place in found["owned"])
    assert len(found["owned"]) == 3
    assert not found["is_same"], "the tool's wrapper is still there"
