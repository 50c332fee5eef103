"""A TCP proxy that knows Kafka's frames: it delays, holds, drops or cuts requests and responses by their API and count.

A client that begins at the proxy stays there: the cluster advertises the proxy's port as its own: `ProxiedCluster`.
Every rule counts how often it took effect, so that a test can show that its fault happened.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from tests.support.kafka_broker import KafkaCluster, free_ports

API_KEYS = {
    "Produce": 0,
    "Fetch": 1,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "SyncGroup": 14,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "TxnOffsetCommit": 28,
}

Direction = Literal["request", "response"]
Action = Literal["delay", "hold", "drop", "cut", "cut_after"]
"""`delay` passes a frame on later; `hold` when `release` is called, behind whose back the client is cut off; `drop`
never; `cut` closes the connection instead of passing it on, `cut_after` after passing it on."""


@dataclass
class Rule:
    """A fault, and the frames that it concerns."""

    api: str
    direction: Direction
    action: Action
    nth: int = 1
    """The first frame that it takes effect on, from 1; counted from when the rule was made."""
    times: int = 1
    """On how many in a row."""
    delay_s: float = 0.0
    seen: int = 0
    fired: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    happened: threading.Event = field(default_factory=threading.Event)

    def takes(self, api_key: int, direction: Direction) -> bool:
        """Counts a frame, and tells whether the rule takes effect on it."""
        if API_KEYS[self.api] != api_key or self.direction != direction:
            return False
        self.seen += 1
        if not self.nth <= self.seen < self.nth + self.times:
            return False
        self.fired += 1
        self.happened.set()
        return True

    def wait_happened(self, within_s: float = 30.0) -> None:
        """Wait until it took effect; fails when the time is up."""
        assert self.happened.wait(within_s), f"no {self.direction} of {self.api} came for {self.action}"


class KafkaProxy:
    """A listening port before one broker, as a context manager that closes its connections. Its loop has a thread."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port, self._broker_port = port, broker_port
        self._rules: list[Rule] = []
        self._is_black_hole = False
        self._loop = asyncio.new_event_loop()
        self._connections: set[_Connection] = set()
        self._thread = threading.Thread(target=self._run, name="kafka-proxy", daemon=True)
        self._started = threading.Event()

    def rule(
        self,
        api: str,
        action: Action,
        direction: Direction = "request",
        *,
        nth: int = 1,
        times: int = 1,
        delay_s: float = 0.0,
    ) -> Rule:
        """Add a rule; frames that pass from now on count."""
        rule = Rule(api, direction, action, nth, times, delay_s)
        self._call(lambda: self._rules.append(rule))
        return rule

    def clear(self) -> None:
        """Let everything pass again; what is held stays held."""
        self._call(self._rules.clear)

    def release(self, rule: Rule) -> None:
        """Pass on what a rule holds, on the connection to the broker that it came for, in order."""
        self._call(lambda: self._for_each(lambda each: each.release(rule)))

    def black_hole(self, is_one: bool) -> None:
        """Swallow everything in both directions, connections stay open; or let it pass again."""
        self._is_black_hole = is_one

    def cut_all(self) -> None:
        """Close every connection of a client."""
        self._call(lambda: self._for_each(_Connection.cut))

    def action_on(self, api_key: int, direction: Direction) -> Rule | None:
        """The rule that takes effect on this frame."""
        return next((rule for rule in self._rules if rule.takes(api_key, direction)), None)

    @property
    def is_black_hole(self) -> bool:
        """Tells whether nothing passes."""
        return self._is_black_hole

    def _for_each(self, function: Callable[[_Connection], object]) -> None:
        for connection in list(self._connections):
            function(connection)

    def _call(self, function: Callable[[], object]) -> None:
        done = threading.Event()

        def run() -> None:
            function()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._on_client, "127.0.0.1", self.port))
        self._started.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:
            writer.close()
            return
        connection = _Connection(self, (reader, writer), broker)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    def __enter__(self) -> KafkaProxy:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        def stop() -> None:
            self._server.close()
            for connection in list(self._connections):
                connection.close()
            self._loop.stop()

        self._loop.call_soon_threadsafe(stop)
        self._thread.join(10)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    """A client's connection, and the one to the broker. Held requests keep the latter open when the former is cut."""

    def __init__(self, proxy: KafkaProxy, client: Stream, broker: Stream) -> None:
        self._proxy, self._client, self._broker = proxy, client, broker
        self._api_of: dict[int, int] = {}
        """Requests that have no response yet: API by correlation id."""
        self._held: list[tuple[Rule, Direction, bytes]] = []
        self._is_cut = False

    async def run(self) -> None:
        """Pass frames on until both ends are closed."""
        await asyncio.gather(self._pass("request"), self._pass("response"), return_exceptions=True)
        self.close()

    def release(self, rule: Rule) -> None:
        """Pass on what the rule holds here."""
        for held, direction, frame in self._held:
            if held is rule:
                self._write(direction, frame)
        self._held = [each for each in self._held if each[0] is not rule]

    def cut(self) -> None:
        """Close the client's side."""
        self._is_cut = True
        self._client[1].close()

    def close(self) -> None:
        """Close both sides."""
        self.cut()
        self._broker[1].close()

    def _write(self, direction: Direction, frame: bytes) -> None:
        writer = self._broker[1] if direction == "request" else self._client[1]
        if not writer.is_closing():
            writer.write(struct.pack(">i", len(frame)) + frame)

    async def _pass(self, direction: Direction) -> None:
        reader = self._client[0] if direction == "request" else self._broker[0]
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                if self._proxy.is_black_hole:
                    continue
                if not await self._handle(direction, frame):
                    return
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            if direction == "response":
                self.close()  # The broker has gone.
            elif not self._held:
                self.close()

    async def _handle(self, direction: Direction, frame: bytes) -> bool:
        """Pass one frame on, or not; whether more may follow."""
        if direction == "request":
            api_key, _version, correlation_id = struct.unpack(">hhi", frame[:8])
            self._api_of[correlation_id] = api_key
        else:
            (correlation_id,) = struct.unpack(">i", frame[:4])
            api_key = self._api_of.pop(correlation_id, -1)
        rule = self._proxy.action_on(api_key, direction)
        if rule is None:
            self._write(direction, frame)
            return True
        if rule.action == "delay":
            await asyncio.sleep(rule.delay_s)
            self._write(direction, frame)
        elif rule.action == "hold":
            self._held.append((rule, direction, frame))
            self.cut()
            return False
        elif rule.action == "cut":
            self.close()
            return False
        elif rule.action == "cut_after":
            self._write(direction, frame)
            await (self._broker if direction == "request" else self._client)[1].drain()
            self.cut()
            return False
        return True


class ProxiedCluster:
    """One broker behind a proxy: clients that begin at `bootstrap_servers` meet the broker through the proxy only."""

    def __init__(self) -> None:
        proxy_port, behind_port = free_ports(2)
        listeners = {
            # The proxy's port is what the broker tells clients that came through the proxy.
            "listeners": f"PLAINTEXT://127.0.0.1:{{port}},PROXIED://127.0.0.1:{behind_port}"
            ",CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},PROXIED://127.0.0.1:{proxy_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        }
        self.kafka = KafkaCluster(1, listeners)
        self.proxy = KafkaProxy(proxy_port, behind_port)

    @property
    def bootstrap_servers(self) -> str:
        """Through the proxy."""
        return f"127.0.0.1:{self.proxy.port}"

    @property
    def direct_servers(self) -> str:
        """Past it."""
        return self.kafka.bootstrap_servers

    def __enter__(self) -> ProxiedCluster:
        self.kafka.__enter__()
        self.proxy.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.__exit__(kind, error, trace)
        self.kafka.__exit__(kind, error, trace)
