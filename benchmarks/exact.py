"""Small games, exactly: the speed of the solver, and the tables of docs/exact.md.

    python -m benchmarks.exact

Takes about a quarter of an hour on one core. A value at equilibrium is the middle of what best
responses to an average strategy of CFR+ give the two seats, once they are closer than GAP.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from agents.exact import CfrPlus, exploitability, uniform
from agents.small_game import SmallGame
from domino_env.rules import Rules

GAMES = ("cabra", "sin_robo", "estandar")
SIZES = ((2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (3, 5))  # set, hand
GAP = {"win": 1e-5, "points": 1e-4}  # largest NashConv of what is called an equilibrium
STEP = 50  # iterations between two looks at it
HEAD = "| game | set, hand | deals | nodes | infosets | value at equilibrium "
HEAD += "| value, uniform play | NashConv, uniform play |"


def main() -> None:
    """Print the speeds and both tables, each row when it is there."""
    speed()
    for reward in GAP:
        print(f"\n`reward: {reward}`\n\n{HEAD}\n|---|---|--:|--:|--:|--:|--:|--:|", flush=True)
        for name in GAMES:
            for set_, hand_size in SIZES:
                print(row(name, set_, hand_size, reward), flush=True)


def speed() -> None:
    """Print what the largest game of the reference figures takes, in seconds of CPU time."""
    rules = Rules.preset("sin_robo", set=3, hand_size=3, lead="seat", reward="points")
    SmallGame(rules.replace(set=2))  # compiles
    game, build = timed(lambda: SmallGame(rules))
    exploitability(game, uniform(game))
    _, best = timed(lambda: exploitability(game, uniform(game)))
    solver = CfrPlus(game)
    solver.run(1)
    _, cfr = timed(lambda: solver.run(1000))
    print(f"Double-three, hands of 3: {game.nodes:,} nodes built in {build:.2f} s")
    print(f"best responses of both seats: {best:.3f} s (target: 2 s)")
    print(f"1,000 iterations of CFR+: {cfr:.1f} s (target: 180 s)", flush=True)


def timed(work: Callable[[], object]) -> tuple:
    """What `work` returns, and the CPU time that it took."""
    before = time.process_time()
    result = work()
    return result, time.process_time() - before


def row(name: str, set_: int, hand_size: int, reward: str) -> str:
    """One row of a table."""
    fields = {"set": set_, "hand_size": hand_size, "lead": "seat", "reward": reward}
    game = SmallGame(Rules.preset(name, episode="round", **fields))
    even = exploitability(game, uniform(game))
    digits = 5 if reward == "win" else 4
    cells = [name, f"double-{set_}, {hand_size}"]
    cells += [f"{count:,}" for count in (game.deals, game.nodes, game.infosets)]
    figures = equilibrium_value(game, GAP[reward]), even.values[0], even.nashconv
    return f"| {' | '.join(cells + [f'{figure:.{digits}f}' for figure in figures])} |"


def equilibrium_value(game: SmallGame, gap: float) -> float:
    """The value to seat 0 where both seats play best, within half of `gap`."""
    solver = CfrPlus(game)
    while True:
        solver.run(STEP)
        result = exploitability(game, solver.strategy)
        if result.nashconv <= gap:
            return (result.best[0] - result.best[1]) / 2


if __name__ == "__main__":
    main()
