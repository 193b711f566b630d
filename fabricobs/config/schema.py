"""What can be configured, and the defaults.

Secrets stand in the environment or in files of their own: a configuration only refers to them.
"""

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from fabricobs.config.basics import DEFAULT_STORE, Basics, ConfigError, check_zone
from fabricobs.config.trust import Reach
from fabricobs.diagnosis.findings import Severity
from fabricobs.exceptions import UserError
from fabricobs.formats.identity.pattern import compile_pattern
from fabricobs.store.location import place_of, shown
from fabricobs.store.memory import LEAST_MEMORY_MB
from fabricobs.store.session import LinkRate, Site

_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_LONGEST = timedelta(days=36_500)  # no log is older; times less this are times still
_UNITS = ("weeks", "days", "hours", "minutes", "seconds")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*", re.IGNORECASE)


def parse_duration(text: Any) -> timedelta:
    """Return the duration that `5m`, `1h30m` or `30d` says; ValueError for anything else."""
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(str(text).strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration; write it as 90s, 5m, 1h30m, 30d or 4w")
    parts = {unit: int(n) for unit, n in zip(_UNITS, match.groups(), strict=True) if n}
    try:
        duration = timedelta(**parts)
    except OverflowError:
        duration = timedelta.max
    if not duration:
        raise ValueError("a duration of zero")
    if duration > _LONGEST:
        raise ValueError(f"{text!r} is longer than {_LONGEST.days // 365} years")
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


def _is_pattern(value: str) -> str:
    try:
        compile_pattern(value)
    except UserError as error:
        raise ValueError(str(error)) from error
    return value


_as_tuple = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Pattern = Annotated[str, AfterValidator(_is_pattern)]
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

    @model_validator(mode="before")
    @classmethod
    def _no_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError('a secret stands elsewhere: { env = "NAME" } or { file = "/path" }')
        return value

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
    _checked_address(value)
    if "@" in value.split("/")[2]:
        raise ValueError('an address with a password: refer to it by { env = "NAME" }')
    return {"plain": value}


def _checked_address(value: str | None) -> str | None:
    if value is not None and not _ADDRESS.fullmatch(value):
        raise ValueError("no http:// or https:// address without query")
    return value


class PlainOrSecret(_Part):
    """An address written out, or the secret that holds it."""

    plain: str | None = None
    env: str | None = None
    file: Path | None = None

    def reveal(self) -> str:
        """Return the address; ConfigError if it refers to a secret that is not there."""
        return self.plain or Secret(env=self.env, file=self.file).reveal()

    @model_validator(mode="after")
    def _one_place(self) -> "PlainOrSecret":
        if sum(value is not None for value in (self.plain, self.env, self.file)) != 1:
            raise ValueError('give an address, { env = "NAME" } or { file = "/path" }')
        return self


Address = Annotated[
    PlainOrSecret,
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
    deadline: Duration = timedelta(seconds=30)
    # The address of the directory that holds the report: alerts link to the page of an incident.
    base_url: Annotated[str | None, AfterValidator(_checked_address)] = None
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
    unexplained_after: Duration = timedelta(minutes=10)
    stale_after: Duration = timedelta(hours=1)
    report: Annotated[Path | None, Reach()] = None


class Config(_Part):
    """All that can be set; `Reach` marks what a file must be named or trusted for."""

    store: Annotated[
        Path, AfterValidator(place_of), PlainSerializer(shown, when_used="json"), Reach(below=True)
    ] = DEFAULT_STORE
    content: Annotated[tuple[Path, ...], _separated(os.pathsep), Reach()] = ()
    job: str | None = None
    tz: Annotated[str, AfterValidator(check_zone)] = "UTC"
    # Symbolic links that lead out of the input are followed.
    follow: Annotated[bool, Reach()] = False
    host_map: Annotated[Path | None, Reach(below=True)] = None
    host_from: Annotated[tuple[Pattern, ...], _as_tuple] = ()
    cluster: str = ""  # as reports name it
    gpu_hour_price: Annotated[float, Field(ge=0)] | None = None
    currency: Annotated[str, Field(max_length=8)] = ""  # of that price, as EUR
    priorities: Annotated[tuple[Priority, ...], _separated(",")] = ()
    # What DuckDB may take in a diagnosis; beyond it, it uses the directory for temporary files.
    memory_mb: Annotated[int, Field(ge=LEAST_MEMORY_MB)] | None = None
    # It removes rows.
    keep: Annotated[Duration | None, Reach()] = None
    link_rates: dict[str, Annotated[float, Field(gt=0)]] = {}
    thresholds: dict[str, dict[str, float]] = {}
    watch: Watch = Watch()
    notify: Annotated[Notify, Reach()] = Notify()

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

    @property
    def basics(self) -> Basics:
        """Return what reading and asking need."""
        return Basics(
            self.store,
            self.content,
            self.job,
            self.tz,
            self.host_map,
            self.host_from,
            self.site,
            self.follow,
        )
