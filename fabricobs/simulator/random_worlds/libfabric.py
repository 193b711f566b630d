"""What NCCL and its plugin aws-ofi-nccl say of NICs that libfabric drives: EFA, Slingshot."""

from collections.abc import Iterator

from fabricobs.simulator.random_worlds.spec import Spec

_LOWER_CASE = (2, 23)  # releases of NCCL from which on sites have the plugin 1.14 or later


def network_name(spec: Spec) -> str:
    """What NCCL calls the network of the NICs."""
    return "AWS Libfabric" if spec.libfabric else "IB"


def libfabric_lines(spec: Spec, release: tuple[int, int], nics: int) -> Iterator[str]:
    """What the plugin says as it starts with so many NICs, by its release."""
    provider = spec.nic_driver
    if release < _LOWER_CASE:
        yield "NET/OFI Initializing aws-ofi-nccl 1.9.2-aws"
        yield "NET/OFI Using Libfabric version 1.20"
        yield f"NET/OFI Selected Provider is {provider} (found {nics} nics)"
    else:
        fabric = "efa-direct" if provider == "efa" else provider
        yield "NET/OFI Initializing aws-ofi-nccl 1.14.0"
        yield "NET/OFI Using Libfabric version 2.1"
        yield f"NET/OFI Selected provider is {provider}, fabric is {fabric} (found {nics} nics)"
    yield "NET/OFI Using transport protocol SENDRECV"
