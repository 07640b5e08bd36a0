"""Random play and counting agree with the figures of independent programs."""

import pytest

from benchmarks import figures

LIMIT = 4  # standard errors; of some 30 figures one lies beyond it by chance in 500 runs


@pytest.mark.parametrize(
    "rounds", [20_000, pytest.param(figures.ROUNDS, marks=pytest.mark.slow, id="all")]
)
def test_random_play_agrees_with_the_reference(rounds: int) -> None:
    found = figures.random_play(rounds)
    assert len(found) == 22
    assert [f for f in found if abs(f.z) > LIMIT] == []


@pytest.mark.parametrize(
    "deals", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow, id="all")]
)
def test_deals_without_a_double_are_as_rare_as_counted(deals: int) -> None:
    assert [f for f in figures.no_double(deals) if abs(f.z) > LIMIT] == []


def test_the_shortest_and_the_longest_closed_line_are_found_and_no_other() -> None:
    for expected, closed, block in figures.blocks(150_000):
        assert (closed.min(), closed.max()) == (expected.shortest, expected.longest)
        assert block.min() == expected.shortest
        assert block.max() == expected.longest - 1  # every seat still holds a tile
