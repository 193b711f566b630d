"""The reference of the Python API in docs/python.md, from its signatures and docstrings."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import fabricobs
from fabricobs.api import OpenStore
from fabricobs.report.markdown import page


def python_reference() -> str:
    """Return a section for each function of `fabricobs` and each method of what `open` gives."""
    methods = [
        (name, member)
        for name, member in vars(OpenStore).items()
        if not name.startswith("_") and inspect.isfunction(member)
    ]
    names = [name for name in fabricobs.__all__ if name.islower() and not name.startswith("_")]
    sections = [_section(f"fabricobs.{name}", getattr(fabricobs, name)) for name in names]
    sections += [_section(f"OpenStore.{name}", member) for name, member in methods]
    return page(*sections).strip()


def _section(name: str, function: Callable[..., Any]) -> str:
    written = re.sub(r"\(self(?:, )?", "(", str(inspect.signature(function)))
    plain = re.sub(r"\b(?:pathlib|typing|collections\.abc)\.", "", written)
    unquoted = re.sub(r"(: |-> )'([^']*)'", r"\1\2", plain)
    return page(f"### {name}", f"`{name}{unquoted}`", inspect.getdoc(function) or "")
