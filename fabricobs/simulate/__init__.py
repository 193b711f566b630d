"""A simulated cluster with a known fault: files as a site would have them, and the answer."""
