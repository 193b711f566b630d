"""The rings and trees NCCL builds for a communicator: a channel a NIC, rings that keep to rails."""

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.shapes import GPUS_PER_HOST

NOBODY = -1


def build_rings(hosts: Integers) -> Integers:
    """Members in ring order [channels, N], from the hosts [N] of the members, told host by host.

    A host's members take turns: where a ring leaves a host at one place, it enters the next at the
    same place, so each GPU uses its own NIC and no rail is left. With two members a host on an odd
    number of hosts that cannot be: one hop then changes rails.
    """
    members = _members_by_host(hosts)
    if len(members) == 1:
        alone = members[0]
        return np.stack([np.roll(alone, -channel) for channel in range(GPUS_PER_HOST)])
    channels = max(2, len(members[0]))
    shifts = _entry_shifts(len(members))
    rings = []
    for channel in range(channels):
        order: list[int] = []
        for host, places in enumerate(members):
            following = shifts[(host + 1) % len(members)]
            path = _path(len(places), channel + shifts[host], channel + following)
            order += [int(places[place]) for place in path]
        rings.append(order)
    return np.array(rings)


def build_trees(hosts: Integers, channels: int) -> tuple[Integers, Integers]:
    """Parents [channels, N] and children [channels, N, 3] of the members.

    A chain inside each host, NCCL's binary tree over the heads of the chains.
    """
    members = _members_by_host(hosts)
    parents = np.full((channels, len(hosts)), NOBODY)
    children = np.full((channels, len(hosts), 3), NOBODY)
    for channel in range(channels):
        chains = [np.roll(places, -(channel % len(places))) for places in members]
        for host, chain in enumerate(chains):
            parents[channel, chain[1:]] = chain[:-1]
            children[channel, chain[:-1], 0] = chain[1:]
            above, below = _binary_tree(host, len(chains))
            if above != NOBODY:
                parents[channel, chain[0]] = chains[above][0]
            for slot, other in enumerate(below, start=1):
                children[channel, chain[0], slot] = chains[other][0]
    return parents, children


def _members_by_host(hosts: Integers) -> list[Integers]:
    return np.split(np.arange(len(hosts)), np.flatnonzero(np.diff(hosts)) + 1)


def _entry_shifts(hosts: int) -> list[int]:
    """By how many places a ring's entry into each host is off the channel's number."""
    shifts = [host % 2 for host in range(hosts)]
    if hosts % 2:
        shifts[-1] = 2  # an odd number of hosts closes with a third place
    return shifts


def _path(places: int, entry: int, leaving: int) -> list[int]:
    """All places of a host in the order a ring visits them."""
    first, last = entry % places, leaving % places
    between = [(entry + step) % places for step in range(1, places)]
    if first == last:
        return [first, *between]
    return [first, *(place for place in between if place != last), last]


def _binary_tree(host: int, hosts: int) -> tuple[int, list[int]]:
    """Parent and children of a host, as NCCL numbers them: odd hosts are leaves."""
    bit = 1
    while bit < hosts and not bit & host:
        bit <<= 1
    if host == 0:
        return NOBODY, [bit >> 1] if hosts > 1 else []
    above = (host ^ bit) | (bit << 1)
    if above >= hosts:
        above = host ^ bit
    low = bit >> 1
    below = [host - low] if low else []
    while low and host + low >= hosts:
        low >>= 1
    if low:
        below.append(host + low)
    return above, below
