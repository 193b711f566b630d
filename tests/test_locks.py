"""The lock files: hashes for every file installed, and the lowest versions are those declared."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCKS = ["requirements.lock", "requirements-lowest.lock"]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
DEVELOPMENT = [Requirement(text) for text in PROJECT["dependency-groups"]["dev"]]


def locked(name: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Return by package name each pinned requirement and how many hashes it has."""
    pins: dict[str, list[tuple[Requirement, int]]] = {}
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        pin, *hashes = line.split("--hash=")
        requirement = Requirement(pin.strip())
        pins.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(hashes)))
    return pins


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    for package, pins in locked(name).items():
        for requirement, hashes in pins:
            assert hashes >= 1, f"{package} has no hash"
            assert [each.operator for each in requirement.specifier] == ["=="]


@pytest.mark.parametrize("name", LOCKS)
def test_every_declared_dependency_is_locked_within_its_bounds(name: str) -> None:
    pins = locked(name)
    for declared in [*DIRECT, *DEVELOPMENT]:
        versions = pins.get(canonicalize_name(declared.name), [])
        assert versions, f"{declared.name} is not in {name}: run `make lock`"
        for requirement, _ in versions:
            (pinned,) = requirement.specifier
            assert pinned.version in declared.specifier, f"{requirement} is not {declared}"


def test_the_lowest_versions_are_the_declared_ones() -> None:
    """A lower bound that nothing is tested with is a guess."""
    pins = locked("requirements-lowest.lock")
    for declared in DIRECT:
        lowest = Version(next(s.version for s in declared.specifier if s.operator == ">="))
        [(requirement, _), *_] = pins[canonicalize_name(declared.name)]
        (pinned,) = requirement.specifier
        found = Version(pinned.version)
        assert found.release[: len(lowest.release)] == lowest.release, (
            f"{declared.name}: declared {lowest}, tested with {found}"
        )


def test_every_dependency_has_a_lower_bound_and_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for declared in [*DIRECT, *DEVELOPMENT]:
        line = next(each for each in text.splitlines() if each.startswith(f'  "{declared.name}'))
        assert any(s.operator == ">=" for s in declared.specifier), line
        assert "#" in line, f"{declared.name} has no reason beside it"
