"""Figures of games of A against B: counting them (`Tally`), what they come to (`Result`).

Letters: `R` rotations (places that A can take), `P` seats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from domino_env.rules import Rules
from domino_env.state import UNIT

SEED_STEP = 2**32  # deal i is that of the game with seed SEED_STEP * seed + i: no two seeds share
BLOCKS = 64  # parts of the deals, deal i in part i % BLOCKS, whose spread gives ratings intervals
UNKNOWN = "ci95", "fewer_games"  # figures that may be nan, None in JSON
LEAST_DEALS = 200  # before that many, the spread is not known well enough to stop by it


@dataclass(frozen=True)
class Result:
    """What came out of A's games against B. Rewards are A's, and those of one game."""

    a: str
    b: str
    rules: Rules
    seed: int
    mean: float  # reward
    ci95: float  # half width of the 95% interval of the mean; nan for a single deal
    deals: int
    games: int
    wins: float  # share of A's games with positive reward
    draws: float  # zero
    losses: float  # negative
    points: float  # mean of what A's reward would be under `reward: points`
    fewer_games: float = math.nan  # see `to_dict`
    blocks: tuple[int, ...] = ()  # what A won of the games of each part of the deals, see `Tally`
    interrupted: bool = field(default=False, compare=False)  # Ctrl-C came before the end
    sums: tuple[int, ...] = field(default=(), compare=False, repr=False)  # to go on from, `Tally`

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON, without `blocks`, `interrupted` and `sums`.

        `fewer_games` tells what duplicate play is worth: plain play (A in a random place, a fresh
        deal each game) takes that many times the games for the same interval. It is None where
        every deal came out the same, `ci95` where there is but one.
        """
        left_out = ("blocks", "interrupted", "sums")
        figures = {name: value for name, value in vars(self).items() if name not in left_out}
        unknown = {name: None for name in UNKNOWN if math.isnan(figures[name])}
        return {**figures, "rules": self.rules.to_dict(), **unknown}

    def interval(self) -> str:
        """The mean with its interval, as text: `+0.194 ± 0.019`."""
        half = "?" if math.isnan(self.ci95) else f"{self.ci95:.3f}"  # one deal has no spread
        return f"{self.mean:+.3f} ± {half}"


