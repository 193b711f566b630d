"""The configuration: where a value is from, and what a mistake is told as."""

from pathlib import Path

import pytest

from conftest import Run
from fabricobs.config.basics import ConfigError
from fabricobs.config.load import load
from fabricobs.config.schema import duration_words, parse_duration
from fabricobs.diagnosis.run import diagnose
from fabricobs.store.memory import LEAST_MEMORY_MB, MemoryLimitError, usual_memory_mb


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("FABRICOBS_CONFIG", raising=False)
    monkeypatch.delenv("FABRICOBS_STORE", raising=False)
    monkeypatch.chdir(tmp_path)

    def write(text: str, path: str = "fabricobs.toml") -> Path:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    return write


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("30d", 2592000), ("4w", 2419200)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text).total_seconds() == seconds
    assert parse_duration(duration_words(parse_duration(text))).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 minutes", "-5m", "0s", "1.5h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration"):
        parse_duration(text)


def test_option_before_environment_before_file_before_default(
    write, monkeypatch: pytest.MonkeyPatch  # type: ignore[no-untyped-def]
) -> None:  # fmt: skip
    write('job = "file"\ntz = "UTC"\n[watch]\nevery = "1m"\nwindow = "1h"\n')
    monkeypatch.setenv("FABRICOBS_WATCH_EVERY", "2m")
    monkeypatch.setenv("FABRICOBS_JOB", "environment")
    loaded = load(options={"job": "option", "keep": None})
    assert (loaded.config.job, loaded.source("job")) == ("option", "option --job")
    assert duration_words(loaded.config.watch.every) == "2m"
    assert loaded.source("watch.every") == "environment $FABRICOBS_WATCH_EVERY"
    assert loaded.source("watch.window") == "file fabricobs.toml"
    assert loaded.source("keep") == "default"


def test_where_a_file_is_found(write, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    assert load().config.job is None
    write('job = "home"', "home/.config/fabricobs/fabricobs.toml")
    assert load().config.job == "home"
    write('job = "here"')
    assert load().config.job == "here"
    monkeypatch.setenv("FABRICOBS_CONFIG", str(write('job = "named"', "other.toml")))
    assert load().config.job == "named"
    assert load(write('job = "given"', "given.toml")).config.job == "given"
    with pytest.raises(ConfigError, match="no such configuration file"):
        load(Path("nowhere.toml"))


def test_paths_of_a_file_are_relative_to_it(write) -> None:  # type: ignore[no-untyped-def]
    path = write(
        'store = "s"\ncontent = ["c"]\n[notify.textfile]\npath = "/abs.prom"', "etc/f.toml"
    )
    config = load(path).config
    assert config.store == path.parent / "s"
    assert config.content == (path.parent / "c",)
    assert config.notify.textfile is not None
    assert config.notify.textfile.path == Path("/abs.prom")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[watch]\nevrey = '5m'", "toml: watch.evrey: unknown key; did you mean 'every'?"),
        ("[watch]\nevery = '5 min'", "fabricobs.toml: watch.every: '5 min' is no duration"),
        ("[thresholds.stragler]\nz = 3", "no model of that name; did you mean 'straggler'?"),
        ("[thresholds.straggler]\nexces = 3", "exces: no such threshold; did you mean 'excess'?"),
        ("priorities = [9]", "priorities.0: 9 is no 802.1p priority: 0 to 7"),
        ("[link_rates]\nleaf01 = 400", "write DEVICE:PORT"),
        ("gpu_hour_price = -1", "gpu_hour_price: Input should be greater than or equal to 0"),
        ("memory_mb = 50", "memory_mb: Input should be greater than or equal to 100"),
        ("[notify.webhook]\nurl = 'example.org'", "webhook.url: no http:// or https:// address"),
        ("[notify.webhook]\nurl = 'https://u:p@x/'", "an address with a password: refer to it"),
        (
            "[notify.webhook]\nurl = 'https://x/'\ntoken = 'secret'",
            "webhook.token: a secret stands elsewhere: { env",
        ),
        ("[notify.apprise]\nurls = ['slack://x']", "urls.0: a secret stands elsewhere"),
        ("[notify.apprise]\nurls = []", "notify.apprise.urls: Tuple should have at least 1 item"),
        ("[notify]\nleast_severity = 'bad'", "least_severity: Input should be 'info', 'low'"),
        ("store = [", "fabricobs.toml: not valid TOML"),
    ],
)
def test_a_mistake_names_file_key_and_remedy(write, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    write(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert said in str(caught.value)


def test_a_secret_in_the_wrong_place_is_not_repeated(write) -> None:  # type: ignore[no-untyped-def]
    write("[notify.webhook]\nurl = 'https://user:hunter2@x/'\ntoken = 'hunter2'")
    with pytest.raises(ConfigError) as caught:
        load()
    assert "hunter2" not in str(caught.value)


def test_config_prints_what_is_in_force_and_no_secret(
    write, fabricobs: Run, monkeypatch: pytest.MonkeyPatch  # type: ignore[no-untyped-def]
) -> None:  # fmt: skip
    write(
        '[link_rates]\n"leaf*:Ethernet*" = 400\n'
        '[notify.webhook]\nurl = { env = "HOOK" }\ntoken = { file = "token" }\n'
    )
    monkeypatch.setenv("HOOK", "https://hunter2.example.org")
    monkeypatch.setenv("FABRICOBS_STORE", "elsewhere")
    result = fabricobs("config", "--config", "fabricobs.toml")
    lines = {line.split(" =")[0].strip(): line for line in result.stdout.splitlines()}
    assert lines["store"].split(" = ")[1].split() == [
        '"elsewhere"', "#", "environment", "$FABRICOBS_STORE",
    ]  # fmt: skip
    assert '= { env = "HOOK" }' in lines["notify.webhook.url"]
    assert "# file fabricobs.toml" in lines['link_rates."leaf*:Ethernet*"']
    assert "# default" in lines["watch.every"]
    assert "hunter2" not in result.stdout + result.stderr


def test_thresholds_and_price_change_the_diagnosis(sample_store: Path) -> None:
    (skew,) = diagnose(sample_store, gpu_hour_price=2.0).findings
    assert skew.gpu_hours_lost is not None
    assert skew.cost == pytest.approx(2 * skew.gpu_hours_lost, abs=0.01)
    impossible = {"ecmp_skew": {"effect": 0.0, "top_half_share": 1.0}}
    kinds = {finding.kind for finding in diagnose(sample_store, thresholds=impossible).findings}
    # What the skew explained stands by itself then.
    assert kinds == {"throughput_drop", "hash_collisions", "pausing_switch"}


def test_a_diagnosis_in_little_memory_finds_the_same(sample_store: Path) -> None:
    little = diagnose(sample_store, memory_mb=LEAST_MEMORY_MB)
    assert little.findings == diagnose(sample_store, memory_mb=4_000).findings


def test_the_usual_memory_grows_with_the_store() -> None:
    assert usual_memory_mb(50_000_000) == usual_memory_mb(0) == 500
    assert usual_memory_mb(195_000_000) == 780


def test_too_little_memory_is_said_with_the_setting(sample_store: Path) -> None:
    with pytest.raises(MemoryLimitError, match=r"limit of .*: set memory_mb in the configuration"):
        diagnose(sample_store, memory_mb=1)
