"""Files that hold secrets by their names: an ingest leaves them alone, in directories and archives.

A collected /proc or a home directory beside logs brings them along. Names that begin with a dot
(.env, .ssh, .netrc, .kube) are never read anyway. A file named on the command line is read.
"""

from fnmatch import fnmatchcase
from pathlib import PurePath

_NAMES = (
    "environ",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.env",
    "*.jks",
    "*.key",
    "*.keytab",
    "*.kubeconfig",
    "*.p12",
    "*.pem",
    "*.pfx",
    "credentials",
    "credentials.json",
    "gshadow",
    "kubeconfig",
    "shadow",
)
_FOLDERS = {".aws", ".docker", ".gnupg", ".kube", ".ssh"}


def is_private(path: PurePath) -> bool:
    """Say whether a file holds secrets by its name, or the arguments of a process (/proc/N)."""
    name = path.name.lower()
    if name == "cmdline" and path.parent.name.isdigit():
        return True
    return any(fnmatchcase(name, each) for each in _NAMES) or not _FOLDERS.isdisjoint(path.parts)
