"""Helpers of the tests: random rules, a game beside the reference's, random play, plain agents.

What is expected never comes from the project's own code: tile numbers, action numbers and texts
are worked out here again from RULES.md 1 and the action table.
"""

import random
from typing import Any

import numpy as np
from oracle import Oracle
from oracle_rules import FIELDS, MAIN_NAMES, PRESETS, Tile, resolve, text_of, tile_of, whole_set

from agents.base import Agent
from domino_env import Game, engine, observation
from domino_env.rules import Rules

NUMBER: dict[Tile, int] = {tile: number for number, tile in enumerate(whole_set(9))}
TILE: dict[int, Tile] = {number: tile for tile, number in NUMBER.items()}
CHOICES: dict[str, list[Any]] = {
    "draw": ["none", "one", "until_playable"],
    "double_pair": [False, True],
    "lead": ["highest_double", "lowest_double", "seat", "random"],
    "lead_tile": ["forced", "free"],
    "next_lead": ["same", "winner", "rotate"],
    "blank_double": [0, 3, 25, 300, 1000],
    "blank_double_when": ["always", "alone"],
    "score": ["none", "winner", "loser"],
    "target": [None, 1, 7, 20, 60, 400, 1_000_000],
    "opening": [0, 1, 5, 13, 40, 300],
    "opening_mode": ["lost", "pending"],
    "block_score": ["net", "gross"],
    "team_block": ["total", "lowest_hand"],
    "episode": [None, "round", "match"],
    "reward": ["win", "points"],
}