@dataclass(frozen=True)
class Budget:
    """How many deals are played: `deals`, or until a result says enough, but no more than that.

    `until` ends it as soon as the half width of the interval is at most that. `until_clear` is a
    number of deals: after that many, twice, four times as many, it ends if the interval does not
    hold 0. With either of them `deals` may be None. Raises `ValueError`.
    """

    deals: int | None
    until: float | None = None
    until_clear: int | None = None

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {}  # NumPy's numbers as Python's, for JSON
        if self.until is not None:
            plain["until"] = _half_width(self.until)
        if self.until_clear is not None:
            plain["until_clear"] = check_count("until_clear", self.until_clear, 1, SEED_STEP)
        if len(plain) == 2:
            raise ValueError("until: found until_clear too, expected one of them")
        if self.deals is not None or not plain:
            plain["deals"] = check_count("deals", self.deals, 1, SEED_STEP)
        for name, value in plain.items():
            object.__setattr__(self, name, value)  # frozen

    @property
    def most(self) -> int:
        """The most deals that are played."""
        return SEED_STEP if self.deals is None else self.deals

    def is_spent(self, before: int, result: Result) -> bool:
        """Whether a result is enough; the last one that was asked about had `before` deals."""
        if self.until is not None:
            return result.deals >= LEAST_DEALS and result.ci95 <= self.until
        if self.until_clear is None:
            return False
        looks, looked = (n // self.until_clear for n in (result.deals, before))
        return looks.bit_length() > looked.bit_length() and abs(result.mean) > result.ci95

    def __str__(self) -> str:
        most = "" if self.deals is None else f"at most {self.deals:,} "
        if self.until is not None:
            return f"{most}deals, until ± {self.until:g}"
        if self.until_clear is not None:
            return f"{most}deals, until clear of 0 after {self.until_clear:,}"
        return f"{self.deals:,} deals"


def places(rules: Rules) -> np.ndarray:
    """The places that A can take, bool [R, P]: each seat, or either pair."""
    if rules.teams:
        return np.array([[True, False, True, False], [False, True, False, True]])
    return np.eye(rules.seats, dtype=bool)


class _Sums(NamedTuple):
    """What a tally counts besides its blocks; rewards in sixths."""

    deals: int
    total: int  # rewards
    squares: int  # of a deal's rewards together
    game_squares: int  # of a game's
    wins: int
    losses: int
    points: int


NOTHING = (0,) * (len(_Sums._fields) + BLOCKS)  # the sums of a tally without a deal


class Tally:
    """Games of A against B, counted as they come in: in integers, so in any parts, and exactly.

    Rewards are whole sixths. A block is what A won of its games, times the sides: a win counts 1, a
    loss 0, and a draw what an equal gets (`equal_share`).
    """

    def __init__(
        self, a: str, b: str, rules: Rules, seed: int, sums: Sequence[int] = NOTHING
    ) -> None:
        self.about = a, b, rules, seed
        self.rules = rules
        self.sums = np.array(sums, np.int64)

    @property
    def deals(self) -> int:
        """The deals so far."""
        return int(self.sums[0])

    def add(self, rewards: np.ndarray, points: np.ndarray) -> None:
        """Count A's rewards and points in some deals more, [R, deals]."""
        sixths = np.rint(UNIT * rewards).astype(np.int64)
        deal = sixths.sum(axis=0)
        sums = np.zeros_like(self.sums)
        sums[: len(_Sums._fields)] = (
            len(deal),
            deal.sum(),
            (deal**2).sum(),
            (sixths**2).sum(),
            (sixths > 0).sum(),
            (sixths < 0).sum(),
            np.rint(UNIT * points).sum(),
        )
        block = (self.deals + np.arange(len(deal))) % BLOCKS
        np.add.at(sums, len(_Sums._fields) + block, self._won(sixths).sum(axis=0))
        self.sums = self.sums + sums

    def _won(self, sixths: np.ndarray) -> np.ndarray:
        """What A won of each game, times the sides."""
        drawn = round(self.rules.sides * equal_share(self.rules))
        return np.where(sixths == 0, drawn, self.rules.sides * (sixths > 0))

    def result(self) -> Result:
        """The result so far; there must be one deal at least."""
        sums = _Sums(*self.sums[: len(_Sums._fields)].tolist())
        R = len(places(self.rules))
        n, games = sums.deals, R * sums.deals
        spread = n * sums.squares - sums.total**2  # n**2 times the variance of a deal's sum
        single = games * sums.game_squares - sums.total**2  # games**2 times that of a game
        return Result(
            *self.about,
            mean=sums.total / UNIT / games,
            ci95=1.96 * math.sqrt(spread / (n - 1)) / UNIT / games if n > 1 else math.nan,
            deals=n,
            games=games,
            wins=sums.wins / games,
            draws=(games - sums.wins - sums.losses) / games,
            losses=sums.losses / games,
            points=sums.points / UNIT / games,
            fewer_games=single / R / spread if spread else math.nan,
            blocks=tuple(self.sums[len(_Sums._fields) :][:n].tolist()),
            sums=tuple(self.sums.tolist()),
        )


def equal_share(rules: Rules) -> float:
    """The share that a side wins among equals (where a match has a loser: does not lose)."""
    has_losers = rules.score == "loser" and rules.episode == "match"
    return 1 - 1 / rules.sides if has_losers else 1 / rules.sides


def _half_width(value: float) -> float:
    numbers = int | float | np.integer | np.floating
    if isinstance(value, bool) or not isinstance(value, numbers) or not 0 < value < math.inf:
        raise ValueError(f"until: found {value!r}, expected a half width above 0")
    return float(value)


def check_count(name: str, value: int | None, low: int, high: int) -> int:
    """The value as an `int`; `ValueError` unless it is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name}: found {value!r}, expected an integer of at least {low}")
    if not low <= value <= high:
        raise ValueError(f"{name}: found {value}, expected {low} to {high}")
    return int(value)
