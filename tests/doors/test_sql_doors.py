"""No SQL reads or writes outside the store: each case of `doors.toml`, by every way to run SQL."""

import http.server
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fabricobs as in_python
from fabricobs.content import ContentError
from fabricobs.exceptions import UserError
from fabricobs.querying import run_statement
from fabricobs.shell.commands import Shell
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from tests.conftest import Run

DOORS = tomllib.loads(Path(__file__).with_name("doors.toml").read_text(encoding="utf-8"))["door"]
STATEMENTS = [
    pytest.param(sql, door["told"], id=f"{door['way']}-{number}")
    for door in DOORS
    for number, sql in enumerate(door.get("sql", ()))
]


@dataclass(frozen=True, slots=True)
class Site:
    """A store, a directory of secrets beside it, a server, a shell on the store."""

    store: Path
    outside: Path
    server: str
    asked: list[str]
    shell: Shell

    def filled(self, sql: str) -> str:
        """Return a statement with the places of this site."""
        places = {"outside": self.outside, "store": self.store, "server": self.server}
        for name, place in places.items():
            sql = sql.replace(f"{{{name}}}", str(place))
        return sql


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("doors").resolve()
    outside = root / "outside"
    outside.mkdir()
    for name in ("secret.txt", "secret.csv", "secret.json"):
        (outside / name).write_text('{"secret": 42}\n', encoding="utf-8")
    pq.write_table(pa.table({"secret": [42]}), outside / "secret.parquet")
    Store(root / "store").create()
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815 (the name is the library's)

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with open_session(root / "store") as session:
            yield Site(root / "store", outside, address, asked, Shell(session))
        server.shutdown()


@contextmanager
def nothing_changes(site: Site) -> Iterator[None]:
    """Assert that no file appears, goes or changes beside or in the store, and nobody is asked."""
    before = _snapshot(site.store.parent)
    yield
    assert _snapshot(site.store.parent) == before
    assert site.asked == []


def _snapshot(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b""
        for path in sorted(root.rglob("*"))
        if path.name != ".readers"
    }


@pytest.mark.parametrize(("sql", "told"), STATEMENTS)
def test_a_statement_is_refused(site: Site, sql: str, told: str) -> None:
    statement = site.filled(sql)
    secret_rows = pa.table({"secret": [42]})  # a variable that SQL must not find
    opened = in_python.open(site.store)
    ways: list[Any] = [
        lambda: run_statement(opened.session, statement, "csv", None),
        lambda: opened.sql(statement).fetchall(),
        lambda: site.shell.run(f"{statement};"),
    ]
    with nothing_changes(site):
        for way in ways:
            with pytest.raises((UserError, duckdb.Error), match=told):
                way()
    assert secret_rows.num_rows == 1


@pytest.mark.parametrize(("sql", "told"), STATEMENTS)
def test_content_brings_no_statement_that_writes(
    site: Site, sql: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "own.sql").write_text(site.filled(sql), encoding="utf-8")
    opened = in_python.open(site.store, content=[tmp_path])
    with nothing_changes(site), pytest.raises((UserError, duckdb.Error), match=told):
        opened.query("own").fetchall()


@pytest.mark.parametrize(
    "script",
    [
        "COPY (SELECT 1) TO '{store}/x.csv'",
        "CREATE TABLE x AS WITH y AS (COPY (SELECT 1) TO '{store}/x.csv') SELECT * FROM y",
        "CREATE VIEW x AS SELECT * FROM query('SELECT 1')",
        "CREATE VIEW x AS SELECT * FROM json_execute_serialized_sql('{}')",
        'CREATE MACRO m(a) AS TABLE SELECT * FROM "query" (a)',
        "INSTALL httpfs",
        "SET threads = 1",
        "ATTACH '{store}/x.db'",
    ],
)
def test_content_brings_no_view_that_writes(site: Site, script: str, tmp_path: Path) -> None:
    (tmp_path / "queries" / "views").mkdir(parents=True)
    (tmp_path / "queries" / "views" / "own.sql").write_text(site.filled(script), encoding="utf-8")
    with nothing_changes(site), pytest.raises(ContentError, match=r"own\.sql.*refused"):
        open_session(site.store, extra=[tmp_path], keep=True)


def test_content_reads_no_file(site: Site, tmp_path: Path) -> None:
    (tmp_path / "queries" / "views").mkdir(parents=True)
    script = f"CREATE VIEW x AS SELECT * FROM read_text('{site.outside}/secret.txt')"
    (tmp_path / "queries" / "views" / "own.sql").write_text(script, encoding="utf-8")
    with pytest.raises(UserError, match="file system operations are disabled"):
        open_session(site.store, extra=[tmp_path])


def test_views_of_content_may_say_copy_in_words(site: Site, tmp_path: Path) -> None:
    (tmp_path / "queries" / "views").mkdir(parents=True)
    script = "-- copy\nCREATE VIEW copies AS SELECT 'copy' AS \"copy\", 1 AS query;"
    (tmp_path / "queries" / "views" / "own.sql").write_text(script, encoding="utf-8")
    with open_session(site.store, extra=[tmp_path]) as session:
        assert session.sql('SELECT "copy", query FROM copies').fetchall() == [("copy", 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT count(*) FROM files",
        "EXPLAIN (FORMAT json) SELECT 1",
        "DESCRIBE files",
        "SUMMARIZE steps",
        "SHOW TABLES",
        "FROM files SELECT count(*)",
        "VALUES (1)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) FROM n",
        "SELECT * FROM (PIVOT steps ON rank IN (0, 1) USING count(*))",
        "SELECT 'copy', \"query\" FROM (SELECT 1 AS query)",
        "SELECT 1; SELECT 2",
    ],
)
def test_what_reads_is_answered(site: Site, sql: str) -> None:
    in_python.open(site.store).sql(sql).fetchall()


def test_allowed_directories_are_read_and_never_written(site: Site, fabricobs: Run) -> None:
    reads = f"SELECT secret FROM '{site.outside}/secret.json'"
    writes = f"WITH x AS (COPY (SELECT 1) TO '{site.outside}/x.csv') SELECT * FROM x"
    given = ("--store", site.store, "--allow-files", site.outside, "--format", "csv")
    with nothing_changes(site):
        read = fabricobs("sql", reads, *given)
        assert (read.stdout, read.returncode) == ("secret\n42\n", 0)
        assert fabricobs("sql", writes, *given).returncode == 3
        opened = in_python.open(site.store, allow_files=[site.outside])
        assert opened.sql(reads).fetchall() == [(42,)]
    missing = fabricobs("sql", reads, "--store", site.store, "--allow-files", site.outside / "no")
    assert missing.returncode == 3
    assert "--allow-files" in missing.stderr


def test_a_refusal_ends_the_command_line_with_3(site: Site, fabricobs: Run) -> None:
    told = fabricobs("sql", "FROM read_text('/etc/hostname')", "--store", site.store)
    assert (told.returncode, told.stdout) == (3, "")
    assert "disabled by configuration" in told.stderr


def test_rows_are_still_written_by_out(site: Site, fabricobs: Run, tmp_path: Path) -> None:
    for name in ("csv", "json", "parquet"):
        out = tmp_path / f"rows.{name}"
        given = ("--store", site.store, "--format", name, "--out", out)
        assert fabricobs("sql", "SELECT 1 AS a", *given).returncode == 0
        assert out.stat().st_size > 0
