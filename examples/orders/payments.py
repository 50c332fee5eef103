"""A payment service for the example: slow, and sometimes out of order. `python -m examples.orders.payments`."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER_S = (0.02, 0.05)
FAILING_SHARE = 0.05
CENTS_MAX = 100_000
BROKEN_CURRENCY = "XXX"
"""Orders in this currency always fail: a defect of the service."""


class Payments:
    """The payments that were made, by idempotency key. Any thread may call everything here."""

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        self._changed = threading.Condition()
        self._busy = threading.Event()
        self._running = 0
        self.running_max = 0
        """The most requests that were under way at once."""
        self.made: dict[str, str] = {}
        self.answers: dict[HTTPStatus, int] = {}
        """The number of answers of each status."""

    def answer(self, key: str, order: dict[str, Any]) -> tuple[HTTPStatus, dict[str, str]]:
        """Takes its time, and answers a request."""
        with self._changed:
            self._running += 1
            self.running_max = max(self.running_max, self._running)
        self._busy.wait(self._chance.uniform(*ANSWER_S))
        with self._changed:
            self._running -= 1
            status, answer = self._decide(key, order)
            self.answers[status] = self.answers.get(status, 0) + 1
            self._changed.notify_all()
        return status, answer

    def _decide(self, key: str, order: dict[str, Any]) -> tuple[HTTPStatus, dict[str, str]]:
        if order["currency"] == BROKEN_CURRENCY:
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"no rate for {BROKEN_CURRENCY}"}
        if order["cents"] > CENTS_MAX:
            return HTTPStatus.PAYMENT_REQUIRED, {"error": f"{order['cents']} cents are beyond the limit"}
        if self._chance.random() < FAILING_SHARE:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": "try again"}
        return HTTPStatus.OK, {"payment": self.made.setdefault(key, f"payment-{len(self.made) + 1}")}

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Blocks until this many payments were made, or for `timeout_s`; whether they were made."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.made) >= count, timeout_s)


class Server(ThreadingHTTPServer):
    """Serves payments on loopback."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, payments: Payments, port: int) -> None:
        super().__init__(("127.0.0.1", port), Request)
        self.payments = payments


class Request(BaseHTTPRequestHandler):
    """One request: an order to be paid."""

    server: Server

    def do_POST(self) -> None:
        """Answers with the payment, or with an error."""
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.payments.answer(self.headers["Idempotency-Key"], order)
        with contextlib.suppress(ConnectionError):  # A caller that was killed needs no answer.
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextlib.contextmanager
def serving(payments: Payments, port: int = 0) -> Iterator[str]:
    """Serves payments from a thread, on a free port unless one is given; the address."""
    with Server(payments, port) as server:
        thread = threading.Thread(target=server.serve_forever, name="payments")
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    """Serves until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt), serving(Payments(), 8099) as address:
        print(f"payments on {address}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
