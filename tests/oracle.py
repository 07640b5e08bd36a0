"""A slow, plain reading of RULES.md: what the engine is compared with.

It imports nothing of the project but its own `oracle_rules.py`, the fields of the rules and the
tiles, so that the two can be read beside that page. A hand is a set of tiles, and everything that
can be worked out again from the list of events is worked out again.
Moves are text as in a record, without the seat: "6-5 R", "6-5" (the lead), "both", "draw", "pass".
"""

import copy
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from oracle_rules import (
    Tile,
    ends_after,
    lead_order,
    leading_tile,
    pips_of,
    resolve,
    text_of,
    tile_of,
    tiles_of,
    whole_set,
)

Deal = tuple[list[list[str]], list[str]]
CARRIED_OVER = ("scores", "open", "aside", "rewards", "rounds", "next_leader")


class Oracle:
    """One game by the text of RULES.md; every deal is given. ValueError on whatever is not legal.

    Of the round: `hands` (sets of tiles), `boneyard` (what is left of it, front first), `ends`
    (left, right; empty before the lead), `seat` (to move, None once the round is over),
    `lead_seat`, `must_lead` (the forced tile or None), `events` (public: seat and move text),
    `drawn` (seat and tile of every draw), `dealt` (hands, boneyard); at its end `end`, `winner`
    (seats), `pips` (by seat), `written` (by side; None where nothing is scored).
    Of the game: `sides` (lists of seats), `scores`, `open` (that something has been written) and
    `aside` by side, `rewards` (the sum by seat), `goats` (None but at the end of a match with
    loser scoring), `rounds` (ended so far), `over` (None, "terminated" or "truncated").
    """

    def __init__(self, rules: dict[str, Any]) -> None:
        """A game before its first deal; `rules` as in a record."""
        self.given = dict(rules)
        self.rules = resolve(rules)
        seats = self.rules["seats"]
        self.sides = [[0, 2], [1, 3]] if self.rules["teams"] else [[s] for s in range(seats)]
        self.scores = [0] * len(self.sides)
        self.open = [False] * len(self.sides)
        self.aside = [0] * len(self.sides)
        self.rewards = [Fraction(0)] * seats
        self.goats: list[int] | None = None
        self.rounds = 0
        self.over: str | None = None
        self.end: str | None = None
        self.seat: int | None = None
        self.next_leader: int | None = None
        self.before: dict[str, Any] = {}

    # -- a round ----------------------------------------------------------------------------

    def next_round(
        self,
        hands: Sequence[str | Sequence[str]],
        boneyard: str | Sequence[str],
        leader: int | None = None,
    ) -> None:
        """Deal a round, the first one too; `leader` only where the rules do not say it."""
        if self.over or self.seat is not None:
            raise ValueError("next_round: the game is over or a round is still being played")
        dealt = [tiles_of(hand) for hand in hands]
        self.boneyard = tiles_of(boneyard)
        every = sorted([tile for hand in dealt for tile in hand] + self.boneyard)
        sizes = [self.rules["hand_size"]] * self.rules["seats"]
        if every != sorted(whole_set(self.rules["set"])) or [len(h) for h in dealt] != sizes:
            raise ValueError(f"deal: {hands} {boneyard} is no deal of {self.rules}")
        self.before = {name: copy.deepcopy(getattr(self, name)) for name in CARRIED_OVER}
        self.hands = [set(hand) for hand in dealt]
        self.dealt = (copy.deepcopy(self.hands), list(self.boneyard))
        self.lead_seat, self.must_lead = self._lead(leader)
        self.seat = self.lead_seat
        self.ends: tuple[int, ...] = ()
        self.events: list[tuple[int, str]] = []
        self.drawn: list[tuple[int, Tile]] = []
        self.end, self.winner, self.pips, self.written = None, None, None, None

    def _lead(self, leader: int | None) -> tuple[int, Tile | None]:
        """The seat that begins and the tile it must lead, if any (RULES.md 4)."""
        rule, tile = self.rules["lead"], None
        if self.next_leader is not None:
            seat = self.next_leader
        elif rule == "seat":
            seat = 0
        elif rule == "random":
            if leader is None or leader not in range(self.rules["seats"]):
                raise ValueError(f"leader: {leader}, expected a seat where the lead is random")
            seat = leader
        else:
            seat, tile = leading_tile(self.hands, rule)
        if leader is not None and leader != seat:
            raise ValueError(f"leader: {leader}, but seat {seat} begins")
        return seat, tile if self.rules["lead_tile"] == "forced" else None

    def legal(self) -> list[str]:
        """All moves of the seat to move, sorted as text; none once the round is over."""
        if self.seat is None:
            return []
        hand = self.hands[self.seat]
        if not self.ends:
            return sorted(text_of(t) for t in hand if self.must_lead in (None, t))
        left, right = self.ends
        moves = [f"{text_of(t)} L" for t in hand if left in t]
        moves += [f"{text_of(t)} R" for t in hand if right in t and left != right]
        if self.rules["double_pair"] and left != right and {(left, left), (right, right)} <= hand:
            moves.append("both")
        if moves:
            return sorted(moves)
        return ["draw"] if self._seat_may_draw() else ["pass"]

    def _can_draw(self) -> bool:
        """Whether tiles are left that somebody may draw, in this turn or a later one."""
        return self.rules["draw"] != "none" and len(self.boneyard) > self.rules["reserve"]

    def _seat_may_draw(self) -> bool:
        drew = bool(self.events) and self.events[-1] == (self.seat, "draw")
        return self._can_draw() and not (self.rules["draw"] == "one" and drew)

    def play(self, move: str) -> None:
        """Make a move of the seat to move; the round ends in it if it is out or blocked."""
        if move not in self.legal() or self.seat is None:
            raise ValueError(f"move: seat {self.seat} {move}, expected one of {self.legal()}")
        mover, hand = self.seat, self.hands[self.seat]
        self.events.append((mover, move))
        if move == "draw":
            self.drawn.append((mover, self.boneyard.pop(0)))
            hand.add(self.drawn[-1][1])
        elif move == "both":
            hand -= {(end, end) for end in self.ends}
        elif move != "pass":
            hand.remove(tile_of(move.split()[0]))
            self.ends = ends_after(self.ends, move)
        if move != "draw":
            self.seat = (mover + 1) % self.rules["seats"]
        if not hand:
            self._settle("out", mover)
        elif not self._can_draw() and not any(set(t) & set(self.ends) for t in self._held()):
            self._settle("blocked", mover)

    def _held(self) -> list[Tile]:
        return [tile for hand in self.hands for tile in hand]

    # -- the end of a round -----------------------------------------------------------------

    def _settle(self, end: str, mover: int) -> None:
        """Say who won, write the points, give the rewards, end the game (RULES.md 7 to 9)."""
        self.end, self.seat = end, None
        self.rounds += 1
        self.pips = [pips_of(hand, self.rules) for hand in self.hands]
        winning = self._winning_side(mover)
        self.winner = [] if winning is None else list(self.sides[winning])
        self.next_leader = self._next_leader(mover)
        totals = [sum(self.pips[seat] for seat in side) for side in self.sides]
        worth = self._worth(winning, totals)
        if self.rules["score"] == "winner":
            self.written = [worth if side == winning else 0 for side in range(len(self.sides))]
        elif self.rules["score"] == "loser":
            self.written = [self._record(side, points) for side, points in enumerate(totals)]
        if self.written is not None:
            self.scores = [a + b for a, b in zip(self.scores, self.written, strict=True)]
        if self.rules["reward"] == "points":
            self._give(self._point_rewards(winning, worth, totals))
        self._finish(winning)

    def _winning_side(self, mover: int) -> int | None:
        """The number of the side that won the round, None if it is drawn (RULES.md 7)."""
        assert self.pips is not None
        if self.end == "out":
            return next(i for i, side in enumerate(self.sides) if mover in side)
        hands = [[self.pips[seat] for seat in side] for side in self.sides]
        lowest_hand = self.rules["teams"] and self.rules["team_block"] == "lowest_hand"
        weights = [min(side) if lowest_hand else sum(side) for side in hands]
        fewest = min(weights)
        return weights.index(fewest) if weights.count(fewest) == 1 else None

    def _next_leader(self, mover: int) -> int | None:
        """The leader of the next round where `lead` does not choose it (RULES.md 4)."""
        assert self.pips is not None
        assert self.winner is not None
        if self.rules["next_lead"] == "same":
            return None
        if self.rules["next_lead"] == "rotate":
            return (self.lead_seat + 1) % self.rules["seats"]
        if self.end == "out":
            return mover
        lightest = sorted((self.pips[seat], seat) for seat in self.winner)
        return lightest[0][1] if lightest else self.lead_seat

    def _worth(self, winning: int | None, totals: list[int]) -> int:
        """What the winning side writes under `winner` scoring (RULES.md 8)."""
        if winning is None:
            return 0
        opposing = sum(totals) - totals[winning]
        if self.end == "blocked" and self.rules["block_score"] == "net":
            return max(0, opposing - totals[winning])
        return opposing

    def _record(self, side: int, points: int) -> int:
        """What a side writes of its own points under `loser` scoring (RULES.md 8)."""
        if not self.open[side]:
            if self.rules["opening_mode"] == "pending":
                points += self.aside[side]
            if points < self.rules["opening"]:
                self.aside[side] = points if self.rules["opening_mode"] == "pending" else 0
                return 0
        self.open[side], self.aside[side] = True, 0
        return points

    def _finish(self, winning: int | None) -> None:
        """End the game where the round ends it, with the rewards of `win` (RULES.md 8, 9)."""
        if self.rules["episode"] == "round":
            self.over, rewards = "terminated", self._win_rewards(winning)
        else:
            reached = [score >= self.rules["target"] for score in self.scores]
            if any(reached):
                self.over = "terminated"
            elif self.rounds >= self.rules["max_rounds"]:
                self.over = "truncated"
            if self.over and self.rules["score"] == "loser":
                goat_sides = [side for side, goat in zip(self.sides, reached, strict=True) if goat]
                self.goats = sorted(seat for side in goat_sides for seat in side)
                rewards = self._goat_rewards(reached)
            else:
                rewards = self._win_rewards(reached.index(True) if any(reached) else None)
        if self.over and self.rules["reward"] == "win":
            self._give(rewards)

    def _win_rewards(self, winning: int | None) -> list[Fraction]:
        """By side: +1 to the winner, -1 shared by the others (RULES.md 9)."""
        n = len(self.sides)
        if winning is None:
            return [Fraction(0)] * n
        return [Fraction(1) if side == winning else Fraction(-1, n - 1) for side in range(n)]

    def _goat_rewards(self, goat: list[bool]) -> list[Fraction]:
        """By side: -1 to each goat, +g/(n-g) to each other (RULES.md 9)."""
        goats, others = goat.count(True), goat.count(False)
        if not others:
            return [Fraction(0)] * goats
        return [Fraction(-1) if g else Fraction(goats, others) for g in goat]

    def _point_rewards(self, winning: int | None, worth: int, totals: list[int]) -> list[Fraction]:
        """By side: the rewards of `points` for one round (RULES.md 9)."""
        if self.rules["score"] == "loser":
            others = len(totals) - 1
            return [Fraction(sum(totals) - own, others) - own for own in totals]
        return [worth * reward for reward in self._win_rewards(winning)]

    def _give(self, by_side: list[Fraction]) -> None:
        for side, reward in zip(self.sides, by_side, strict=True):
            for seat in side:
                self.rewards[seat] += reward

    # -- what the seats know ----------------------------------------------------------------

    def lacks(self) -> list[set[int]]:
        """By seat: the pips that its own draws and passes prove it to lack."""
        return [self._lacks_of(seat) for seat in range(self.rules["seats"])]

    def _lacks_of(self, seat: int) -> set[int]:
        known: set[int] = set()
        for ends, draws, last in self._turns(seat):
            if last == "draw":  # still to move: the newest tile may be anything
                known = set()
            elif draws == 0:  # a play proves nothing, a pass adds both ends
                known = known | ends if last == "pass" else known
            elif last != "pass" and draws == 1:  # the drawn tile was put down
                known = known | ends
            else:  # the tiles drawn before the last one may be anything but the two ends
                known = set(ends)
        return known

    def _turns(self, seat: int) -> Iterator[tuple[set[int], int, str]]:
        """Each turn of a seat: the two ends it found, how many draws, its last event."""
        ends: tuple[int, ...] = ()
        draws, last = 0, ""
        for who, move in self.events:
            if who == seat:
                draws += move == "draw"
                last = move
                if move != "draw":
                    yield set(ends), draws, move
                    draws = 0
            ends = ends_after(ends, move)
        if last == "draw":
            yield set(ends), draws, last

    def not_dealt(self) -> set[Tile]:
        """The tiles that a forced lead proves to have been in no hand when the round began."""
        if self.must_lead is None or not self.events:
            return set()
        rule = self.rules["lead"]
        led = lead_order(tile_of(self.events[0][1]), rule)
        return {t for t in whole_set(self.rules["set"]) if lead_order(t, rule) < led}

    def ends_by(self) -> tuple[int | None, int | None]:
        """The seats whose tiles made the left and the right end; None before the lead."""
        left, right = None, None
        for index, (seat, move) in enumerate(self.events):
            if index == 0 or move == "both" or move.endswith("L"):
                left = seat
            if index == 0 or move == "both" or move.endswith("R"):
                right = seat
        return left, right

    # -- other deals ------------------------------------------------------------------------

    def redeal(self, hands: Sequence[str | Sequence[str]], boneyard: Sequence[str]) -> "Oracle":
        """The same game at the beginning of this round, but with another deal."""
        twin = Oracle(self.given)
        vars(twin).update(copy.deepcopy(self.before))
        random = self.rules["lead"] == "random" and twin.next_leader is None
        twin.next_round(hands, boneyard, self.lead_seat if random else None)
        return twin
