"""The configuration: one TOML file found in the usual places, and the source of each value.

A value is taken from the option of the command, else from the environment (`watch.every` is
`$FABRICOBS_WATCH_EVERY`), else from the file, else it is the default. Secrets stand in the
environment or in files of their own: the configuration only refers to them.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from fabricobs.diagnosis.findings import Severity
from fabricobs.errors import UserError
from fabricobs.mistakes import explain, nearest
from fabricobs.store.session import LinkRate, Site

FILE_NAME = "fabricobs.toml"
_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*", re.IGNORECASE)


class ConfigError(UserError):
    """A configuration that cannot be used; the text names file and key."""


def parse_duration(text: Any) -> timedelta:
    """Return the duration that `5m`, `1h30m` or `30d` says; ValueError for anything else."""
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(str(text).strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration; write it as 90s, 5m, 1h30m, 30d or 4w")
    duration = timedelta(
        **{unit: int(n) for unit, n in zip(_UNITS, match.groups(), strict=True) if n}
    )
    if not duration:
        raise ValueError("a duration of zero")
    return duration


def duration_words(duration: timedelta) -> str:
    """Return a duration as it is written: `1h30m`."""
    seconds = round(duration.total_seconds())
    words = ""
    for unit, letter in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, unit)
        words += f"{count}{letter}" if count else ""
    return words or "0s"


def _separated(separator: str) -> BeforeValidator:
    return BeforeValidator(
        lambda value: value.split(separator) if isinstance(value, str) else value
    )


def _is_priority(value: int) -> int:
    if not 0 <= value <= 7:
        raise ValueError(f"{value} is no 802.1p priority: 0 to 7")
    return value


Duration = Annotated[
    timedelta, BeforeValidator(parse_duration), PlainSerializer(duration_words, when_used="always")
]
Priority = Annotated[int, AfterValidator(_is_priority)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(_Part):
    """Where a secret stands: `{ env = "NAME" }` or `{ file = "/path" }`. It is kept nowhere."""

    env: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "Secret":
        if (self.env is None) == (self.file is None):
            raise ValueError('give { env = "NAME" } or { file = "/path" }')
        return self

    def reveal(self) -> str:
        """Return the secret; ConfigError if it is not there."""
        if self.env is not None:
            value = os.environ.get(self.env, "")
            if not value:
                raise ConfigError(
                    f"environment variable {self.env}, which holds a secret, is not set"
                )
            return value
        assert self.file is not None
        try:
            return self.file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"secret file {self.file}: {error.strerror}") from error


def _is_address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not _ADDRESS.fullmatch(value):
        raise ValueError("no http:// or https:// address without query")
    if "@" in value.split("/")[2]:
        raise ValueError('an address with a password: refer to it by { env = "NAME" }')
    return {"plain": value}


class _Address(_Part):
    """An address written out, or the secret that holds it."""

    plain: str | None = None
    env: str | None = None
    file: Path | None = None

    def reveal(self) -> str:
        """Return the address; ConfigError if it refers to a secret that is not there."""
        return self.plain or Secret(env=self.env, file=self.file).reveal()

    @model_validator(mode="after")
    def _one_place(self) -> "_Address":
        if sum(value is not None for value in (self.plain, self.env, self.file)) != 1:
            raise ValueError('give an address, { env = "NAME" } or { file = "/path" }')
        return self


Address = Annotated[
    _Address,
    BeforeValidator(_is_address),
    PlainSerializer(lambda a: a.plain or a.model_dump(exclude_none=True), when_used="always"),
]


class AlertmanagerTarget(_Part):
    """An Alertmanager, by the address below which `api/v2` is."""

    url: Address
    token: Secret | None = None
    labels: dict[str, str] = {}


class WebhookTarget(_Part):
    """An address that takes each event as a JSON document by POST."""

    url: Address
    token: Secret | None = None


class AppriseTarget(_Part):
    """Chats and mail, by apprise URLs; they hold passwords, so each is a secret."""

    urls: Annotated[tuple[Secret, ...], Field(min_length=1)]


class TextfileTarget(_Part):
    """A file for node_exporter's textfile collector."""

    path: Path


class Notify(_Part):
    """Who is told of incidents, and from which severity on."""

    least_severity: Severity = "low"
    alertmanager: AlertmanagerTarget | None = None
    webhook: WebhookTarget | None = None
    apprise: AppriseTarget | None = None
    textfile: TextfileTarget | None = None


class Watch(_Part):
    """Timers of the watch; those of incidents run on the data's time, `stale_after` on ours."""

    every: Duration = timedelta(minutes=5)
    window: Duration | None = None
    recovering_after: Duration = timedelta(minutes=5)
    resolved_after: Duration = timedelta(minutes=15)
    stale_after: Duration = timedelta(hours=1)
    report: Path | None = None


