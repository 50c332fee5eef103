"""Commands that are acted in Chromium, each with its effect in the app."""

from __future__ import annotations

import re

import pytest

from tests.support.browsers import act, confirm, needs_chromium, served

pytestmark = needs_chromium
PLACE = "/partitions/orders/0/shop"
VERBS = {
    "dead_letter", "pause", "quiet", "replay", "reset_offsets", "resume", "retry", "seek", "skip", "stacks",
}  # fmt: skip
"""The commands that the audit records."""


def test_each_command_of_a_process_has_its_effect_in_the_app() -> None:
    with served("tests.support.acted_console") as site:
        page, wrong = site.page()

        def at_partition(offset: int) -> None:
            """Opens the partition's page, and waits until the message at this offset fails there."""
            page.goto(site.url + PLACE)
            failing = page.get_by_role("region", name="Failing messages")
            failing.locator("th[scope=row]", has_text=str(offset)).wait_for()

        site.wait_said("handled", "bad-1")
        at_partition(1)
        act(page, "Retry now")
        site.wait_said("handled", "bad-1")
        at_partition(1)
        act(page, "Skip")
        site.wait_said("message.skipped")
        site.wait_said("handled", "bad-2")
        at_partition(2)
        act(page, "Dead-letter")
        site.wait_said("message.dead_lettered")
        site.wait_said("handled", "bad-3")
        at_partition(3)
        act(page, "Pause")
        site.wait_said("partition.paused")
        at_partition(3)
        act(page, "Seek", offset="0")
        page.goto(site.url + PLACE)
        act(page, "Resume")
        site.wait_said("handled", "good")
        page.goto(f"{site.url}/letters/orders.dead")
        page.locator("a", has_text="Plan").first.click()
        confirm(page, "Send them")
        page.locator("p", has_text="1 letters of orders.dead were sent").wait_for()
        page.goto(f"{site.url}/threads")
        act(page, "Show stacks")
        page.locator("h2", has_text="awoke-console").first.wait_for()
        page.locator("a", has_text="Go on").click()
        page.locator("tbody th a").first.click()
        page.locator("summary", has_text="Quiet").wait_for()
        act(page, "Quiet")
        page.locator("a", has_text="Go on").click()
        page.locator("h1 .pill", has_text="quiet").wait_for()
        page.goto(f"{site.url}/groups/old")
        page.locator("summary", has_text="Move offsets").click()
        page.locator("button", has_text="Preview").click()
        page.locator("td.n", has_text="3").first.wait_for()
        act(page, "Move the offsets")
        page.locator("p", has_text="3 are read again").wait_for()
        page.goto(f"{site.url}/groups/old")
        assert page.locator("tbody tr td.n").first.text_content() == "0", "the group's committed offset"
        page.goto(f"{site.url}/audit?sort=verb&order=asc")
        page.locator("caption", has_text="commands").wait_for()
        verbs = page.eval_on_selector_all("tbody td:nth-child(3)", "all => all.map(each => each.textContent)")
        assert set(verbs) == VERBS
        assert wrong == []
        page.context.close()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_replay_shows_its_progress_and_is_cancelled(has_scripts: bool) -> None:
    with served("tests.support.acted_console", "letters") as site:
        site.wait_said("ready")
        page, wrong = site.page(java_script_enabled=has_scripts)
        page.goto(f"{site.url}/letters/orders.dead/plan?rate=2&count=400")
        confirm(page, "Send them")
        page.wait_for_url("**/letters/orders.dead/replays/*")
        if has_scripts:
            page.evaluate("globalThis.isKept = true")
        for least in (r"[1-9]\d*", r"([3-9]|[1-9]\d+)"):
            page.locator(".progress b", has_text=re.compile(rf"^\s*{least} of 400 letters")).wait_for()
        if has_scripts:
            assert page.evaluate("globalThis.isKept"), "the progress is shown without loading the page again"
        page.locator("button", has_text="Cancel the replay").click()
        page.locator("h1", has_text="Done").wait_for()
        said = re.search(r"cancelled: (\d+) of 400 letters of orders.dead were sent, (\d+) are", page.content())
        assert said is not None, page.content()
        sent, left = int(said[1]), int(said[2])
        assert (sent >= 3, left > 0, sent + left) == (True, True, 400)
        site.wait_said("handled", f"again-{sent - 1}")
        page.locator("a", has_text="Go on").click()
        page.locator("h1 .pill", has_text="cancelled").wait_for()
        assert page.locator("button", has_text="Cancel").count() == 0
        found = page.request.get(f"{site.url}/topics/orders?format=json").json()
        assert found["offsets"] == sent
        page.goto(f"{site.url}/letters/orders.dead/plan?count=400")
        page.locator(".tile", has_text="Sent before").locator("dd", has_text=str(sent)).wait_for()
        audit = page.request.get(f"{site.url}/audit?format=json").json()["commands"]["rows"]
        told = {(each["verb"], each["result"]): each["text"] for each in audit}
        assert said[0] in told["cancel_replay", "done"]
        assert said[0] in told["replay", "ReplayCancelled"]
        assert wrong == []
        page.context.close()
