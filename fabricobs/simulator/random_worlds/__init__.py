"""Random worlds: clusters, jobs, logs and faults drawn from a seed, independently."""
