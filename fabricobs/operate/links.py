"""Where an incident is shown: its page below the address of the site, and the command for it."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from fabricobs.report.site import incident_page


@dataclass(frozen=True, slots=True)
class Links:
    """`base_url` is the address of the directory of the report; pages are kept only with it."""

    store: Path
    base_url: str | None = None

    def page(self, id_: str) -> str:
        """Return the address of the page of an incident; empty without `base_url`."""
        return f"{self.base_url.rstrip('/')}/{incident_page(id_)}" if self.base_url else ""

    def command(self, id_: str) -> str:
        """Return the command that shows the incident with its rows."""
        return f"fabricobs explain {id_} --store {shlex.quote(str(self.store.absolute()))}"
