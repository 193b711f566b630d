"""The identity of a file: device, port and time, each with its source."""

from dataclasses import dataclass

from fabricobs.formats.identity.vocabulary import is_surely_a_device

# A device or port that nothing names is called `unknown:PATH`: no two unknown sources are one.
UNKNOWN = "unknown:"
_SAID = frozenset({"map", "bundle"})


@dataclass(frozen=True, slots=True)
class Identity:
    """What holds for the rows of a file whose lines do not say otherwise.

    `device_source` is `map` (--host-from, a host map), `bundle` (a file `hostname` beside it),
    `path`, `guess` (a path in which only the looks of a name speak for it) or `unknown`. `ts` is in
    microseconds UTC; `ts_source` as in the tables. `doubt` says what a reader of the account should
    know. `is_stated` means that the path itself says that the name is a host's, as `host=c1`.
    """

    device: str | None = None
    device_source: str | None = None
    port: str | None = None
    rank: int | None = None
    ts: int | None = None
    ts_source: str = "none"
    doubt: str | None = None
    is_stated: bool = False

    @property
    def of_log(self) -> "Identity":
        """Return what counts for the rows of a log, whose lines tell all they need.

        Of its path only the rank counts and a name that is surely a host's: others may be those of
        experiments. Its time is that of its beginning or of its rotation.
        """
        of_path = self.device_source == "path" and is_surely_a_device(self.device or "")
        if not (self.device_source in _SAID or self.is_stated or of_path):
            return Identity(rank=self.rank)
        return Identity(self.device, self.device_source, rank=self.rank, is_stated=self.is_stated)


NO_IDENTITY = Identity()
