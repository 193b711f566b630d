"""Whether two findings are about the same part: the two ends of a cable are of one."""

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity, Finding

Place = tuple[str | None, ...]

_ALIKE = {"host", "rank"}


class Places:
    """The parts an entity stands for, by the cables the store knows."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        rows = evidence.frame("nic_ports").rows()
        self._port_of = {(host, nic): (switch, port) for host, nic, switch, port in rows}
        self._nic_of = {(switch, port): (host, nic) for host, nic, switch, port in rows}
        self._far_end_of: dict[Place, Place] = {
            (end["owner"], end["part"]): (end["far_owner"], end["far_part"])
            for end in evidence.frame("cable_ends").rows(named=True)
            if not (end["is_nic"] or end["far_is_nic"])
        }

    def touch(self, cause: Finding, symptom: Finding) -> bool:
        """Say whether the culprits of a symptom share parts with a cause's, or are its victims.

        All of them where they are several hosts or ranks: one of eight that are slow alike has
        its cause in common with the seven, unless the seven wait for it in a communicator. A
        finding about a whole job touches all that is of no other job.
        """
        if any(entity.type == "job" for entity in (*cause.entities, *symptom.entities)):
            return True
        parts = self._places(cause.entities) | self._places(cause.related)
        # What a port does shows on its switch; what a switch does is not of each of its ports.
        parts |= {("switch", part[1]) for part in parts if part[0] == "port"}
        touched = [bool(self._of(entity) & parts) for entity in symptom.entities]
        alike = all(entity.type in _ALIKE for entity in symptom.entities)
        return any(touched) and (all(touched) or not alike or self._wait_for_each_other(symptom))

    def _wait_for_each_other(self, symptom: Finding) -> bool:
        """Say whether parts that only arrive late are hosts of one communicator, most of it."""
        hosts = {entity.host for entity in symptom.entities}
        if symptom.computes or None in hosts:
            return False
        groups = map(set, self._evidence.frame("hosts_of_groups")["hosts"])
        return any(hosts <= group and 2 * len(hosts) >= len(group) for group in groups)

    def nic_at(self, switch: str | None, port: str | None) -> Entity | None:
        """Return the NIC at the other end of a leaf port's cable."""
        if (switch, port) not in self._nic_of:
            return None
        host, nic = self._nic_of[switch, port]
        return Entity("nic", host=host, nic=nic)

    def port_at(self, host: str | None, nic: str | None) -> Entity | None:
        """Return the leaf port at the other end of a NIC's cable."""
        if (host, nic) not in self._port_of:
            return None
        switch, port = self._port_of[host, nic]
        return Entity("port", switch=switch, port=port)

    def _places(self, entities: tuple[Entity, ...]) -> set[Place]:
        places: set[Place] = set()
        for entity in entities:
            places |= self._of(entity)
        return places

    def _of(self, entity: Entity) -> set[Place]:
        if entity.type == "port":
            other = self.nic_at(entity.switch, entity.port)
            far = self._far_end_of.get((entity.switch, entity.port))
            ends: set[Place] = {("port", entity.switch, entity.port)}
            ends |= {("port", *far)} if far is not None else set()
            return ends if other is None else ends | {("host", other.host)}
        if entity.type == "switch":
            return {("switch", entity.switch)}
        if entity.host is None:
            return set()
        places: set[Place] = {("host", entity.host)}
        if entity.type == "nic":
            port = self.port_at(entity.host, entity.nic)
            if port is not None:
                places.add(("port", port.switch, port.port))
        return places
