"""Recordings of the topics that the apps of a test read."""

from __future__ import annotations

from pathlib import Path

import pytest

import awoke
import awoke.testing.runs
from awoke.testing.recordings.recording import read_recording
from awoke.testing.recordings.replay import replay
from tests.support.inner_tests import inner

pytest_plugins = ["pytester"]

TEST = """
@pytest.mark.parametrize("word", [b"a b", b"c"])
def test_order(awoke_run, word):
    app = awoke.App("shop")
    app.on("orders", output="bills")(lambda message: message.value.upper())
    app.on("refunds")(lambda message: None)
    probe = awoke_run(app)
    probe.send("orders", word, key=b"Ann", headers={"trace": "7"})
    probe.idle()
    assert word != b"c"
"""


def test_the_topics_of_a_test_are_recorded_and_replayed_through_new_code(pytester: pytest.Pytester) -> None:
    inner(pytester, TEST, "--awoke-record", "records").assert_outcomes(passed=1, failed=1)
    files = sorted(path.relative_to("records") for path in Path("records").rglob("*") if path.is_file())
    assert [file.name for file in files] == ["orders.rec", "orders.rec"], "an empty topic, or an output, has no file"
    assert [file.parent.name.endswith(("-test_order-a-b", "-test_order-c")) for file in files] == [True, True]
    recording = read_recording(Path("records") / files[0])
    (record,) = recording.records
    assert (record.parts.key, record.parts.value, record.parts.headers) == (b"Ann", b"a b", [("trace", b"7")])
    new = awoke.App("shop")
    new.on("orders", output="bills")(lambda message: message.value.title())
    (made,) = replay(recording, new)
    assert [output["value"] for output in made["outputs"]] == ["A B"]


def test_a_topic_that_can_not_be_recorded_fails_the_test(pytester: pytest.Pytester) -> None:
    Path("records").write_text("no folder")
    result = inner(pytester, TEST, "--awoke-record", "records")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*--awoke-record: orders was not recorded: *"])
