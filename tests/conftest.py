"""Fixtures that several files of tests use."""

import pytest

from agents import tournament
from agents.evaluate import evaluate


@pytest.fixture
def evaluated(monkeypatch):
    """The pairings that were played."""
    pairings = []

    def noting(a, b, *rest, **how):
        pairings.append((a.name, b.name))
        return evaluate(a, b, *rest, **how)

    monkeypatch.setattr(tournament, "evaluate", noting)
    return pairings
