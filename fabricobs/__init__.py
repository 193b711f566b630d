"""Reads what a training cluster leaves behind and says why the run is slow."""

__version__ = "0.1.0"
