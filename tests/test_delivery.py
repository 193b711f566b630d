"""Targets that misbehave hold a round no longer than the deadline, and no other target at all."""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from urllib.parse import quote

import pytest
from loopback import receiver

from fabricobs.operate.delivery import Order, send_all

DEADLINE_S = 12.0
Behaviour = Callable[[socket.socket], None]


def drips(client: socket.socket) -> None:
    """Answer a byte a second, for ever: no single read of the socket takes long."""
    for byte in itertools.cycle(b"HTTP/1.1 200 OK\r\nX: yyyy\r\n"):
        client.sendall(bytes([byte]))
        time.sleep(1)


def floods_headers(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        client.sendall(b"y" * (1 << 16))


def continues_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def floods_body(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        client.sendall(b"10000\r\n" + b"y" * (1 << 16) + b"\r\n")


def says_nothing(client: socket.socket) -> None:
    client.recv(1 << 20)
    time.sleep(600)


@contextmanager
def server(behaviour: Behaviour) -> Iterator[str]:
    """Run a server that treats every client so; give its address."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client:
            client.recv(1 << 16)
            behaviour(client)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hunter2"
    finally:
        listening.close()


def post(target: str, url: str, *documents: object) -> Order:
    return Order(target, "http", tuple({"url": url, "document": d} for d in documents))


def test_a_bad_target_holds_nobody_beyond_the_deadline() -> None:
    taken: list[str] = []
    with (
        server(drips) as dripping,
        server(continues_for_ever) as continuing,
        server(says_nothing) as silent,
        receiver() as good,
    ):
        orders = [
            post("dripping", dripping, 1),
            post("continuing", continuing, 1),
            post("silent", silent, 1),
            post("good", good.url, 1, 2, 3),
        ]
        began = time.monotonic()
        failures = send_all(orders, DEADLINE_S, taken.append)
        seconds = time.monotonic() - began
    assert [request.document for request in good.requests] == [1, 2, 3]
    assert taken == ["good"] * 3
    assert failures == dict.fromkeys(("dripping", "continuing", "silent"), "not done in 12 s")
    assert seconds < 3 * DEADLINE_S
    assert not active_children(), "the senders are gone"


def test_an_answer_of_any_length_is_not_read() -> None:
    taken: list[str] = []
    with server(floods_body) as body, server(floods_headers) as headers:
        orders = [post("body", body, 1), post("headers", headers, 1)]
        failures = send_all(orders, 5 * DEADLINE_S, taken.append)
    assert taken == ["body"], "its status says that it took it"
    assert failures == {"headers": "LineTooLong"}


def test_a_chat_that_floods_ends_its_sender_alone(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("apprise")
    with server(floods_body) as flooding:
        address = flooding.replace("http://", "json://") + "?format=" + quote("text")
        message = {"urls": (address,), "title": "a", "body": "b", "failed": True}
        failures = send_all([Order("apprise", "chats", (message,))], DEADLINE_S, lambda _: None)
    assert failures
    assert "hunter2" not in str(failures)
    assert capfd.readouterr() == ("", "")
