"""Items that are alike, in groups."""

from collections.abc import Callable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")


def in_groups(items: Iterable[_Item], alike: Callable[[_Item, _Item], bool]) -> list[list[_Item]]:
    """Return the items in groups: each joins the first group with whose first item it is alike."""
    groups: list[list[_Item]] = []
    for item in items:
        same = (group for group in groups if alike(group[0], item))
        group = next(same, None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups
