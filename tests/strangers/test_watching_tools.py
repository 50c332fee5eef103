"""Tools that watch a process: debuggers, profilers, tracers. They see user code, and an app runs under them."""

from __future__ import annotations

import pytest

from tests.support.stranger_scripts import told_by

APP = """
import awoke

app = awoke.App("shop")


@app.on("orders", max_processing_s=60)
def handle(message: awoke.Message[bytes]) -> None:
    handled.release()
"""

TOOLS = {
    "a debugger (sys.settrace)": """
import sys
seen = set()
def trace(frame, event, argument):
    seen.add(frame.f_code.co_name)
    return trace
threading.settrace(trace)
run_app(app)
threading.settrace(None)
tell(is_seen="handle" in seen, is_kept=sys.gettrace() is None)
""",
    "a profiler of all threads (threading.setprofile)": """
seen = set()
threading.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_name))
run_app(app)
threading.setprofile(None)
tell(is_seen="handle" in seen, is_kept=True)
""",
    "cProfile around the app": """
import cProfile, pstats
profile = cProfile.Profile()
profile.runcall(run_app, app)
names = {name for _, _, name in pstats.Stats(profile).stats}
tell(is_seen="run_app" in names, is_kept=True)
""",
    "cProfile within a handler": """
import cProfile, pstats
profiles = []

@app.incoming
def profiled(message, call_next):
    with cProfile.Profile() as profile:
        result = call_next(message)
    profiles.append({name for _, _, name in pstats.Stats(profile).stats})
    return result

run_app(app)
tell(is_seen=len(profiles) == 3 and all("handle" in names for names in profiles), is_kept=True)
""",
    "yappi": """
import yappi
yappi.start()
run_app(app)
yappi.stop()
names = {each.name for each in yappi.get_func_stats()}
tell(is_seen="handle" in names, is_kept=True)
""",
    "tracemalloc": """
import tracemalloc
tracemalloc.start()
kept = []

@app.incoming
def keep(message, call_next):
    kept.append(bytearray(100_000))
    return call_next(message)

run_app(app)
largest = tracemalloc.take_snapshot().statistics("lineno")[0]
tell(is_seen=largest.size >= 300_000, is_kept=tracemalloc.is_tracing())
""",
    "faulthandler": """
import faulthandler, signal, sys, tempfile
file = tempfile.TemporaryFile("w+")
faulthandler.enable(file)
faulthandler.register(signal.SIGUSR1, file, all_threads=True)
from awoke.runtime.watch.stacks import dumped_stack

@app.incoming
def look(message, call_next):
    dumped_stack(threading.current_thread())
    signal.raise_signal(signal.SIGUSR1)
    return call_next(message)

run_app(app)
file.seek(0)
tell(is_seen="in look" in file.read(), is_kept=faulthandler.is_enabled())
""",
    "an audit hook": """
import sys
seen = set()
sys.addaudithook(lambda event, arguments: seen.add(event))

@app.incoming
def audited(message, call_next):
    sys.audit("shop.handled", message.offset)
    return call_next(message)

run_app(app)
tell(is_seen="shop.handled" in seen, is_kept=True)
""",
    "a hook for exceptions of threads": """
import logging
hooked = []
threading.excepthook = lambda args: hooked.append(args.exc_type.__name__)

@app.on_startup
def fail():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

run_app(app)
tell(is_seen=hooked == ["ZeroDivisionError"], is_kept=True)
""",
}

UVLOOP = """
import asyncio, uvloop
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
import awoke

app = awoke.App("shop")
seen = set()

@app.on("orders", retry=awoke.Retry(backoff_s=(0.001, 0.002)))
async def handle(message: awoke.Message[bytes]) -> None:
    seen.add(type(asyncio.get_running_loop()).__module__)
    await asyncio.sleep(0)
    if message.attempt == 1 and {is_failing}:
        raise asyncio.CancelledError
    if {is_ending}:
        async def leave():
            raise SystemExit(3)
        handled.release()
        await asyncio.gather(leave())
    handled.release()

runner = run_app(app, values=(b"1",) if {is_ending} else (b"1", b"2", b"3"))
tell(is_seen=seen == {{"uvloop"}}, error=repr(runner.fatal_error))
"""


@pytest.mark.parametrize("tool", TOOLS)
def test_an_app_runs_under_a_tool_which_sees_user_code(tool: str) -> None:
    found = told_by(APP + TOOLS[tool])
    assert found["is_seen"]
    assert found["is_kept"]


@pytest.mark.parametrize("kind", ["plain", "failing", "ending"])
def test_async_handlers_run_on_uvloop(kind: str) -> None:
    found = told_by(UVLOOP.format(is_failing=kind == "failing", is_ending=kind == "ending"))
    assert found["is_seen"]
    assert found["error"] == ("SystemExit(3)" if kind == "ending" else "None")
