"""`SmallGame`: a game that is small enough to be known as a whole, made by `small_game`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, perm

import numpy as np

from agents.tree import (
    FREE,
    INFOSETS,
    NODES,
    OLD_NODES,
    OLD_ROUNDS,
    PREFIXES,
    ROUNDS,
    Path,
    Tree,
    find_infosets,
    move_edges,
    walk_deals,
)
from domino_env.observation import history_length
from domino_env.rules import CHOICES, Rules
from domino_env.single import reset_game
from domino_env.state import (
    DRAW_NONE,
    GAME,
    LEAD_RANDOM,
    NOBODY,
    longest_round,
    new_games,
)
from domino_env.tiles import bits_of

MAX_HANDS = 5_000_000  # ways to deal the hands that are tried at all
MAX_DEALS = 10**15  # with the orders of the boneyard: their positions are counted in 64 bits
MAX_ROUNDS = 1 << 24  # finished rounds that are kept, 24 bytes each with two seats
SAMPLE = 64  # deals by which the finished rounds are estimated first
BLOCK = 64  # deals that are walked between two reports of progress, at least
PER_INFOSET, PER_ROUND = ("owner", "before", "deal"), ("reached", "payoff")  # arrays of `Tree`

Progress = Callable[[int, int], None]  # done, of how many


class SmallGame:
    """All of a small game; made by `small_game`.

    `nodes` counts the positions in which a seat has something to play, and the finished rounds,
    over all `deals`; passes and draws belong to the move before. `infosets` counts the information
    sets of the former, those with a single action too.
    """

    def __init__(self, rules: Rules, progress: Progress | None = None) -> None:
        check_size(rules)
        self.rules = rules
        self.deals = hands_count(rules) * orders_count(rules)
        self._hands = dealt_hands(rules)
        self._path = new_path(rules)
        share = SAMPLE / len(self._hands)
        if share < 0.05:  # so that a game that is far too large is refused soon
            some = np.random.default_rng(0).permutation(len(self._hands))[:SAMPLE]
            self._walk(self._hands[some], 2 * share * MAX_ROUNDS)
        self.tree = trimmed(self._walk(self._hands, MAX_ROUNDS, progress))
        self.nodes = int(self.tree.count[NODES])
        self.infosets = int(self.tree.count[INFOSETS])
        self.sequences = int(self.tree.first[-1])

    def _walk(self, hands: np.ndarray, most: float, progress: Progress | None = None) -> Tree:
        """The tree of some deals; `ValueError` on more than about `most` finished rounds."""
        tree = new_tree(self.rules)
        done, nothing = 0, np.zeros(0, GAME).view(np.recarray)
        while done < len(hands):
            last = min(len(hands), done + max(BLOCK, len(hands) // 100))
            deals = float(self.deals)
            reached = walk_deals(tree, self._path, hands, done, last, deals, 0, nothing)
            if reached < last:
                tree = grown(tree, self._path.history.shape[1])
                if len(tree.reached) > 2 * most:
                    raise _too_large(self.rules, f"{MAX_ROUNDS:,} finished rounds")
            done = reached
            if progress is not None:
                progress(done, len(hands))
        return tree

    def positions(self, first: int, last: int) -> np.recarray:
        """One position of each information set `first` to `last` - 1, as GAME [last - first]."""
        seen = np.zeros(last - first, GAME).view(np.recarray)
        if last > first:
            begin, end = int(self.tree.deal[first]), int(self.tree.deal[last - 1]) + 1
            tree = self.tree._replace(count=self.tree.count.copy())
            walk_deals(tree, self._path, self._hands, begin, end, 1.0, first, seen)
        return seen

    def find(self, seats: np.ndarray, histories: np.ndarray) -> np.ndarray:
        """The information sets, int64 [B], of histories uint8 [B, H, 4]; -1 where there is none."""
        found = np.empty(len(seats), np.int64)
        find_infosets(self.tree, seats, histories, found)
        return found


_kept: dict[Rules, SmallGame] = {}


def small_game(rules: Rules, progress: Progress | None = None) -> SmallGame:
    """The whole tree of a game of one round; the last two are kept.

    Raises `ValueError` if it is a match, or too large.
    """
    if rules not in _kept:
        game = SmallGame(rules, progress)
        while len(_kept) > 1:
            del _kept[next(iter(_kept))]
        _kept[rules] = game
    return _kept[rules]


# ---------------------------------------------------------------- sizes


def hands_count(rules: Rules) -> int:
    """In how many ways the hands can be dealt, times the seats where the leader is drawn too."""
    count = rules.seats if rules.lead == CHOICES["lead"][LEAD_RANDOM] else 1
    for p in range(rules.seats):
        count *= comb(rules.tiles - p * rules.hand_size, rules.hand_size)
    return count


def orders_count(rules: Rules) -> int:
    """In how many orders the tiles of the boneyard that may be drawn can come."""
    drawn = 0 if rules.draw == CHOICES["draw"][DRAW_NONE] else max(0, rules.stock - rules.reserve)
    return perm(rules.stock, drawn)


def check_size(rules: Rules) -> None:
    """Raise `ValueError` unless it is a single round, and not beyond hope."""
    if rules.episode != "round":
        raise ValueError("episode: found match, expected round, the most that is solved exactly")
    if hands_count(rules) > MAX_HANDS or hands_count(rules) * orders_count(rules) > MAX_DEALS:
        raise _too_large(rules, f"{MAX_HANDS:,} of the hands, {MAX_DEALS:.0e} in all")


def _too_large(rules: Rules, most: str) -> ValueError:
    deals = f"{_count(hands_count(rules))} deals of the hands"
    if orders_count(rules) > 1:
        deals += f" x {_count(orders_count(rules))} orders of the boneyard"
    return ValueError(f"rules: found {deals}, too many to solve exactly, expected at most {most}")


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"{number:.1e}"


def dealt_hands(rules: Rules) -> np.ndarray:
    """Every deal of the hands: int64 [hands_count, P + 1], tile sets, then the drawn leader."""
    tiles = combinations(range(rules.tiles), rules.hand_size)
    hands = np.array([bits_of(hand) for hand in tiles], np.int64)
    dealt, used = np.empty((1, 0), np.int64), np.zeros(1, np.int64)
    for _ in range(rules.seats):
        rows, columns = np.nonzero(used[:, None] & hands == 0)
        dealt = np.column_stack([dealt[rows], hands[columns]])
        used = used[rows] | hands[columns]
    leaders = range(rules.seats) if rules.lead == CHOICES["lead"][LEAD_RANDOM] else [NOBODY]
    with_leader = [np.column_stack([dealt, np.full(len(dealt), p)]) for p in leaders]
    return np.ascontiguousarray(np.concatenate(with_leader))


# ---------------------------------------------------------------- arrays


def new_path(rules: Rules) -> Path:
    """A path with its first game made, but not dealt."""
    plays, draws, _ = longest_round(rules)
    levels = plays + draws + 1
    games = np.repeat(new_games(rules, 0), levels).view(np.recarray)
    reset_game(games)
    games["boneyard"] = NOBODY
    return Path(
        games=games,
        sequence=np.zeros((levels, rules.seats), np.int32),
        base=np.zeros(levels, np.int32),
        options=np.zeros((levels, rules.actions), np.int32),
        size=np.zeros(levels, np.int32),
        taken=np.zeros(levels, np.int32),
        history=np.zeros((1, history_length(rules), 4), np.uint8),
    )


def new_tree(rules: Rules) -> Tree:
    """An empty tree with a little room."""
    tree = Tree(
        edges=np.full(1 << 12, FREE, np.int64),
        leads_to=np.zeros(1 << 12, np.int32),
        infoset=np.full(1 << 11, NOBODY, np.int32),
        owner=np.zeros(1 << 10, np.int8),
        before=np.zeros(1 << 10, np.int32),
        first=np.zeros((1 << 10) + 1, np.int32),
        deal=np.zeros(1 << 10, np.int32),
        reached=np.zeros((1 << 10, rules.seats), np.int32),
        payoff=np.zeros((1 << 10, rules.seats)),
        count=np.zeros(6, np.int64),
    )
    tree.count[PREFIXES] = rules.seats
    tree.first[0] = rules.seats
    return tree


def grown(tree: Tree, rows: int) -> Tree:
    """The same tree with twice the room where it is full; `rows` is H of `Path.history`.

    What has been counted of the deal that did not fit is taken back; the information sets that it
    has brought can stay.
    """
    if tree.count[PREFIXES] + rows >= len(tree.infoset):
        edges = np.full(2 * len(tree.edges), FREE, np.int64)
        leads_to = np.zeros(len(edges), np.int32)
        move_edges(tree.edges, tree.leads_to, edges, leads_to)
        infoset = _longer(tree.infoset, len(edges) // 2, NOBODY)
        tree = tree._replace(edges=edges, leads_to=leads_to, infoset=infoset)
    size = len(tree.owner)
    if tree.count[INFOSETS] >= size:
        longer = {name: _longer(getattr(tree, name), 2 * size) for name in PER_INFOSET}
        tree = tree._replace(first=_longer(tree.first, 2 * size + 1), **longer)
    size = len(tree.reached)
    if tree.count[ROUNDS] >= size:
        longer = {name: _longer(getattr(tree, name), 2 * size) for name in PER_ROUND}
        tree = tree._replace(**longer)
    tree.count[NODES], tree.count[ROUNDS] = tree.count[OLD_NODES], tree.count[OLD_ROUNDS]
    return tree


def _longer(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    more = np.full((size - len(array), *array.shape[1:]), fill, array.dtype)
    return np.concatenate([array, more])


def trimmed(tree: Tree) -> Tree:
    """The same tree without unused room, but in the table of edges."""
    infosets, rounds = int(tree.count[INFOSETS]), int(tree.count[ROUNDS])
    return tree._replace(
        first=tree.first[: infosets + 1].copy(),
        **{name: getattr(tree, name)[:infosets].copy() for name in PER_INFOSET},
        **{name: getattr(tree, name)[:rounds].copy() for name in PER_ROUND},
    )
