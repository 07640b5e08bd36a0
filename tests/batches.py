"""What the tests of `DominoVec` share: random legal actions, and whether batches are equal."""

from typing import Any

import numpy as np

from domino_env.vector import BATCH_FIELDS, Batch


def choose(batch: Batch, rng: np.random.Generator) -> np.ndarray:
    """A random legal action a row; an illegal one where the row is over."""
    noise = rng.random(batch.mask.shape) * batch.mask
    return np.where(batch.mask.any(axis=1), noise.argmax(axis=1), -7)


def same(one: Batch, other: Batch, rows: Any = slice(None)) -> bool:
    """Whether two batches agree in everything; `rows` are those of the first."""
    return all(
        np.array_equal(getattr(one, name)[rows], getattr(other, name)) for name in BATCH_FIELDS
    )
