"""A game of a person against agents, in the terminal."""

from __future__ import annotations

import json

import numpy as np

from agents.base import Agent
from agents.games import ask
from domino_env.game import Game
from domino_env.render import table_text
from domino_env.rules import Rules
from domino_env.table import table_of

SPOKEN = {"draw": "draws", "pass": "passes", "both": "plays both doubles"}


def play_in_terminal(agent: Agent, rules: Rules, seat: int = 0, seed: int | None = None) -> None:
    """Play one game on stdin and stdout: a person at `seat`, `agent` in all other seats.

    It ends early at `q` or at the end of the input. Raises `ValueError` for a seat that is none.
    """
    if not 0 <= seat < rules.seats:
        raise ValueError(f"seat: found {seat}, expected 0 to {rules.seats - 1}")
    agent.check(rules)
    game = Game(rules, seed)
    partner = f", player_{(seat + 2) % 4} your partner" if rules.teams else ""
    print(f"You are player_{seat}, {agent.name} plays for the others{partner}.")
    while not game.over:
        move = _next_move(game, agent, seat)
        if move is None:
            print("\nYou left the game.")
            return
        print(f"player_{game.seat} {SPOKEN.get(move, f'plays {move}')}")
        rounds = len(game.finished)
        game.play(move)
        if game.over or len(game.finished) > rounds:
            _show_end_of_round(game, seat)
    print("Rewards: " + ", ".join(f"player_{p} {r:+g}" for p, r in enumerate(game.rewards)))


def _next_move(game: Game, agent: Agent, seat: int) -> str | None:
    """The move of the seat to move; None if the person leaves."""
    moves = game.legal_moves()
    if game.seat == seat:
        return moves[0] if moves[0] in ("draw", "pass") else _asked(game, moves)
    if len(moves) == 1:
        return moves[0]
    view = agent.view(game.rules, game.games)
    actions = ask(agent, view, lambda row: json.dumps(game.to_record()))
    return moves[game.legal_actions().index(int(actions[0]))]


def _asked(game: Game, moves: list[str]) -> str | None:
    """The move that the person chooses, by its number or its text; None to leave."""
    print(f"\n{table_text(game.table(game.seat))}\n")
    print("   ".join(f"{number}: {move}" for number, move in enumerate(moves, 1)))
    while True:
        try:
            answer = " ".join(input(f"Your move (1 to {len(moves)}, q to leave): ").split())
        except EOFError:
            return None
        if answer.casefold() in ("q", "quit"):
            return None
        named = [move for move in moves if move.casefold() == answer.casefold()]
        if named:
            return named[0]
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(moves):
            return moves[int(answer) - 1]
        print(f"{answer!r} is none of these moves.")


def _show_end_of_round(game: Game, seat: int) -> None:
    """The table with every hand, at the end of the round that has just been played."""
    games: np.recarray = game.games if game.over else game.finished[-1]
    print(f"\n{table_text(table_of(games[0], seat, range(game.rules.seats)))}\n")
