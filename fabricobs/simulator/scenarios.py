"""The scenarios that come along: loading `scenarios/*.toml`, or one the user wrote."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fabricobs.exceptions import UserError
from fabricobs.short_files import decoded, parsed, read_short
from fabricobs.simulator import SEED
from fabricobs.simulator.random_worlds.scenario import WorldShape
from fabricobs.simulator.shapes import ScenarioShape
from fabricobs.validation import nearest

FOLDER = Path(__file__).parent / "scenarios"


class ScenarioError(UserError):
    """A scenario that does not exist, or whose file has a mistake."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named case."""

    name: str
    shape: ScenarioShape | WorldShape

    @property
    def switch_interval(self) -> float:
        """Seconds between two readings of a switch."""
        if isinstance(self.shape, WorldShape):
            return self.shape.spec(SEED).switch_interval
        return self.shape.collection.switch_interval

    def sized(self, gpus: int | None) -> "Scenario":
        """The same case on a cluster of another size."""
        if gpus is None:
            return self
        changed = self.shape.model_dump()
        (changed if isinstance(self.shape, WorldShape) else changed["cluster"])["gpus"] = gpus
        try:
            return Scenario(self.name, type(self.shape).model_validate(changed))
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
    shape = WorldShape if "world" in document else ScenarioShape
    try:
        return Scenario(path.stem, shape.model_validate(document))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ScenarioError(f"{path}: {key}: {first['msg']}") from error
