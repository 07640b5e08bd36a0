"""How likely a world is by what the others have played."""

import numpy as np
import pytest

from agents import load
from agents.base import View
from agents.expert import Expert
from agents.likelihood import CARELESS, HEAT, log_likelihood
from domino_env import Game, Rules
from domino_env.worlds import sample_worlds

KINDS = [
    ("sin_robo", {}),
    ("sin_robo", {"lead": "random", "seats": 4, "teams": True}),
    ("estandar", {"lead_tile": "free", "seats": 3}),
    ("estandar", {"draw": "one", "reserve": 2, "lead": "seat"}),
    ("cabra", {"seats": 4}),
    ("cabra", {"next_lead": "winner", "target": 500}),
]


def chance_of(game: Game, action: int) -> float:
    """The chance that a player modelled by `expert` makes a move, from what its seat may see."""
    scores = Expert().scores(View.of(game.rules, game.games))[0, game.legal_actions()]
    thought = np.exp((scores - scores.max()) / HEAT)
    by_action = dict(zip(game.legal_actions(), thought / thought.sum(), strict=True))
    return (1 - CARELESS) * by_action[action] + CARELESS / len(by_action)


@pytest.mark.parametrize(("preset", "fields"), KINDS, ids=str)
def test_it_is_the_product_of_the_chances_of_all_choices_of_the_others(preset, fields):
    game, random = Game(Rules.preset(preset, **fields), seed=4), np.random.default_rng(4)
    sums, choices = np.zeros(game.rules.seats), 0
    for _ in range(60):
        round_number, mover = int(game.games[0].round_number), game.seat
        legal = game.legal_actions()
        action = int(random.choice(legal))
        if len(legal) > 1:
            others = np.arange(game.rules.seats) != mover
            sums[others] += np.log(chance_of(game, action))
        game.play(action)
        if game.over:
            break
        if game.games[0].round_number != round_number:
            sums[:] = 0.0
        choices += len(legal) > 1
        every = np.repeat(game.games, game.rules.seats).view(np.recarray)
        found = log_likelihood(every, np.arange(game.rules.seats))
        assert found == pytest.approx(sums)
    assert choices > 4


def test_two_to_one_where_a_seat_had_one_choice_in_a_world_and_two_equal_ones_in_the_other():
    # Seat 1 answers 0-0 by 1-0. With 3-3 in its hand it had no choice; with 2-0 it had one.
    rules = Rules.preset("sin_robo", set=3, hand_size=2, lead="seat")
    known = []
    for other in ("3-3", "2-0"):
        taken = {"0-0", "2-1", "1-0", other}
        rest = [f"{a}-{b}" for a in range(4) for b in range(a + 1) if f"{a}-{b}" not in taken]
        game = Game.deal(rules, ["0-0 2-1", f"1-0 {other}"], " ".join(rest))
        game.play("0-0")
        expected = 0.0
        if other == "2-0":
            assert game.legal_moves() == ["1-0 L", "2-0 L"]
            expected = np.log(chance_of(game, game.legal_actions()[0]))
        game.play("1-0 L")
        known.append(log_likelihood(game.games, np.array([0]))[0])
        assert known[-1] == pytest.approx(expected)
    assert known[0] == 0.0 > known[1] >= np.log(CARELESS / 2)


def test_the_moves_of_the_seat_that_knows_say_nothing():
    game = Game("sin_robo", seed=1)
    game.play(game.legal_moves()[0])
    assert log_likelihood(game.games, np.array([(game.seat + 1) % 2])).tolist() == [0.0]


@pytest.mark.parametrize("fields", [{}, {"seats": 4, "teams": True}], ids=str)
def test_the_true_world_is_likelier_than_others_where_expert_plays(fields):
    rules = Rules.preset("sin_robo", **fields)
    expert, above = load("expert", seed=0), []
    for seed in range(40):
        game = Game(rules, seed=seed)
        while not game.over and game.games[0].event_count < 7:
            game.play(int(expert.act(View.of(rules, game.games))[0]))
        if game.over:
            continue
        worlds = sample_worlds(game.games, None, 50, random=seed)[0]
        every = np.concatenate([game.games, worlds]).view(np.recarray)
        found = log_likelihood(every, np.full(51, game.seat))
        above.append((found[1:] < found[0]).mean() + (found[1:] == found[0]).mean() / 2)
    error = np.std(above) / np.sqrt(len(above))
    assert np.mean(above) - 3 * error > 0.5


def test_no_worlds_have_no_likelihoods():
    games = Game("cabra", seed=1).games[:0]
    assert log_likelihood(games, np.zeros(0, np.int64)).tolist() == []
