"""A small game as a plain tree, and best responses in it: what agents/exact.py is compared with.

The rules are those of tests/oracle.py. Every deal is a tree of its own, with every order of the
boneyard tiles that can be drawn; passes and draws belong to the move before.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

from oracle import Oracle
from oracle_rules import Tile, text_of, texts_of, whole_set

Key = tuple[Any, ...]
Weigh = Callable[[int, str, int], float]  # seat, move, events before it -> weight


@dataclass
class Node:
    """A position of a seat that has something to play, or a finished round (no moves)."""

    rewards: list[float]
    seat: int = -1
    key: Key = ()
    moves: list[str] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


class Reference:
    """All deals of a game, with the strategy that plays moves in proportion to their weights."""

    def __init__(self, rules: dict[str, Any], weigh: Weigh) -> None:
        self.weigh = weigh
        self.nodes = 0
        self.decisions: dict[Key, list[tuple[list[float], Node]]] = defaultdict(list)
        self.roots = [self._node(game) for game in _games(rules)]
        self.seats = len(self.roots[0].rewards)
        for root in self.roots:
            self._collect(root, [1 / len(self.roots)] * self.seats)

    def _node(self, game: Oracle) -> Node:
        while game.legal() in (["pass"], ["draw"]):
            game.play(game.legal()[0])
        self.nodes += 1
        node = Node([float(reward) for reward in game.rewards])
        if game.seat is not None:
            node.seat, node.key, node.moves = game.seat, _known(game), game.legal()
            weights = [self.weigh(node.seat, move, len(game.events)) for move in node.moves]
            node.chances = [weight / sum(weights) for weight in weights]
            for move in node.moves:
                after = copy.deepcopy(game)
                after.play(move)
                node.children.append(self._node(after))
        return node

    def _collect(self, node: Node, reach: list[float]) -> None:
        """Note every decision with the chance, for each seat, that all others lead there."""
        if not node.moves:
            return
        self.decisions[node.key].append((reach, node))
        for chance, child in zip(node.chances, node.children, strict=True):
            others = [r if p == node.seat else r * chance for p, r in enumerate(reach)]
            self._collect(child, others)

    def value(self, seat: int) -> float:
        """What a seat gets where all play the strategy."""

        def of(node: Node) -> float:
            if not node.moves:
                return node.rewards[seat]
            pairs = zip(node.chances, node.children, strict=True)
            return sum(chance * of(child) for chance, child in pairs)

        return sum(of(root) for root in self.roots) / len(self.roots)

    def best(self, seat: int) -> float:
        """What a seat gets with its best response, found set by set."""
        chosen: dict[Key, int] = {}

        def of(node: Node) -> float:
            if not node.moves:
                return node.rewards[seat]
            if node.seat == seat:
                return of(node.children[choice(node.key)])
            pairs = zip(node.chances, node.children, strict=True)
            return sum(chance * of(child) for chance, child in pairs)

        def choice(key: Key) -> int:
            if key not in chosen:
                rows = self.decisions[key]
                worth = [
                    sum(reach[seat] * of(node.children[k]) for reach, node in rows)
                    for k in range(len(rows[0][1].moves))
                ]
                chosen[key] = max(range(len(worth)), key=worth.__getitem__)
            return chosen[key]

        return sum(of(root) for root in self.roots) / len(self.roots)


def _known(game: Oracle) -> Key:
    """What the seat to move knows: its dealt tiles, all events, and the tiles it drew."""
    hands, _ = game.dealt
    own = [tile for who, tile in game.drawn if who == game.seat]
    return game.seat, tuple(sorted(hands[game.seat or 0])), tuple(game.events), tuple(own)


def _games(rules: dict[str, Any]) -> Iterator[Oracle]:
    """A game for every deal: hands, orders of what can be drawn, and leaders if they are drawn."""
    full = Oracle(rules).rules
    leaders = range(full["seats"]) if full["lead"] == "random" else [None]
    for hands, rest in _deals(whole_set(full["set"]), full["seats"], full["hand_size"]):
        drawn = 0 if full["draw"] == "none" else max(0, len(rest) - full["reserve"])
        for front in permutations(rest, drawn):
            boneyard = [*front, *(tile for tile in rest if tile not in front)]
            for leader in leaders:
                game = Oracle(rules)
                texts = [texts_of(set(hand)) for hand in hands]
                game.next_round(texts, [text_of(tile) for tile in boneyard], leader)
                yield game


def _deals(
    tiles: list[Tile], seats: int, size: int
) -> Iterator[tuple[list[tuple[Tile, ...]], list[Tile]]]:
    if seats == 0:
        yield [], tiles
        return
    for hand in combinations(tiles, size):
        rest = [tile for tile in tiles if tile not in hand]
        for hands, stock in _deals(rest, seats - 1, size):
            yield [hand, *hands], stock
