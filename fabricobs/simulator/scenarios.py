"""The scenarios that come along: loading `scenarios/*.toml`, or one the user wrote."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fabricobs.exceptions import UserError
from fabricobs.short_files import decoded, parsed, read_short
from fabricobs.simulator.shapes import ScenarioShape
from fabricobs.validation import nearest

FOLDER = Path(__file__).parent / "scenarios"


class ScenarioError(UserError):
    """A scenario that does not exist, or whose file has a mistake."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named case."""

    name: str
    shape: ScenarioShape

    def sized(self, gpus: int | None) -> "Scenario":
        """The same case on a cluster of another size."""
        if gpus is None:
            return self
        changed = self.shape.model_dump()
        changed["cluster"]["gpus"] = gpus
        try:
            return Scenario(self.name, ScenarioShape.model_validate(changed))
        except ValidationError as error:
            raise ScenarioError(f"{gpus} GPUs: {error.errors()[0]['msg']}") from error


def scenario_names() -> list[str]:
    """Names of the scenarios that come along."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_scenario(name: str) -> Scenario:
    """Load a scenario by its name, or by the path of a file of the user's."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        if name.endswith(".toml"):
            raise ScenarioError(f"no file {name!r}, of a scenario of yours")
        raise ScenarioError(f"no scenario {name!r}{nearest(name, scenario_names(), else_all=True)}")
    text = decoded(path, read_short(path, ScenarioError), ScenarioError)
    document = parsed(path, text, ScenarioError)
    try:
        return Scenario(path.stem, ScenarioShape.model_validate(document))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ScenarioError(f"{path}: {key}: {first['msg']}") from error
