"""Identity of a file: device, port and time of its rows, each with its source.

`times.py` finds times in names, `names.py` takes one name apart by meaning, `layout.py` infers from
all paths together which part names the host, `pattern.py` is what the user says (`--host-from`),
`naming.py` gives every file of an input its identity.
"""

from fabricobs.formats.identity.model import NO_IDENTITY, UNKNOWN, Identity

__all__ = ["NO_IDENTITY", "UNKNOWN", "Identity"]
