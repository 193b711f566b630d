"""The keys of a scenario that is drawn as random worlds are, but for the properties it names."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fabricobs.simulator.random_worlds.faults import fault_kinds
from fabricobs.simulator.random_worlds.spec import Spec, distributions, draw_spec, plain_site
from fabricobs.simulator.shapes import GPUS_PER_HOST, MOST_GPUS


class WorldShape(BaseModel):
    """A practice case drawn as random worlds are: `world` has the properties that make it.

    Names are those of `random_worlds/draws.toml`; `random_worlds/plain.toml` has the rest of a
    plain site, and the seed draws what neither names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    teaches: str
    gpus: int = Field(default=64, multiple_of=GPUS_PER_HOST, ge=16, le=MOST_GPUS)
    world: dict[str, Any]

    @model_validator(mode="after")
    def _has_known_properties(self) -> "WorldShape":
        for name in self.world:
            if name not in distributions():
                raise ValueError(f"world: no property {name!r} of random worlds")
        fault = self.world.get("fault")
        if fault is not None and fault not in fault_kinds():
            raise ValueError(f"world.fault: no fault {fault!r}; one of {', '.join(fault_kinds())}")
        self.spec(1)
        return self

    def spec(self, seed: int) -> Spec:
        """Draw the case of a seed."""
        size = {"hosts": self.gpus // GPUS_PER_HOST, "gpus_per_host": GPUS_PER_HOST}
        return draw_spec(seed, **(plain_site() | size | self.world))
