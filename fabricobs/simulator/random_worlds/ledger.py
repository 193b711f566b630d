"""What the counters of every port stand at, at any moment: only what its links really carried."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.physics import PACKET_BYTES, Transfer
from fabricobs.simulator.random_worlds.port_noise import corrected, without_buffer
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.sent_again import sent_again
from fabricobs.simulator.random_worlds.world import World

CONTROL_PACKET_BYTES = 110
_PACKETS_PER_CNP = 6
_SYMBOLS_PER_LOST_PACKET = 3.0
_TIMEOUTS_PER_LOST_PACKET = 0.02
_BACKGROUND_PAUSE = 2e-5  # of the transfer time: micro-bursts
_FAR_END = 0.2  # of the errors of the worse end of a cable: the other receiver's share
_CORRECTED_PER_BYTE = 2e-7  # FEC symbols corrected: a raw bit error rate of some 1e-8
_MENDED_PER_BIT = (
    2e-10  # symbol errors of devices that count those, hundreds of times what is allowed
)
_FRAMES_PER_MICROSECOND = 1 / 11
_KNOWN_EVENTS = 400  # of a counter, drawn one by one; beyond, it grows evenly
_SINCE = 3600.0  # seconds before the job in which control traffic ran

# Errors with the most that may stand on a counter from earlier times.
_OLD = {"crc": 2_000, "symbol": 50_000, "downs": 40, "tx_drops": 5_000, "recoveries": 60}
_PER_LINK = ("amount", "paused", "lost", "dropped", "marked")
_PER_NIC = ("marked_at", "marked_from", "lost_at", "lost_from")


@dataclass(frozen=True, slots=True)
class _Count:
    """How often something happened: K kinds; `edges` [2S] seconds, `kind` [S] of each."""

    edges: Floats
    first: Integers
    steps: Integers

    def at(self, moments: Floats) -> Floats:
        """How many [M, K] of each kind were done, parts included."""
        done = np.repeat(np.arange(len(self.edges) // 2 + 1, dtype=float), 2)[1:-1]
        total = np.interp(moments, self.edges, done)
        counts: Floats = np.clip(total[:, None] - self.first, 0, self.steps)
        return counts


class Ledger:
    """The counters of a world; `read` shows them as a device's ports do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.topology = world.topology
        self._counts: list[_Count] = []
        self._sums: list[dict[str, Floats]] = []
        for course in world.courses:
            self._add_course(course)
        self._before = world.spec.stream("before")
        self._old = self._old_errors()
        ports = 2 * len(self.topology.ends)
        self._bytes_before = world.spec.stream("bytes").lognormal(29, 1.5, ports)
        self._control = world.spec.stream("control").uniform(80, 400, ports)

    def _add_course(self, course: Course) -> None:
        for number in range(len(course.launch.phases)):
            begin, end = course.start[:, number].min(axis=1), course.done[:, number].max(axis=1)
            took = end - begin
            firsts = np.array([block.first for block in course.blocks])
            self._counts.append(
                _Count(
                    np.stack([begin, end], axis=1).ravel(),
                    firsts,
                    np.array([block.steps for block in course.blocks]),
                )
            )
            moved = [block.transfers[number] for block in course.blocks]
            mean = np.add.reduceat(took, firsts) / np.array([b.steps for b in course.blocks])
            self._sums.append(_summed(moved, mean))
        self._add_states(course)

    def _add_states(self, course: Course) -> None:
        """What grows with time rather than with transfers: storms, others' traffic, links down."""
        before = self.world.made_before(course.launch.number)
        own = self.world.state[before : before + course.steps]
        cuts = np.flatnonzero(np.diff(own)) + 1
        firsts = np.concatenate([[0], cuts])
        steps = np.diff(np.concatenate([firsts, [len(own)]]))
        edges = np.stack([course.begin, course.end], axis=1).ravel()
        self._counts.append(_Count(edges, firsts, steps))
        mean = np.add.reduceat(course.seconds, firsts) / steps
        states = [self.world.states[which] for which in own[firsts]]
        self._sums.append(
            {
                "amount": np.stack([s.foreign * m for s, m in zip(states, mean, strict=True)]),
                "aside": np.stack([s.aside * m for s, m in zip(states, mean, strict=True)]),
                "paused": np.stack([s.paused * m * 1e6 for s, m in zip(states, mean, strict=True)]),
                "downs": np.stack([(s.stall > 0).astype(float) for s in states]),
            }
        )

    def total(self, name: str, columns: Integers, moments: Floats) -> Floats:
        """A sum [M, P] of some links or NICs up to moments [M]; 0 before the job."""
        found: Floats = np.zeros((len(moments), len(columns)))
        for count, sums in zip(self._counts, self._sums, strict=True):
            if name in sums:
                found += count.at(moments) @ sums[name][:, columns]
        return found

    def read(self, device: int, moments: Floats) -> dict[str, Integers]:
        """The counters [M, P] of a device's ports at moments [M], cumulative, in port order."""
        ports = self.topology.ports_of(device)
        cable = np.array([c for c, _, _ in ports])
        side = np.array([s for _, s, _ in ports])
        sent, received = 2 * cable + side, 2 * cable + 1 - side
        port = 2 * cable + side
        spec = self.world.spec
        shown: dict[str, Integers] = {}
        for way, link in (("rx", received), ("tx", sent)):
            data = self.total("amount", link, moments)
            aside = self.total("aside", link, moments)
            control = self._control[port] * (moments[:, None] + _SINCE)
            before = self._bytes_before[port] * (1.0 if way == "rx" else 1.03)
            shown[f"{way}_bytes"] = _whole(before + data + aside + control)
            shown[f"{way}_data_bytes"] = _whole(before + data)
            shown[f"{way}_aside_bytes"] = _whole(aside)
            shown[f"{way}_packets"] = _whole(
                (before + data + aside) / PACKET_BYTES + control / CONTROL_PACKET_BYTES
            )
        # A link that is paused is so by its receiver.
        for way, link in (("tx", received), ("rx", sent)):
            paused = self.total("paused", link, moments)
            paused = paused + _BACKGROUND_PAUSE * 1e6 * self._running(moments)[:, None]
            shown[f"{way}_pause_us"] = _whole(paused)
            shown[f"{way}_pauses"] = _whole(paused * _FRAMES_PER_MICROSECOND)
        bits = 8 * self.total("amount", received, moments)
        lost = self.total("lost", received, moments) * np.where(cable % 2 == side, 1, _FAR_END)
        noise = corrected(self.world, device, moments, _SINCE)
        lost = lost + bits * spec.background_errors + noise.lost
        drops = self.total("dropped", sent, moments)
        downs = self.total("downs", sent, moments)
        for name, expected in {
            "crc": lost,
            "symbol": lost * _SYMBOLS_PER_LOST_PACKET + self._mended(device, port, bits),
            "tx_drops": drops,
            "recoveries": downs + lost * 0.01,
        }.items():
            shown[name] = self._happened(name, port, expected) + self._old[name][port]
        shown["downs"] = _whole(np.ceil(downs - 1e-9)) + self._old["downs"][port]
        # Words that hold one wrong bit, but where a line is noisy.
        few = bits / 8 * _CORRECTED_PER_BYTE * (1 + 0.1 * (port % 7))
        shown["corrected"] = _whole(few + noise.bits)
        shown["corrected_words"] = _whole(few + noise.words)
        shown["marked"] = _whole(self.total("marked", sent, moments))
        if self.topology.devices[device].tier == 0:
            sent_packets = self.total("amount", sent, moments) / PACKET_BYTES
            shown |= self._transport(device, cable, moments, sent_packets)
        return shown

    def _mended(self, device: int, ports: Integers, bits: Floats) -> Floats | float:
        """Symbols that FEC mends [M, P], where switches count these as errors."""
        if not self.world.spec.symbols_before_fec or self.topology.devices[device].tier == 0:
            return 0.0
        spread = [self.world.spec.stream("mended", int(port)).lognormal(0, 0.3) for port in ports]
        mended: Floats = bits * _MENDED_PER_BIT * np.array(spread)
        return mended

    def _transport(
        self, device: int, nic: Integers, moments: Floats, sent: Floats
    ) -> dict[str, Integers]:
        """What RDMA counts at NICs [M, P] that have sent packets [M, P]."""
        at, from_ = (self.total(f"marked_{e}", nic, moments) for e in ("at", "from"))
        lost_at, lost_from = (self.total(f"lost_{e}", nic, moments) for e in ("at", "from"))
        again = sent_again(self.world, nic, sent, lost_from, moments)
        return {
            "sent_again": _whole(again.packets),
            "unanswered": _whole(again.timeouts),
            "slowed": _whole(again.slowed),
            "ecn_received": _whole(at),
            "cnp_sent": _whole(at / _PACKETS_PER_CNP),
            "cnp_handled": _whole(from_ / _PACKETS_PER_CNP),
            "out_of_sequence": self._happened("oos", nic, lost_at),
            "sequence_errors": self._happened("nak", nic, lost_from),
            "out_of_buffer": _whole(without_buffer(self.world, device, moments)),
            "timeouts": self._happened("timeout", nic, lost_from * _TIMEOUTS_PER_LOST_PACKET),
        }

    def _running(self, moments: Floats) -> Floats:
        return np.clip(moments, 0, self.world.duration)

    def _happened(self, name: str, ports: Integers, expected: Floats) -> Integers:
        """Whole events [M, P] of a Poisson process of each port, the same for every reader."""
        counts = np.zeros(expected.shape, dtype=np.int64)
        for column in np.flatnonzero(expected.max(axis=0) > 1e-6):
            random = self.world.spec.stream("events", name, int(ports[column]))
            times = np.cumsum(random.exponential(size=_KNOWN_EVENTS))
            wanted = expected[:, column]
            beyond = np.maximum(wanted - times[-1], 0)
            counts[:, column] = np.searchsorted(times, wanted) + beyond.astype(np.int64)
        return counts

    def _old_errors(self) -> dict[str, Integers]:
        """Errors of earlier times [2C] on some ports: they stand on the counters and never grow."""
        ports = 2 * len(self.topology.ends)
        random = self._before
        return {
            name: np.where(
                random.random_sample(ports) < self.world.spec.old_errors,
                random.randint(1, most, ports),
                0,
            )
            for name, most in _OLD.items()
        }


def _summed(moved: list[Transfer], seconds: Floats) -> dict[str, Floats]:
    """What one step adds to each sum, by block [K, links or NICs]."""
    sums = {name: np.stack([getattr(m, name) for m in moved]) for name in (*_PER_LINK, *_PER_NIC)}
    sums["paused"] = sums["paused"] * (seconds * 1e6)[:, None]
    return sums


def _whole(values: Floats) -> Integers:
    whole: Integers = values.astype(np.int64)
    return whole
