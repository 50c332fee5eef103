"""`awoke threads` over HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

import awoke
from awoke.cli.threads import threads as show_threads


def test_the_command_says_that_no_app_answers() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(awoke.AwokeError, match="no app answers"):
            show_threads(str(unused.getsockname()[1]))


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        pytest.param(b"", "no app answers", id="nothing"),
        pytest.param(b"\x00\x01 no HTTP\r\n", "no app answers", id="another protocol"),
        pytest.param(b"HTTP/1.0 404 Not Found\r\n\r\n", "no app answers", id="another site"),
        pytest.param(b'HTTP/1.0 200 OK\r\n\r\n{"a": 1}', "does not list threads", id="another document"),
    ],
)
def test_the_command_says_that_another_server_answers(reply: bytes, text: str) -> None:
    with answering(reply) as port, pytest.raises(awoke.AwokeError, match=text):
        show_threads(str(port))


@contextlib.contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A port where one client gets this reply."""

    def answer() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1_000)
            client.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()
