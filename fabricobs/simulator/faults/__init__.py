"""The faults a scenario can have: where each strikes, what it does, and what the truth is then."""

from collections.abc import Callable

from fabricobs.simulator.faults.hosts import foreign_nics, gpudirect_off, socket_fallback
from fabricobs.simulator.faults.links import (
    bad_cable,
    bad_uplink_cable,
    degraded_speed,
    link_flap,
    one_way_dead_uplink,
    swapped_rails,
)
from fabricobs.simulator.faults.queues import (
    ecmp_polarisation,
    ecn_off,
    incast,
    lossy_class,
    mixed_traffic,
    oversubscription,
    pfc_storm,
    pfc_storm_watchdog,
)
from fabricobs.simulator.faults.work import (
    gpu_error,
    hang,
    slow_data_loading,
    slow_last_stage,
    straggling_host,
    straggling_rank,
    uneven_sequences,
)
from fabricobs.simulator.scene import Fault, Scene

Maker = Callable[[Scene], Fault]

FAULTS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        straggling_rank,
        straggling_host,
        slow_last_stage,
        uneven_sequences,
        slow_data_loading,
        ecmp_polarisation,
        one_way_dead_uplink,
        bad_cable,
        bad_uplink_cable,
        link_flap,
        pfc_storm,
        pfc_storm_watchdog,
        incast,
        degraded_speed,
        swapped_rails,
        gpudirect_off,
        socket_fallback,
        foreign_nics,
        oversubscription,
        ecn_off,
        mixed_traffic,
        lossy_class,
        hang,
        gpu_error,
    )
}
