"""Find and read the configuration: one TOML file, and the source of each value.

A value is taken from the option of the command, else from the environment (`watch.every` is
`$FABRICOBS_WATCH_EVERY`), else from the file, else it is the default.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fabricobs.config.basics import PREFIX, ConfigError, find_file, is_named
from fabricobs.config.schema import Config, PlainOrSecret, Secret
from fabricobs.config.trust import is_foreign, is_trusted, reaching, without
from fabricobs.short_files import decoded, parsed, read_short
from fabricobs.store.location import is_address
from fabricobs.validation import explain, nearest


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, its file if there is one, and the source of every value set."""

    config: Config
    sources: Mapping[str, str]
    file: Path | None = None
    trusted: bool = True  # the file was named, or the user trusts it as it is
    ignored: tuple[str, ...] = ()  # keys of the file that are not in force

    @property
    def warning(self) -> str | None:
        """Say in one line what of a file is ignored, and how to trust it; None if nothing is."""
        if not self.ignored:
            return None
        used = [key for key, source in self.sources.items() if source == f"file {self.file}"]
        whose = "belongs to another user" if _belongs_to_another(self) else "is not trusted"
        return (
            f"{self.file} {whose}: ignored {', '.join(self.ignored)}; used "
            f"{', '.join(used) or 'nothing'}. `fabricobs config --trust` trusts it as it is now, "
            f"--config {self.file} names it"
        )

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
    file = find_file(path)
    data = read_short(file, ConfigError) if file is not None else b""
    document = {} if file is None else parsed(file, decoded(file, data, ConfigError), ConfigError)
    trusted = file is None or is_named(path) or is_trusted(file, data)
    ignored: list[str] = []
    if file is not None and not trusted:
        _validate(document, _sources(document, file), file)
        reached = reaching(document, Config, file.parent)
        ignored = list(document) if is_foreign(file) else reached
        document = without(document, ignored)
    sources = _sources(document, file)
    if file is not None:
        _anchor(document, file.parent)
    for key in _scalar_keys(Config):
        name = PREFIX + key.replace(".", "_").upper()
        if os.environ.get(name):
            _set(document, key, os.environ[name])
            sources[key] = f"environment ${name}"
    for key, value in (options or {}).items():
        if value is not None:
            _set(document, key, value)
            sources[key] = f"option --{key.rpartition('.')[2].replace('_', '-')}"
    config = _validate(document, sources, file)
    loaded = Loaded(config, sources, file, trusted, tuple(ignored))
    _check_thresholds(loaded)
    return loaded


def in_force(loaded: Loaded) -> Iterator[tuple[str, str, str]]:
    """Yield every key, its value as TOML has it, and where it is from; secrets are not revealed."""
    for names, value in _flat(loaded.config.model_dump(mode="json")):
        yield ".".join(map(_bare, names)), _toml(value), loaded.source(".".join(names))


def _belongs_to_another(loaded: Loaded) -> bool:
    return loaded.file is not None and is_foreign(loaded.file)


def _validate(document: dict[str, Any], sources: Mapping[str, str], file: Path | None) -> Config:
    """Return the configuration a document is; ConfigError says what is wrong with it, and where."""
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        loaded = Loaded(Config(), sources, file)
        text = explain(error, Config, lambda key: loaded.source(key).removeprefix("file "))
        raise ConfigError(text) from error


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


def _sources(document: Mapping[str, Any], file: Path | None) -> dict[str, str]:
    return dict.fromkeys(_leaves_of(document), f"file {file}")


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
        if inner and not issubclass(inner[0], (Secret, PlainOrSecret)):
            yield from _fields(inner[0], f"{above}{name}.")
        else:
            yield f"{above}{name}", field.annotation


def _scalar_keys(model: type[BaseModel]) -> Iterator[str]:
    """Yield the keys an environment variable can set: a text, a number, or a list of them."""
    for key, annotation in _fields(model):
        if "dict[" not in str(annotation) and "Secret" not in str(annotation):
            yield key


def _anchor(document: dict[str, Any], folder: Path) -> None:
    """Make the paths of a file relative to the file, those of its secrets too."""
    _anchor_secrets(document.get("notify"), folder)
    for key, annotation in _fields(Config):
        *above, name = key.split(".")
        table: Any = document
        for part in above:
            table = table.get(part) if isinstance(table, dict) else None
        if not isinstance(table, dict) or name not in table or "Path" not in str(annotation):
            continue
        value = table[name]
        if isinstance(value, str) and not (key == "store" and is_address(value)):
            table[name] = str(folder / Path(value).expanduser())
        elif isinstance(value, list):
            table[name] = [str(folder / Path(str(one)).expanduser()) for one in value]


def _anchor_secrets(part: Any, folder: Path) -> None:
    if isinstance(part, list):
        for one in part:
            _anchor_secrets(one, folder)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name == "file" and isinstance(value, str):
                part[name] = str(folder / Path(value).expanduser())
            _anchor_secrets(value, folder)


def _set(document: dict[str, Any], key: str, value: Any) -> None:
    *above, name = key.split(".")
    for part in above:
        inner = document.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        document = inner
    document[name] = value


def _flat(
    document: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the names that lead to every value, and the value; a reference to a secret is one."""
    for name, value in document.items():
        names = (*above, name)
        reference = isinstance(value, Mapping) and {"env", "file"} >= set(value)
        if isinstance(value, Mapping) and value and not reference:
            yield from _flat(value, names)
        else:
            yield names, value


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
