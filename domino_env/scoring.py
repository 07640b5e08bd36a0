"""The end of a round: who wins it, what is written, what is earned (RULES.md 7, 8, 9)."""

from __future__ import annotations

from domino_env.compiled import jit, lowest
from domino_env.state import (
    ALONE,
    BLOCKED,
    GROSS,
    LOWEST_HAND,
    MATCH,
    NEXT_ROTATE,
    NEXT_SAME,
    NOBODY,
    OUT,
    PENDING,
    POINTS,
    SCORE_LOSER,
    SCORE_WINNER,
    TERMINATED,
    TRUNCATED,
    UNIT,
    Record,
)
from domino_env.tiles import PIPS


@jit
def settle(g: Record, end: int) -> None:
    """Count, write and reward the round that has just ended, and end the episode if it does."""
    g.end = end
    g.turn_draws = 0
    g.kept_lacks = 0
    for p in range(int(g.seats)):
        g.pips[p] = hand_pips(g, int(g.hands[p]))
    side = winning_side(g, end)
    sides = side_count(g)
    worth = points_won(g, end, side)
    g.winner = 0
    for p in range(int(g.seats)):
        if p % sides == side:
            g.winner = int(g.winner) | 1 << p
    g.next_leader = next_leader(g, end, side)
    if int(g.reward) == POINTS:
        reward_points(g, side, worth)
    write_points(g, side, worth)
    finish(g)


@jit
def hand_pips(g: Record, hand: int) -> int:
    """The pips of a hand; 0-0 counts `blank_double`, always or alone (RULES.md 7)."""
    counts = hand == 1 or (hand & 1 == 1 and int(g.blank_double_when) != ALONE)
    pips = int(g.blank_double) if counts else 0
    rest = hand & ~1
    while rest != 0:
        pips += int(PIPS[lowest(rest)])
        rest &= rest - 1
    return pips


@jit
def side_count(g: Record) -> int:
    """2 with teams, else the seats; the side of seat p is `p % side_count`."""
    return 2 if int(g.teams) else int(g.seats)


@jit
def side_pips(g: Record, side: int) -> int:
    """The pips in all hands of a side."""
    return int(g.pips[side]) + (int(g.pips[side + 2]) if int(g.teams) else 0)


@jit
def block_count(g: Record, side: int) -> int:
    """What a side counts after a block: its total, or its lightest hand (`team_block`)."""
    if int(g.teams) and int(g.team_block) == LOWEST_HAND:
        return min(int(g.pips[side]), int(g.pips[side + 2]))
    return side_pips(g, side)


@jit
def winning_side(g: Record, end: int) -> int:
    """The side that wins the round, or -1 for a drawn one (RULES.md 7)."""
    sides = side_count(g)
    if end == OUT:
        return int(g.seat) % sides
    best = 0
    tied = False
    for side in range(1, sides):
        if block_count(g, side) < block_count(g, best):
            best = side
            tied = False
        elif block_count(g, side) == block_count(g, best):
            tied = True
    return NOBODY if tied else best


@jit
def points_won(g: Record, end: int, side: int) -> int:
    """What the winning side writes under `winner` scoring (RULES.md 8)."""
    if side < 0:
        return 0
    points = 0
    for other in range(side_count(g)):
        if other != side:
            points += side_pips(g, other)
    if end == BLOCKED and int(g.block_score) != GROSS:
        points = max(0, points - side_pips(g, side))
    return points


@jit
def next_leader(g: Record, end: int, side: int) -> int:
    """Who leads the next round by `next_lead`; -1: whom `lead` names (RULES.md 4)."""
    if int(g.next_lead) == NEXT_SAME:
        return NOBODY
    if int(g.next_lead) == NEXT_ROTATE:
        return (int(g.leader) + 1) % int(g.seats)
    if side < 0:
        return int(g.leader)
    if end == OUT:
        return int(g.seat)
    if int(g.teams) and int(g.pips[side + 2]) < int(g.pips[side]):
        return side + 2
    return side


@jit
def reward_points(g: Record, side: int, worth: int) -> None:
    """`reward: points` of one round, zero-sum over the sides (RULES.md 9)."""
    sides = side_count(g)
    total = 0
    for other in range(sides):
        total += side_pips(g, other)
    for p in range(int(g.seats)):
        if int(g.score) == SCORE_LOSER:
            earned = (total - sides * side_pips(g, p % sides)) * UNIT // (sides - 1)
        elif p % sides == side:
            earned = worth * UNIT
        else:
            earned = -(worth * UNIT // (sides - 1))
        g.earned[p] += earned


@jit
def write_points(g: Record, side: int, worth: int) -> None:
    """Write the round on the record (RULES.md 8)."""
    if int(g.score) == SCORE_WINNER and side >= 0:
        g.scores[side] += worth
    elif int(g.score) == SCORE_LOSER:
        for s in range(side_count(g)):
            points = side_pips(g, s) + int(g.aside[s])
            g.aside[s] = 0
            if int(g.opened[s]) or points >= int(g.opening):
                g.opened[s] = 1
                g.scores[s] += points
            elif int(g.opening_mode) == PENDING:
                g.aside[s] = points


@jit
def finish(g: Record) -> None:
    """End the episode after a single round, at the target, or after `max_rounds` rounds."""
    if int(g.episode) != MATCH:
        g.over = TERMINATED
        reward_win(g, int(g.winner))
        return
    reached = 0
    sides = side_count(g)
    for p in range(int(g.seats)):
        if int(g.scores[p % sides]) >= int(g.target):
            reached |= 1 << p
    if reached != 0:
        g.over = TERMINATED
        everyone = (1 << int(g.seats)) - 1
        if int(g.score) == SCORE_WINNER:
            reward_win(g, reached)
        elif reached != everyone:
            reward_goats(g, reached)
    elif int(g.round_number) + 1 >= int(g.max_rounds):
        g.over = TRUNCATED


@jit
def reward_win(g: Record, winners: int) -> None:
    """`reward: win`: +1 for each winner, the losing sides share -1 (RULES.md 9)."""
    if int(g.reward) == POINTS or winners == 0:
        return
    for p in range(int(g.seats)):
        g.earned[p] += UNIT if winners >> p & 1 else -(UNIT // (side_count(g) - 1))


@jit
def reward_goats(g: Record, goats: int) -> None:
    """`reward: win` of a match lost by its goats: -1 each, the others share what they lose."""
    if int(g.reward) == POINTS:
        return
    sides = side_count(g)
    count = 0
    for side in range(sides):
        count += goats >> side & 1
    for p in range(int(g.seats)):
        g.earned[p] += -UNIT if goats >> p & 1 else UNIT * count // (sides - count)
