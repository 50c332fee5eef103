"""The pages of dead letters, a replay after its plan, and an edited letter."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.testclient import TestClient

import awoke
from awoke.console.views import GroupPartition, GroupView, Handler
from awoke.console.web.code import Code
from awoke.console.web.grants import Role
from awoke.testing.letter_trial import trier
from awoke.text.secrets import HIDDEN
from tests.contract.console.web.clients import CONFIRMED, SAME_ORIGIN, act, audited, client_of, read
from tests.contract.test_dead_letter_commands import headers_of, put
from tests.support.clusters import Cluster, unique
from tests.unit.console.web.fakes import FakeLive, report

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


class Dead:
    """A dead letter topic with three letters of one error, and one of another; the app reads their topic."""

    def __init__(self, cluster: Cluster) -> None:
        self.topic, self.dead = unique("topic"), unique("dead")
        cluster.create_topic(self.topic)
        cluster.create_topic(self.dead)
        texts = [*(f"no card {number}" for number in range(3)), HOSTILE]
        letters = [(b"k", b'{"n":%d}' % number, headers_of(self.topic, text)) for number, text in enumerate(texts)]
        put(cluster, self.dead, *letters)
        place = GroupPartition(topic=self.topic, partition=0, committed=None, end_offset=None, lag=None)
        self.live = FakeLive([report(secrets=[])])
        self.live.groups = [GroupView(group="shop", state="Stable", members=1, partitions=[place])]

    def values(self, cluster: Cluster) -> list[Any]:
        with awoke.Reader(self.topic, bootstrap_servers=cluster.bootstrap_servers) as reader:
            return [each.value for each in reader.read_until_end(30)]


def ended(client: TestClient, dead: Dead, **form: str) -> dict[str, Any]:
    """Makes a replay, and returns it at its end."""
    headers = {**SAME_ORIGIN, "Accept": "application/json"}
    begun = client.post(f"/letters/{dead.dead}/replay", data={**CONFIRMED, **form}, headers=headers)
    assert begun.status_code == 202, begun.text
    run: dict[str, Any] = read(client, f"{begun.json()['back']}?wait=1")["run"]
    return run


def wait_sent(cluster: Cluster, dead: Dead) -> None:
    """Waits until a replay has sent a letter."""
    with awoke.Reader(dead.topic, bootstrap_servers=cluster.bootstrap_servers) as reader:
        next(iter(reader))


def test_letters_are_shown_in_groups_with_contents_hidden(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    with client_of(mock_cluster, live=dead.live) as client:
        assert dead.dead in read(client, "/letters")["topics"]
        view = read(client, f"/letters/{dead.dead}")
        assert [each["count"] for each in view["groups"]] == [3, 1]
        mark = view["groups"][0]["fingerprint"]
        assert read(client, f"/letters/{dead.dead}?fingerprint={mark}")["letters"]["total"] == 3
        letter = read(client, f"/letters/{dead.dead}/0/3")["letter"]
        assert (letter["message"]["value"]["form"], letter["row"]["topic"]) == ("hidden", dead.topic)
        read(client, f"/letters/{dead.dead}/0/99", 404)
        read(client, f"/letters/{dead.dead}/0/x", 400)
        read(client, "/letters/missing", 404)
        assert client.get(f"/letters/{dead.dead}/plan").status_code == 403
        assert act(client, f"/letters/{dead.dead}/replay")[0] == 403


def test_a_dead_letter_topic_that_a_process_reports_is_offered_whatever_its_name(mock_cluster: Cluster) -> None:
    lost = unique("lost")
    mock_cluster.create_topic(lost)
    handler = Handler(
        name="bags", group="shop", topic="bags", is_async=False, concurrency=1, exactly_once=False, dead_letter=lost
    )
    for handlers, is_offered in (([], False), ([handler], True)):
        with client_of(mock_cluster, live=FakeLive([report(handlers=handlers)])) as client:
            assert (lost in read(client, "/letters")["topics"]) == is_offered


def test_a_group_of_letters_is_planned_and_sent(mock_cluster: Cluster) -> None:
    dead, app = Dead(mock_cluster), unique("app")
    with client_of(mock_cluster, Role.OPERATE, app=app, live=dead.live) as client:
        mark = read(client, f"/letters/{dead.dead}")["groups"][0]["fingerprint"]
        page = client.get(f"/letters/{dead.dead}/plan?fingerprint={mark}&count=2&format=json").json()
        assert [(each["topic"], each["count"], each["is_foreign"]) for each in page["plan"]["targets"]] == [
            (dead.topic, 2, False)
        ]
        form = {**page["fields"], "digest": page["plan"]["digest"]}
        assert ended(client, dead, **{**form, "digest": "x"})["state"] == "failed"
        assert act(client, f"/letters/{dead.dead}/replay", **form, reason="")[0] == 400
        run = ended(client, dead, **form)
        assert (run["state"], run["sent"], run["total"], run["who"]) == ("done", 2, 2, "ada")
        assert run["text"] == f"2 letters of {dead.dead} were sent; they are still in it"
        assert read(client, f"/letters/{dead.dead}")["replays"][0]["id"] == run["id"]
        assert act(client, f"/letters/{dead.dead}/replays/{run['id']}/cancel")[0] == 409, "it has ended"
        read(client, f"/letters/{dead.dead}/replays/x", 404)
        assert act(client, f"/letters/{dead.dead}/replays/x/cancel")[0] == 404
        slow = act(client, f"/letters/{dead.dead}/replay", rate="0.001", count="100")
        assert slow[0] == 400
        assert act(client, f"/letters/{dead.dead}/0/0/edit", value="x")[0] == 403, "it takes an admin"
    assert dead.values(mock_cluster) == [b'{"n":0}', b'{"n":1}']
    assert [each[1:] for each in audited(mock_cluster, app)] == [
        ("replay", "a test", "begun"),
        ("replay", "a test", "AwokeError"),
        ("replay", "a test", "begun"),
        ("replay", "a test", "done"),
        ("cancel_replay", "a test", "begun"),
        ("cancel_replay", "a test", "AwokeError"),
    ]


def test_a_replay_is_cancelled_between_two_letters_and_says_how_many_were_sent(mock_cluster: Cluster) -> None:
    dead, app = Dead(mock_cluster), unique("app")
    with client_of(mock_cluster, Role.OPERATE, app=app, live=dead.live) as client:
        plan = client.get(f"/letters/{dead.dead}/plan?rate=0.01&count=4&format=json").json()
        form = {**plan["fields"], "digest": plan["plan"]["digest"]}
        path = f"/letters/{dead.dead}/replay"
        started = client.post(path, data={**form, **CONFIRMED}, headers=SAME_ORIGIN)
        assert started.status_code == 303, "a browser goes on to the page of the replay"
        page = started.headers["location"]
        assert act(client, path, **form) == (
            409,
            f"a replay of {dead.dead} runs already: wait for its end, or cancel it",
        )
        plan_meanwhile = client.get(f"/letters/{dead.dead}/plan")
        assert (plan_meanwhile.status_code, plan_meanwhile.headers["location"]) == (303, page)
        wait_sent(mock_cluster, dead)
        status, text = act(client, f"{page}/cancel")
        said = f"the replay was cancelled: 1 of 4 letters of {dead.dead} were sent, 3 are left"
        assert (status, text) == (200, said)
        run = read(client, page)["run"]
        assert (run["state"], run["sent"], run["total"], run["text"]) == ("cancelled", 1, 4, said)
        assert read(client, f"/letters/{dead.dead}/plan")["plan"]["sent_before"] == 1
    with client_of(mock_cluster, live=dead.live) as client:
        assert act(client, f"{page}/cancel")[0] == 403
    assert dead.values(mock_cluster) == [b'{"n":0}']
    assert [each[1:] for each in audited(mock_cluster, app)] == [
        ("replay", "a test", "begun"),
        ("cancel_replay", "a test", "begun"),
        ("replay", "a test", "ReplayCancelled"),
        ("cancel_replay", "a test", "done"),
    ]


def test_an_admin_edits_a_letter_where_contents_are_allowed(mock_cluster: Cluster) -> None:
    dead = Dead(mock_cluster)
    path = f"/letters/{dead.dead}/0/3"
    with client_of(mock_cluster, Role.ADMIN, live=dead.live) as client:
        assert act(client, f"{path}/edit", value="x")[0] == 403, "contents are hidden"
    with client_of(mock_cluster, Role.ADMIN, payloads=True, live=dead.live) as client:
        assert "Edit and send" in client.get(path).text
        read(client, path)
        assert act(client, f"{path}/edit", value="{}", headers="no colon")[0] == 400
        done = act(client, f"{path}/edit", value='{"n":\r\n7}', headers="by: ops")
        assert done == (200, f"the edited letter is offset 0 of {dead.topic}[0]")
    assert dead.values(mock_cluster) == [b'{"n":\n7}']


class Paid(msgspec.Struct):
    n: Annotated[int, awoke.Secret]


def test_secret_fields_are_shown_and_sent_nowhere(mock_cluster: Cluster) -> None:
    dead, app = Dead(mock_cluster), awoke.App("shop")
    app.on(dead.topic, value=Paid, dead_letter=dead.dead)(lambda message: None)
    with client_of(mock_cluster, Role.ADMIN, payloads=True, live=dead.live, code=Code.of(app)) as client:
        path = f"/letters/{dead.dead}/0/2"
        shown = read(client, path)["letter"]["message"]["value"]["text"]
        assert msgspec.json.decode(shown) == {"n": HIDDEN}
        assert act(client, f"{path}/edit", value=shown)[0] == 400
        file = f"/topics/{dead.dead}/messages/0/2"
        assert client.get(f"{file}/file?part=value").status_code == 403
        page = client.get(file).text
        assert ("[secret]" in page, "Download" in page) == (True, False)
        found = read(client, f"/topics/{dead.dead}/search?text=n&place=value&wait=1")["hits"]
        assert {each["value"]["text"] for each in found} == {shown}
    assert dead.values(mock_cluster) == []


def test_an_admin_tries_a_letter_with_the_present_code(mock_cluster: Cluster) -> None:
    dead, app = Dead(mock_cluster), awoke.App(unique("app"))

    def handle(message: awoke.Message[bytes]) -> bytes:
        if message.value == b'{"n":0}':
            raise ValueError(HOSTILE)
        return message.value

    app.on(dead.topic, output="sums", dead_letter=dead.dead, retry=awoke.Retry(attempts=1))(handle)
    code, path = Code.of(app, trier(app)), f"/letters/{dead.dead}/0"
    with client_of(mock_cluster, Role.ADMIN, app=app.name, live=dead.live, code=code) as client:
        assert "Try with the present code" in client.get(f"{path}/1").text
        status, text = act(client, f"{path}/0/try")
        assert (status, "fails" in text or "dead-lettered after 1 attempts: ValueError" in text) == (409, True)
        answer = client.post(
            f"{path}/1/try", data=CONFIRMED, headers={**SAME_ORIGIN, "Accept": "application/json"}
        ).json()
        assert answer["text"] == "the present code handles 0:1; nothing was sent"
        assert answer["lines"] == ["would send to sums: hidden, 7 bytes"]
    with client_of(mock_cluster, Role.OPERATE, live=dead.live, code=code) as client:
        assert act(client, f"{path}/1/try")[0] == 403
    with client_of(mock_cluster, Role.ADMIN, live=dead.live) as client:
        assert act(client, f"{path}/1/try")[0] == 400
        assert "Try with" not in client.get(f"{path}/1").text
    assert dead.values(mock_cluster) == []
    assert [each[1:] for each in audited(mock_cluster, app.name)] == [
        ("try_letter", "a test", "begun"),
        ("try_letter", "a test", "TrialFailed"),
        ("try_letter", "a test", "begun"),
        ("try_letter", "a test", "done"),
    ]
