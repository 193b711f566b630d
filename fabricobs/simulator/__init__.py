"""A simulated cluster with a known fault: files as a site would have them, and the answer."""

SEED = 20260322  # of the demo and the practice set, where none is given
