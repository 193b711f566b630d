"""How the causes are found, one method a module; a model of `models/` names the method it uses."""

from collections.abc import Callable

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.methods.ecmp_skew import find_ecmp_skew
from fabricobs.diagnosis.methods.hang import find_hangs
from fabricobs.diagnosis.methods.link_flap import find_link_flaps
from fabricobs.diagnosis.methods.one_way_uplink import find_one_way_uplinks
from fabricobs.diagnosis.methods.outlier import find_outliers
from fabricobs.diagnosis.methods.packet_loss import find_packet_loss
from fabricobs.diagnosis.methods.pfc_storm import find_pfc_storms
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.methods.straggler import find_stragglers
from fabricobs.diagnosis.methods.workload import find_workload_imbalance
from fabricobs.diagnosis.model import Model

Method = Callable[[Evidence, Model, list[StepTimeTrend]], MethodResult]

METHODS: dict[str, Method] = {
    "ecmp_skew": find_ecmp_skew,
    "hang": find_hangs,
    "link_flap": find_link_flaps,
    "one_way_uplink": find_one_way_uplinks,
    "packet_loss": find_packet_loss,
    "pfc_storm": find_pfc_storms,
    "rule": find_by_rule,
    "outlier": lambda evidence, model, trends: find_outliers(evidence, model),
    "straggler": find_stragglers,
    "workload_imbalance": find_workload_imbalance,
}
