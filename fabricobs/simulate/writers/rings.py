"""The rings NCCL builds on the cluster: one channel a NIC, every hop between hosts on one rail."""

from fabricobs.simulate.cluster import GPUS_PER_HOST, HOSTS

CHANNELS = GPUS_PER_HOST


def ring(channel: int) -> list[int]:
    """Ranks of one channel in ring order, from the rank that enters the first host.

    GPUs `channel` and its neighbour take turns: where one host sends with a GPU, the next host
    receives with the GPU of the same index, so each GPU uses its own NIC and no rail is left.
    """
    order: list[int] = []
    for host in range(HOSTS):
        order += [host * GPUS_PER_HOST + local for local in host_order(channel, host)]
    return order


def host_order(channel: int, host: int) -> list[int]:
    """Local GPU indices of one host in the order the channel visits them."""
    entry = channel if host % 2 == 0 else channel ^ 1
    stride = -1 if entry % 2 == 0 else 1
    return [(entry + stride * position) % GPUS_PER_HOST for position in range(GPUS_PER_HOST)]


def neighbours(channel: int, rank: int) -> tuple[int, int]:
    """Ranks before and after `rank` on the ring of a channel."""
    order = ring(channel)
    position = order.index(rank)
    return order[position - 1], order[(position + 1) % len(order)]
