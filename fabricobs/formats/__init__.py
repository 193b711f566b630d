"""Every format there is, and the readers of its files."""

# Raise it when the engine reads the same definition differently than before.
ENGINE_VERSION = 8