class Config(_Part):
    """All that can be set."""

    store: Path = Path("fabric-store")
    content: Annotated[tuple[Path, ...], _separated(os.pathsep)] = ()
    job: str | None = None
    tz: str = "UTC"
    host_map: Path | None = None
    gpu_hour_price: Annotated[float, Field(ge=0)] | None = None
    priorities: Annotated[tuple[Priority, ...], _separated(",")] = ()
    keep: Duration | None = None
    link_rates: dict[str, Annotated[float, Field(gt=0)]] = {}
    thresholds: dict[str, dict[str, float]] = {}
    watch: Watch = Watch()
    notify: Notify = Notify()

    @model_validator(mode="after")
    def _link_rates_name_ports(self) -> "Config":
        for name in self.link_rates:
            if ":" not in name:
                raise ValueError(
                    f"link_rates: {name!r} names no port; write DEVICE:PORT, * for any"
                )
        return self

    @property
    def site(self) -> Site:
        """Return what the site says of its fabric, for a session."""
        rates = []
        for name, speed_gbps in self.link_rates.items():
            device, _, port = name.partition(":")
            rates.append(LinkRate(device, port, speed_gbps))
        return Site(tuple(rates), self.priorities)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, its file if there is one, and the source of every value set."""

    config: Config
    sources: Mapping[str, str]
    file: Path | None = None

    def source(self, key: str) -> str:
        """Return where the value of a dotted key is from, at worst that of the table above it."""
        parts = key.split(".")
        for length in range(len(parts), 0, -1):
            found = self.sources.get(".".join(parts[:length]))
            if found is not None:
                return found
        return "default"


def load(path: Path | None = None, options: Mapping[str, Any] | None = None) -> Loaded:
    """Find and read the configuration; `options` are dotted keys given on the command line.

    Raises ConfigError for a file that is not there or a value that cannot be used.
    """
    sources: dict[str, str] = {}
    file = _find(path)
    document = _read(file) if file is not None else {}
    for key in _leaves_of(document):
        sources[key] = f"file {file}"
    if file is not None:
        _anchor(document, file.parent)
    for key in _scalar_keys(Config):
        name = "FABRICOBS_" + key.replace(".", "_").upper()
        if os.environ.get(name):
            _set(document, key, os.environ[name])
            sources[key] = f"environment ${name}"
    for key, value in (options or {}).items():
        if value is not None:
            _set(document, key, value)
            sources[key] = "option"
    loaded = Loaded(Config(), sources, file)
    try:
        loaded = Loaded(Config.model_validate(document), sources, file)
    except ValidationError as error:
        text = explain(error, Config, lambda key: loaded.source(key).removeprefix("file "))
        raise ConfigError(text) from error
    _check_thresholds(loaded)
    return loaded


def in_force(loaded: Loaded) -> Iterator[tuple[str, str, str]]:
    """Yield every key, its value as TOML has it, and where it is from; secrets are not revealed."""
    for key, value in _flat(loaded.config.model_dump(mode="json")):
        yield key, _toml(value), loaded.source(key)


def _find(path: Path | None) -> Path | None:
    """Return the file to read: as given, or the first in the usual places."""
    given = path or (
        Path(os.environ["FABRICOBS_CONFIG"]) if os.environ.get("FABRICOBS_CONFIG") else None
    )
    if given is not None:
        if not given.is_file():
            raise ConfigError(f"{given}: no such configuration file")
        return given
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = (Path(FILE_NAME), home / "fabricobs" / FILE_NAME)
    return next((place for place in places if place.is_file()), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from error


def _check_thresholds(loaded: Loaded) -> None:
    """Raise ConfigError for a threshold no model has."""
    if not loaded.config.thresholds:
        return
    from fabricobs.diagnosis.model import load_models

    models = load_models(loaded.config.content)
    for name, limits in loaded.config.thresholds.items():
        key = f"thresholds.{name}"
        where = loaded.source(key).removeprefix("file ")
        if name not in models:
            raise ConfigError(f"{where}: {key}: no model of that name{nearest(name, models)}")
        for limit in limits:
            known = models[name].threshold
            if limit not in known:
                source = loaded.source(f"{key}.{limit}").removeprefix("file ")
                text = f"no such threshold{nearest(limit, known)}"
                raise ConfigError(f"{source}: {key}.{limit}: {text}")


def _leaves_of(document: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves_of(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _fields(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a model that are no table, and their types."""
    for name, field in model.model_fields.items():
        parts = (field.annotation, *get_args(field.annotation))
        inner = [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel)]
        if inner and not issubclass(inner[0], (Secret, _Address)):
            yield from _fields(inner[0], f"{above}{name}.")
        else:
            yield f"{above}{name}", field.annotation


def _scalar_keys(model: type[BaseModel]) -> Iterator[str]:
    """Yield the keys an environment variable can set: a text, a number, or a list of them."""
    for key, annotation in _fields(model):
        if "dict[" not in str(annotation) and "Secret" not in str(annotation):
            yield key


def _anchor(document: dict[str, Any], folder: Path) -> None:
    """Make the paths of a file relative to the file."""
    for key, annotation in _fields(Config):
        *above, name = key.split(".")
        table: Any = document
        for part in above:
            table = table.get(part) if isinstance(table, dict) else None
        if not isinstance(table, dict) or name not in table or "Path" not in str(annotation):
            continue
        value = table[name]
        if isinstance(value, str):
            table[name] = str(folder / Path(value).expanduser())
        elif isinstance(value, list):
            table[name] = [str(folder / Path(str(one)).expanduser()) for one in value]


def _set(document: dict[str, Any], key: str, value: Any) -> None:
    *above, name = key.split(".")
    for part in above:
        inner = document.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        document = inner
    document[name] = value


def _flat(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        key = f"{above}{_bare(name)}"
        reference = isinstance(value, Mapping) and {"env", "file"} >= set(value)
        if isinstance(value, Mapping) and value and not reference:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it; TOML has no null, so a missing one is said in words."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_bare(n)} = {_toml(v)}" for n, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    return str(value)