def random_rules(rng: random.Random, sets: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 6, 6, 9)) -> dict:
    """Rules as in a record: a random preset under any name, and every field given or not.

    Matches are of at most five rounds.
    """
    preset = rng.choice([*PRESETS, *MAIN_NAMES])
    rules: dict[str, Any] = {"preset": preset, "set": rng.choice(sets)}
    rules["max_rounds"] = rng.choice([1, 2, 3, 5])
    for name, values in CHOICES.items():
        if rng.random() < 0.7:
            rules[name] = rng.choice(values)
    full = PRESETS[MAIN_NAMES.get(preset, preset)] | rules
    if full.get("score", FIELDS["score"]) == "none":
        rules |= {"target": None, "episode": None}
    tiles = len(whole_set(rules["set"]))
    rules["seats"] = seats = rng.choice([n for n in (2, 3, 4) if n <= tiles])
    rules["teams"] = seats == 4 and rng.random() < 0.5
    largest = min(tiles // seats, 10)
    if rng.random() < 0.7 or seats * resolve(rules | {"hand_size": 1})["hand_size"] > tiles:
        rules["hand_size"] = rng.randint(1, largest)
    if rng.random() < 0.4:
        rules["reserve"] = rng.choice([1, 2, 3, 55])
    return rules


def action_of(move: str, tiles: int) -> int:
    """The action number of a move as in a record, without the seat (docs/observations.md)."""
    others = {"draw": 2 * tiles, "pass": 2 * tiles + 1, "both": 2 * tiles + 2}
    return (
        others[move]
        if move in others
        else 2 * NUMBER[tile_of(move.split()[0])] + (move.endswith("R"))
    )


def move_of(action: int, tiles: int, lead: bool) -> str:
    """The move that an action number means, as in a record, without the seat."""
    if action >= 2 * tiles:
        return ("draw", "pass", "both")[action - 2 * tiles]
    text = text_of(TILE[action // 2])
    return text if lead and action % 2 == 0 else f"{text} {'LR'[action % 2]}"


def tiles_in(bits: int) -> set[Tile]:
    """The tiles of a bit set."""
    return {TILE[t] for t in range(63) if int(bits) >> t & 1}


def pips_in(bits: int) -> set[int]:
    """The pips of a bit set."""
    return {v for v in range(15) if int(bits) >> v & 1}


def bits(tiles: set[Tile]) -> int:
    """The bit set of some tiles."""
    return sum(1 << NUMBER[tile] for tile in tiles)


class Table:
    """A game of the engine, and the same deals and moves in the reference."""

    def __init__(self, rules: dict[str, Any], seed: int) -> None:
        self.rules = Rules.from_dict(rules)
        self.games = engine.new_games(self.rules, seed)
        self.g: Any = self.games[0]  # a view of the engine's record
        self.oracle = Oracle(rules)
        engine.reset(self.games[0])
        self._deal()

    def _deal(self) -> None:
        """Give the reference the deal that the engine has just made."""
        g, seats = self.g, range(self.rules.seats)
        hands = [[text_of(tile) for tile in tiles_in(g.hands[p])] for p in seats]
        boneyard = [text_of(TILE[int(t)]) for t in g.boneyard[: g.stock]]
        drawn = self.oracle.rules["lead"] == "random" and self.oracle.next_leader is None
        self.oracle.next_round(hands, boneyard, int(g.leader) if drawn else None)
        self.start = self.games.copy()
        self.actions: list[int] = []

    def legal(self) -> list[str]:
        """The engine's legal moves by `is_legal`, in the order of the reference."""
        tiles, lead, g = self.rules.tiles, int(self.g.left) < 0, self.g
        legal = [a for a in range(2 * tiles + 3) if engine.is_legal(g, a)]
        return sorted(move_of(a, tiles, lead) for a in legal)

    def play(self, move: str) -> None:
        """Make a move in both; the next round is not dealt."""
        action = action_of(move, self.rules.tiles)
        engine.move(self.g, action)
        self.actions.append(action)
        self.oracle.play(move)

    def next_round(self) -> None:
        """Deal the next round in both."""
        engine.next_round(self.g)
        self._deal()

    def twin(self, hands: list[list[str]], boneyard: list[str]) -> np.recarray:
        """The engine's game after the same moves of this round, from another deal of it."""
        games = self.start.copy()
        for seat, hand in enumerate(hands):
            games[0].hands[seat] = bits({tile_of(text) for text in hand})
        for place, text in enumerate(boneyard):
            games[0].boneyard[place] = NUMBER[tile_of(text)]
        engine.begin(games[0], int(self.start[0].leader))
        for action in self.actions:
            engine.move(games[0], action)
        return games


def observed(games: np.recarray, rules: Rules, seat: int, places: int) -> np.ndarray:
    """The observation of one game, uint8 [D]."""
    size = observation.layout_size(observation.observation_layout(rules, places))
    return _seen(games, seat, places, False, size)


def state_of(games: np.recarray, rules: Rules, seat: int, places: int) -> np.ndarray:
    """The state of one game, uint8 [D]."""
    size = observation.layout_size(observation.state_layout(rules, places))
    return _seen(games, seat, places, True, size)


def _seen(games: np.recarray, seat: int, places: int, whole: bool, size: int) -> np.ndarray:
    out = np.full((1, size), 77, np.uint8)  # what lay there before must not shine through
    observation.observe_each(games, np.array([seat]), places, whole, out)
    return out[0]


def mask_of(games: np.recarray, rules: Rules) -> np.ndarray:
    """The mask of the seat to move of one game, int8 [A]."""
    out = np.full((1, rules.actions), 77, np.int8)
    observation.mask_each(games, out)
    return out[0]


def history_of(games: np.recarray, rules: Rules, seat: int) -> np.ndarray:
    """The history of one game, uint8 [H, 4]."""
    out = np.full((1, observation.history_length(rules), 4), 77, np.uint8)
    observation.history_each(games, np.array([seat]), out)
    return out[0]


def redacted(games: np.recarray, seat: int) -> np.recarray:
    """A copy of one game without what is hidden from a seat."""
    copy = games.copy()
    observation.redact_each(copy, np.array([seat]))
    return copy


def played(game: Game, seed: int, moves: int = 10**9) -> Game:
    """The game after so many random moves."""
    rng = random.Random(seed)
    while not game.over and moves > 0:
        game.play(rng.choice(game.legal_actions()))
        moves -= 1
    return game


class Lowest(Agent):
    """Plays the legal action of the lowest number."""

    name = "lowest"
    uses = frozenset()

    def act(self, view):
        return view.mask.argmax(axis=1)


class Highest(Agent):
    """Plays the legal action of the highest number."""

    name = "highest"
    uses = frozenset()

    def act(self, view):
        return view.mask.shape[1] - 1 - view.mask[:, ::-1].argmax(axis=1)
