"""The settings that ingest and queries need, read without the schema that validates all.

Loading the schema takes a third as long as a command that finds nothing to do.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricobs.exceptions import UserError
from fabricobs.store.location import place_of
from fabricobs.store.session import NO_SITE, Site

if TYPE_CHECKING:
    from fabricobs.config.schema import Config

FILE_NAME = "fabricobs.toml"
PREFIX = "FABRICOBS_"
DEFAULT_STORE = Path("fabric-store")
_STORE_VARIABLE = f"{PREFIX}STORE"


class ConfigError(UserError):
    """A configuration that cannot be used; the text names file and key."""


class ConfigWarning(UserWarning):
    """What a configuration file says and is not in force."""


@dataclass(frozen=True, slots=True)
class Basics:
    """The store, own content, what is said of the input, and what the site says of its fabric."""

    store: Path = DEFAULT_STORE
    content: tuple[Path, ...] = ()
    job: str | None = None
    tz: str = "UTC"
    host_map: Path | None = None
    host_from: tuple[str, ...] = ()
    site: Site = NO_SITE
    follow: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller gives: a configuration file, and options by their dotted keys; None is unset.

    Both methods warn with ConfigWarning and raise ConfigError for what cannot be used.
    """

    file: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> "Config":
        """Return the configuration in force."""
        from fabricobs.config.load import load

        loaded = load(self.file, self.options)
        if loaded.warning:
            warnings.warn(loaded.warning, ConfigWarning, stacklevel=2)
        _check(loaded.config.job, loaded.config.content)
        return loaded.config

    def basics(self) -> Basics:
        """Return what reading and asking need of it; quick where nothing is configured."""
        if self.file is not None or is_configured():
            return self.config().basics
        basics = with_options(self.options)
        _check(basics.job, basics.content)
        return basics


def _check(job: str | None, content: Sequence[Path]) -> None:
    """Raise ConfigError unless the job has a name and the folders of content are there."""
    if job == "":
        raise ConfigError("--job: an empty name; leave the option out if the logs name their jobs")
    for folder in content:
        if not folder.is_dir():
            raise ConfigError(f"--content {folder}: no such folder")


def find_file(path: Path | None = None) -> Path | None:
    """Return the file to read: as given, or the first in the usual places.

    ConfigError where the file given, as an option or in `$FABRICOBS_CONFIG`, is not there.
    """
    named = os.environ.get(f"{PREFIX}CONFIG")
    given = path or (Path(named) if named else None)
    if given is not None:
        if not given.is_file():
            raise ConfigError(f"{given}: no such configuration file")
        return given
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = (Path(FILE_NAME), home / "fabricobs" / FILE_NAME)
    return next((place for place in places if place.is_file()), None)


def is_named(path: Path | None = None) -> bool:
    """Say whether the user named the file: as an option, in `$FABRICOBS_CONFIG`, or by its place.

    A file in the current directory is only found there.
    """
    return bool(path or os.environ.get(f"{PREFIX}CONFIG")) or find_file() != Path(FILE_NAME)


def check_zone(name: str) -> str:
    """Return the name of a time zone; ValueError if it is none."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: a folder of zones
        text = f"{name!r} is no time zone; use a name like UTC or Europe/Berlin"
        raise ValueError(text) from error
    return name


def is_configured() -> bool:
    """Say whether a file, or the environment beyond `$FABRICOBS_STORE`, may set anything."""
    others = {name for name in os.environ if name.startswith(PREFIX)} - {_STORE_VARIABLE}
    return bool(others) or find_file() is not None


def with_options(options: Mapping[str, Any]) -> Basics:
    """Return what options of a command and `$FABRICOBS_STORE` come to where nothing else is said.

    ConfigError for a value that cannot be used, as from `load`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "tz" in given:
        try:
            check_zone(given["tz"])
        except ValueError as error:
            raise ConfigError(f"option --tz: {error}") from error
    given["content"] = tuple(given.get("content", ()))
    given["host_from"] = tuple(given.get("host_from", ()))
    if os.environ.get(_STORE_VARIABLE):
        given.setdefault("store", Path(os.environ[_STORE_VARIABLE]))
    if "store" in given:
        given["store"] = place_of(given["store"])
    return Basics(**given)
