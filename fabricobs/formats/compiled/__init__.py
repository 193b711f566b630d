"""What numba compiles: the readers of big files. Who calls it has the same in Python beside it."""
