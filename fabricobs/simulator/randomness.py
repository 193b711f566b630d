"""Random numbers: one independent stream a purpose, the same from every release of numpy."""

import numpy as np

Random = np.random.RandomState


def stream(seed: int, *purpose: int) -> Random:
    """One of a seed's independent streams of random numbers.

    The older generator is used because its numbers are promised never to change between releases.
    """
    return np.random.RandomState([seed, *purpose])
