"""
# Domino

| Creation | `domino_v0.env()` or `pettingzoo.make("aec", "domino/domino-v0")` |
|---|---|
| Actions | Discrete |
| Parallel API | With `turn_based_aec_to_parallel` |
| Manual Control | No |
| Agents | `['player_0', 'player_1']` up to `player_3` |
| Agents | 2 to 4 |
| Action Shape | () |
| Action Values | Discrete(2T + 3), `Discrete(59)` with the 28 tiles of a double-six set |
| Observation Shape | (D,), `(193,)` in `cabra` with two seats |
| Observation Values | [0, 255] |

Dominoes for two, three or four seats, each for itself or two pairs: an imperfect-information game
of chance. A set of rules is a preset with fields changed, `env("cabra", seats=3)`:

- `cabra` (`kozel`, `goat`): draw from the boneyard until a tile fits; both doubles of the ends may
  go down at once; the pips left in hand are written down, and who reaches 101 is the goat.
- `sin_robo` (`block`): nobody draws; who has nothing to play passes. One round.
- `estandar` (`draw`): draw until a tile fits. One round.
- `sin_robo_series`, `estandar_series`: the same two, the winner's points up to 100 or 61.

## Rules in short

The set is dealt, the rest is the boneyard. The highest double begins, and must. In turn each seat
puts a tile at the left or the right end of the line, halves of equal pips together; who has no
tile that fits draws or passes, as the rules say, and may do neither while one fits. A round is
over when a hand is empty, or when no tile in any hand fits and nobody can draw (it is then
*blocked*, and won by the fewest pips). The full specification is docs/RULES.md.

### Arguments

``` python
domino_v0.env(rules="cabra", *, forced="step", history=False, belief=False, observe_as=None,
              render_mode=None, **fields)
```

`rules`: a preset's name, a mapping with a `preset` and fields, or `Rules`.

`fields`: override fields of the rules: `seats=4, teams=True, set=9, episode="round"`.

`forced`: with `"step"` every move is an action; with `"skip"` the environment makes every move
that is the only legal one, and an agent is asked only where it has a choice. (A move that would end
an episode in which nobody has been asked anything is not skipped.)

`history`: adds the events of the round to the observation.

`belief`: adds the exact probability of every place of each tile, as the observer knows it.

`observe_as`: 4 gives observations the shape of four seats whatever the rules, absent seats zero.

### Observation Space

A dictionary of `observation`, `action_mask` and, if they are asked for, `history` and `belief`. The
observer is always place 0, then clockwise. `observe` answers for any agent at any time.

`observation` is a vector of bytes of these parts (P seats, T tiles, pips 0 to N; larger numbers
are written as 255). `observation_layout(rules)` returns the slice of each.

| Part | Shape | Meaning |
|---|---|---|
| hand | T | own tiles |
| placed | P, T | tiles on the table, by who placed them |
| left, right | N + 1 each | the open ends, one-hot; zero before the lead |
| left_by, right_by | P each | whose tile made the end |
| hand_size | P | tiles in each hand |
| stock | 2 | boneyard tiles; how many of them may still be drawn |
| draws, passes | P each | in this round |
| drew | 1 | the seat to move has drawn in this turn |
| lacks | P, N + 1 | pips that a seat's own draws and passes prove it to lack |
| not_dealt | T | tiles that a forced lead proves to have been in no hand at the deal |
| leader, to_move | P each | one-hot |
| score, open, aside | P each | points, whether the record is open, points kept aside |
| match | 2 | target, number of the round |
| rules | 28 | the switches that change play |

Tile `high-low` has the number `high * (high + 1) / 2 + low`: 0-0 is 0, 1-0 is 1, 6-6 is 27.

`history` is `uint8 [H, 4]`, all that the seat has seen of the round in order, zero-padded: kind (1
own dealt tile, 2 play, 3 both doubles, 4 draw, 5 pass), seat, tile + 1 (0 unseen), end (1 left, 2
right).

`belief` is `float32 [P + 1, T]`, exact: row r is the hand of place r, the last one the undrawn
boneyard. The column of a tile sums to 1; for a tile on the table it is 0 (docs/worlds.md).

`state()` gives the whole game for centralised critics: the hands of all seats, each tile's place
in the boneyard (1 is drawn next), then the parts from `placed` on, numbered from the seat to move
(at the end, from the seat that moved last).

#### Legal Actions Mask

`action_mask`, int8, is 1 for each legal action of the seat to move, and all zero for every other
seat and after the end. It is also in `infos[agent]["action_mask"]`. Some action is always legal.

### Action Space

| Action ID | Action |
|:---:|---|
| 2t | put tile t at the left end; the lead; also where both ends show the same number |
| 2t + 1 | put tile t at the right end |
| 2T (56) | draw a tile |
| 2T + 1 (57) | pass |
| 2T + 2 (58) | put down both doubles of the ends |

An illegal action raises `IllegalMove` in `raw_env`, and nothing has moved. In `env` PettingZoo's
wrapper ends the game, with -1 for the offender and 0 for everyone else. That is **not zero-sum**,
and in pairs the partner gets away with it, so training should never go through it: mask instead.

### Rewards

Zero-sum over the seats; partners get the same. A reward is given in the step that earns it, to all
seats; the seats that did not make that move see it in their next `last()`.

- `reward="win"` (the default): once, at the end. The winning side's seats get +1, the others share
  -1 (of two sides: -1 each; of n single seats: -1/(n-1) each). In a match that g of n sides lose as
  goats, goats get -1 and the others g/(n-g). A draw gives 0.
- `reward="points"`: at the end of each round, what it is worth in points.

A match still open after `max_rounds` rounds (1,000 by default) is truncated.

### Length

With `d` tiles that may be drawn, a round takes at most `m = P * (hand_size - 1) + 1 + d` plays, `d`
draws and `(P - 1) * (m - 1)` passes (`d` more where `draw` is `one`): 67 moves in `cabra` with two
seats. An episode is one round, or a match of at most `max_rounds` rounds.

### Options

`reset(seed=7)` deals the same games as `Game(rules, seed=7)` and row 0 of `DominoVec(seed=7)`.
Without a seed it goes on from the random state; the first reset without one is random.

`reset(options={"hands": ["6-6 5-4 ...", ...], "boneyard": "4-4 ..."})` deals a given first round,
the boneyard in drawing order, with an optional `leader`. A bad deal is a `RulesError`, and the
game goes on as it was. Other keys are ignored.

Copies and pickles, in the middle of a game too, go on exactly as the original would.

### Version History

* v0: Initial version

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pettingzoo.utils import wrappers

from domino_env.aec import Environment, raw_env
from domino_env.rules import Rules

__all__ = ["env", "raw_env"]


def env(
    rules: str | Mapping[str, Any] | Rules = "cabra",
    *,
    forced: Literal["step", "skip"] = "step",
    history: bool = False,
    belief: bool = False,
    observe_as: int | None = None,
    render_mode: str | None = None,
    **fields: Any,
) -> Environment:
    """`raw_env` in the wrappers that PettingZoo's own games wear; arguments as above."""
    raw = raw_env(
        rules,
        forced=forced,
        history=history,
        belief=belief,
        observe_as=observe_as,
        render_mode=render_mode,
        **fields,
    )
    wrapped = wrappers.TerminateIllegalWrapper(raw, illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return wrappers.OrderEnforcingWrapper(wrapped)
