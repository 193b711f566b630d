"""Servers on the loopback interface that tests talk to: our own, and those of Debian's packages."""

import itertools
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Request:
    """What came in: path, header fields, the JSON document."""

    path: str
    fields: dict[str, str]
    document: Any


@dataclass
class Receiver:
    """Takes POSTs and keeps them; answers with `status`, and GETs with `served`."""

    status: int = 200
    requests: list[Request] = field(default_factory=list)
    served: Callable[[], bytes] = bytes
    url: str = ""


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver on a port of its own."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            # Kept before it is answered: whoever has the answer finds it here.
            kept.requests.append(Request(self.path, dict(self.headers), json.loads(body)))
            self.send_response(kept.status)
            self.send_header("Content-Length", "0")
            if kept.status in {301, 302}:
                self.send_header("Location", f"{kept.url}/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            body = kept.served()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def tool(name: str) -> str:
    """Return the path of a program of Debian's packages, from PATH or $FABRICOBS_TOOLS; or skip."""
    places = os.pathsep.join(filter(None, (os.environ.get("FABRICOBS_TOOLS"), os.environ["PATH"])))
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"no {name} here: install its Debian package, or set $FABRICOBS_TOOLS")
    return found


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def server_of(command: list[str], ready: str) -> Iterator[None]:
    """Run a server until the block ends; it is up when it answers at `ready`."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: answers(ready), f"{command[0]} to answer at {ready}")
        yield
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    """Wait until a condition holds; fail if it does not in that time."""
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            pytest.fail(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


@contextmanager
def alertmanager(folder: Path, webhook: str) -> Iterator[str]:
    """Run an Alertmanager that tells `webhook` of every group; give its address."""
    program = tool("prometheus-alertmanager")
    (folder / "alertmanager.yml").write_text(
        "route: {receiver: us, group_by: [incident], group_wait: 0s, group_interval: 1s,\n"
        "  repeat_interval: 24h}\n"
        f"receivers: [{{name: us, webhook_configs: [{{url: '{webhook}/alerts'}}]}}]\n"
    )
    address = f"127.0.0.1:{free_port()}"
    command = [
        program, f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}", "--cluster.listen-address=",
    ]  # fmt: skip
    with server_of(command, f"http://{address}/-/ready"):
        yield f"http://{address}"


@contextmanager
def prometheus(folder: Path, scraped: str) -> Iterator[str]:
    """Run a Prometheus that scrapes one address every second; give its address."""
    program = tool("prometheus")
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: us, static_configs: [{{targets: ['{scraped}']}}]}}]\n"
    )
    address = f"127.0.0.1:{free_port()}"
    command = [
        program, f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus'}", f"--web.listen-address={address}",
    ]  # fmt: skip
    with server_of(command, f"http://{address}/-/ready"):
        yield f"http://{address}"


# What a server does with a client whose request it has got; OSError when the client goes.
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
def misbehaving(behaviour: Behaviour) -> Iterator[str]:
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
