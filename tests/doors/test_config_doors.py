"""A fabricobs.toml found in the current directory reaches nothing until the user trusts it."""

import os
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import fabricobs as in_python
from fabricobs.config.load import load
from fabricobs.config.schema import Config
from fabricobs.config.trust import Reach
from fabricobs.store.parts import Store
from tests.conftest import Run

FOREIGN = """
job = "theirs"
tz = "Europe/Berlin"
store = "/elsewhere"
content = ["content"]
keep = "1s"
[watch]
every = "1m"
report = "report.html"
[notify.webhook]
url = "http://127.0.0.1:1/"
"""
IGNORED = ("store", "content", "keep", "watch.report", "notify")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FABRICOBS_CONFIG", "FABRICOBS_STORE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "fabricobs.toml").write_text(FOREIGN, encoding="utf-8")
    return folder


def test_what_reaches_further_is_ignored_and_told(here: Path, fabricobs: Run) -> None:
    loaded = load()
    assert set(loaded.ignored) == set(IGNORED)
    assert (loaded.config.job, loaded.config.tz) == ("theirs", "Europe/Berlin")
    assert loaded.config.store == Path("fabric-store")
    assert loaded.config.content == ()
    assert loaded.config.keep is None
    assert loaded.config.notify.webhook is None
    told = fabricobs("config")
    assert len(told.stderr.strip().splitlines()) == 1
    for word in (*IGNORED, "job", "tz", "watch.every", "config --trust", "--config"):
        assert word in told.stderr
    assert "elsewhere" not in told.stdout


def test_a_named_file_counts_in_full(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(Path("fabricobs.toml")).config.store == Path("/elsewhere")
    monkeypatch.setenv("FABRICOBS_CONFIG", "fabricobs.toml")
    loaded = load()
    assert (loaded.config.store, loaded.ignored) == (Path("/elsewhere"), ())


def test_a_trusted_file_counts_until_it_changes(here: Path, fabricobs: Run) -> None:
    told = fabricobs("config", "--trust")
    assert (told.returncode, "is trusted as it is now" in told.stderr) == (0, True)
    assert load().config.store == Path("/elsewhere")
    record = next((here.parent / "home").rglob("trusted/*"))
    assert record.parent.stat().st_mode & 0o077 == 0
    file = here / "fabricobs.toml"
    file.write_text(FOREIGN.replace("/elsewhere", "/other"), encoding="utf-8")
    assert "store" in load().ignored
    file.write_text(FOREIGN, encoding="utf-8")
    assert load().ignored == ()
    copied = here.parent / "copy"
    copied.mkdir()
    (copied / "fabricobs.toml").write_text(FOREIGN, encoding="utf-8")
    os.chdir(copied)
    assert "store" in load().ignored


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_used_at_all(here: Path) -> None:
    os.chown(here / "fabricobs.toml", 12345, 12345)
    loaded = load()
    assert loaded.config == Config()
    assert "belongs to another user" in (loaded.warning or "")


def test_paths_below_the_folder_are_harmless(here: Path) -> None:
    (here / "out").symlink_to(here.parent)
    for store, ignored in (("s", ()), ("./a/s", ()), ("../s", ("store",)), ("out/s", ("store",))):
        (here / "fabricobs.toml").write_text(f'store = "{store}"\n', encoding="utf-8")
        assert load().ignored == ignored, store


def test_python_warns_and_a_schedule_asks_for_trust(here: Path, fabricobs: Run) -> None:
    Store(here / "fabric-store").create()
    with pytest.warns(UserWarning, match="ignored"):
        in_python.open()
    told = fabricobs("schedule", "cron", ".")
    assert told.returncode == 3
    assert "not trusted" in told.stderr


def test_every_key_that_names_a_place_is_marked() -> None:
    """A new key that holds a path, an address or a secret must say how far it reaches."""

    def unmarked(model: type[BaseModel]) -> list[str]:
        found = []
        for name, field in model.model_fields.items():
            if any(isinstance(mark, Reach) for mark in field.metadata):
                continue
            parts: tuple[Any, ...] = (field.annotation, *get_args(field.annotation))
            models = [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)]
            if models:
                found += [f"{name}.{inner}" for inner in unmarked(models[0])]
            elif "Path" in str(field.annotation) or "Secret" in str(field.annotation):
                found.append(name)
        return found

    assert unmarked(Config) == []
