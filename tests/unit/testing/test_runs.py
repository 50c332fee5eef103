"""The apps of one test."""

from __future__ import annotations

import pytest

from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]


def test_every_test_has_brokers_of_its_own(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("word", [b"one", b"two"])
def test_order(awoke_run, word):
    probe = awoke_run(shop())
    assert probe.send("orders", word).offset == 0
    probe.idle()
    assert [each.value for each in probe.sent("bills")] == [word.upper()]
"""
    inner(pytester, test).assert_outcomes(passed=2)


def test_an_app_that_runs_twice_has_its_own_settings_again(pytester: pytest.Pytester) -> None:
    test = """
APP = awoke.App("shop", bootstrap_servers="nowhere:1")
APP.on("orders")(lambda message: None)

@pytest.mark.parametrize("turn", [1, 2])
def test_order(awoke_run, turn):
    assert APP.settings.bootstrap_servers == "nowhere:1"
    probe = awoke_run(APP)
    probe.send("orders", b"first")
    probe.idle()
    assert [call.offset for call in probe.calls] == [0]
"""
    inner(pytester, test).assert_outcomes(passed=2)


def test_two_apps_work_together_and_are_idle_together(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    printer = awoke.App("printer")
    printed = []
    printer.on("bills")(lambda message: printed.append(message.value))
    shop_probe, printer_probe = awoke_run(shop()), awoke_run(printer)
    for word in (b"a", b"b", b"c"):
        shop_probe.send("orders", word)
    shop_probe.idle()
    assert printed == [b"A", b"B", b"C"]
    assert {each.topic for each in printer_probe.commits} == {"bills"}
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_problems_are_notes_of_the_error_of_a_test_that_fails_anyway(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.idle()
    assert [each.value for each in probe.sent("bills")] == [b"BAD"]
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AssertionError*", "*job.failed: *ValueError*"])


def test_an_app_that_cannot_start_fails_its_test_and_leaves_nothing(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    awoke_run(awoke.App("shop"))
"""
    result = inner(pytester, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ConfigError: app 'shop' has no route*"])


def test_a_wrong_setting_fails_its_test_and_is_not_kept(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app = shop()
    with pytest.raises(awoke.ConfigError, match="workers"):
        awoke_run(app, workers=-1)
    assert app.settings.workers is None
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_a_test_stops_an_app_and_runs_it_again(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    app, said = shop(), []
    app.on_shutdown(lambda: said.append("closed"))
    first = awoke_run(app)
    first.send("orders", b"before")
    first.idle()
    assert first.stop()
    assert first.stop()
    assert said == ["closed"]
    second = awoke_run(app)
    second.send("orders", b"after")
    second.idle()
    assert [call.offset for call in first.calls] == [0]
    assert [call.offset for call in second.calls] == [1]

def test_failures_of_an_app_that_was_stopped_count(awoke_run):
    probe = awoke_run(shop())
    probe.send("orders", b"bad")
    probe.rest()
    probe.stop()
"""
    result = inner(pytester, test)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*a failure that the test did not look at*"])


def test_an_app_that_waits_for_its_partitions_may_join_later(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    hangs, go = threading.Event(), threading.Event()

    def hang(message):
        hangs.set()
        go.wait(30)

    app, other = awoke.App("shop"), awoke.App("shop")
    app.on("orders")(hang)
    other.on("orders")(lambda message: None)
    first = awoke_run(app)
    first.send("orders", b"holds the rebalance up")
    assert hangs.wait(30)
    second = awoke_run(other, may_join_later=True)
    assert not second.recorder.assigned
    go.set()
    first.idle()
"""
    inner(pytester, test).assert_outcomes(passed=1)


def test_an_app_that_a_test_has_stopped_is_not_waited_for(pytester: pytest.Pytester) -> None:
    test = """
def test_order(awoke_run):
    audit = awoke.App("audit")
    audit.on("orders")(lambda message: None)
    stops, goes_on = awoke_run(audit), awoke_run(shop())
    stops.stop()
    goes_on.send("orders", b"first")
    goes_on.idle(2)
"""
    inner(pytester, test).assert_outcomes(passed=1)
