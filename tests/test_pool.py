"""Opponents in training: who is met, who moves, what is learned from, and what is counted."""

from typing import Any

import numpy as np
import pytest
import torch
from learning import TABLE_NAMES, TABLES, another, one_minibatch, small, weights_of
from support import Highest, Lowest

from agents.mlp import Mlp
from agents.network import Network
from agents.opponents import SELF, SLOTS, Blocks, Pool
from agents.policy import save_policy
from agents.ppo import Config, Learner
from agents.shape import Shape
from domino_env import DominoVec, Rules

# 64 games: 16 in self-play, 16 against snapshots, 32 against bots.
OPPONENTS: dict[str, Any] = {"pool": 0.25, "bots": 0.5, "bot_names": ("heaviest", "random")}


class Noted(Lowest):
    """Plays the lowest action, and notes the positions that it was asked for."""

    def __init__(self) -> None:
        super().__init__(0)
        self.views: list[Any] = []

    def act(self, view):
        self.views.append(view)
        return super().act(view)


def always_highest(config: Config) -> Network:
    """A network that plays the legal action of the highest number."""
    network = another(config, 0, 0.0)
    assert isinstance(network.actor, Mlp)
    bias = network.actor.head.bias
    with torch.no_grad():
        bias.copy_(100.0 * torch.arange(len(bias)))
    return network


def learner_of(config: Config, bots: list[Any], snapshots: list[Network]) -> Learner:
    """A learner with these opponents instead of its own."""
    learner = Learner(config)
    learner.pool.bots, learner.pool.snapshots = bots, snapshots
    learner.pool.won = np.full(len(bots) + len(snapshots), 0.5)
    learner.draw_opponents()
    return learner


def places_by_hand(seats: int, teams: bool, games: int) -> np.ndarray:
    """The seats of the learner, bool [B, P]: game b's place is the b-th, counted round."""
    sides = [[0, 2], [1, 3]] if teams else [[p] for p in range(seats)]
    own = np.zeros((games, seats), bool)
    for b in range(games):
        own[b, sides[b % len(sides)]] = True
    return own


# ---------------------------------------------------------------- who plays where


@pytest.mark.parametrize("table", TABLES, ids=TABLE_NAMES)
def test_the_learners_place_goes_round_and_only_its_own_decisions_are_learned_from(table):
    config = small(rules={"preset": "sin_robo", **table}, **OPPONENTS)
    learner = learner_of(config, [Noted(), Highest(0)], [always_highest(config)])
    own = places_by_hand(table["seats"], table.get("teams", False), 64)
    learner.rollout()
    storage = learner.tables[0].storage
    for k in range(8):
        seat = storage.seat[k].numpy()
        mine = (np.arange(64) < 16) | own[np.arange(64), seat]
        np.testing.assert_array_equal(storage.learns[k], mine)
    learned = sum(len(mb) for mb in learner.minibatches())
    assert learned == 2 * int(storage.learns[:8].sum())  # two epochs
    assert 0.4 * 1024 < learned < 0.9 * 1024


@pytest.mark.parametrize("table", TABLES, ids=TABLE_NAMES)
def test_every_opponent_makes_its_own_moves(table):
    """Bots that play the lowest action, snapshots the highest; the learner's are drawn."""
    config = small(rules={"preset": "cabra", **table}, pool=0.25, bots=0.5, bot_names=("random",))
    bot = Noted()
    learner = learner_of(config, [bot], [always_highest(config)])
    learner.rollout()
    storage = learner.tables[0].storage
    theirs = ~storage.learns[:8].numpy()
    mask, action = storage.mask[:8].numpy(), storage.action[:8].numpy()
    lowest = mask.argmax(2)
    highest = mask.shape[2] - 1 - mask[:, :, ::-1].argmax(2)
    assert not theirs[:, :16].any()
    for games, expected in ((slice(16, 32), highest), (slice(32, 64), lowest)):
        moves = theirs[:, games]
        assert moves.sum() > 20
        np.testing.assert_array_equal(action[:, games][moves], expected[:, games][moves])
    assert (action != lowest)[:, 32:][~theirs[:, 32:]].any()
    assert (action != highest)[:, 16:32][~theirs[:, 16:32]].any()
    assert sum(map(len, bot.views)) == theirs[:, 32:].sum()


def test_a_bot_sees_only_what_the_seat_that_moves_may_know():
    config = small(rules={"preset": "sin_robo", "seats": 3}, bots=1.0, bot_names=("random",))
    bot = Noted()
    bot.uses = frozenset({"games"})
    learner_of(config, [bot], []).rollout()
    for view in bot.views:
        rows = np.arange(len(view))
        others = (view.seat[:, None] + [1, 2]) % 3
        assert view.observation is None
        assert not view.games["hands"][rows[:, None], others].any()
        assert view.games["hands"][rows, view.seat].all()


def test_what_the_learner_learns_from_its_own_moves_is_what_it_drew():
    """The log-probabilities are those of its own network also beside opponents."""
    config = small(epochs=1, minibatch=10**6, **OPPONENTS)
    figures = learner_of(config, [Lowest(0), Highest(0)], [always_highest(config)]).update()
    assert abs(figures["losses/approx_kl"]) < 1e-6
    assert figures["losses/clip_fraction"] == 0


def test_advantages_are_brought_to_mean_0_over_what_is_learned_from():
    config = small(minibatch=10**6, epochs=1, **OPPONENTS)
    learner = learner_of(config, [Lowest(0), Highest(0)], [always_highest(config)])
    learner.update()
    (mb,) = learner.minibatches()
    assert mb.advantage.mean().item() == pytest.approx(0, abs=1e-5)
    assert mb.advantage.std(correction=0).item() == pytest.approx(1, abs=1e-4)


def slots(games: int, pool: float, bots: float) -> list[int]:
    """The slot of each game."""
    some = Pool(["random"], 4, 0, "cpu")
    return Blocks(Rules.preset("cabra"), games, slice(0, games), (pool, bots), some).slot.tolist()


def test_the_games_are_cut_into_blocks_of_self_play_snapshots_and_bots():
    assert slots(16, 0.25, 0.5) == [SELF] * 4 + [0, 1, 2, 3] + [4, 4, 5, 5, 6, 6, 7, 7]
    assert slots(8, 0.0, 0.25) == [SELF] * 6 + [4, 6]
    assert slots(4, 1.0, 0.0) == [0, 1, 2, 3]
    assert slots(3, 0.5, 0.5) == [0, 2, 4]  # both shares are rounded up, and there are only three
    assert slots(5, 0.0, 0.0) == [SELF] * 5


def test_each_process_has_its_own_part_of_the_blocks():
    pool = Pool(["random"], 4, 0, "cpu")
    rules = Rules.preset("sin_robo", seats=3)
    whole = Blocks(rules, 20, slice(0, 20), (0.25, 0.5), pool)
    parts = [Blocks(rules, 20, slice(*cut), (0.25, 0.5), pool) for cut in ((0, 7), (7, 20))]
    np.testing.assert_array_equal(np.concatenate([part.slot for part in parts]), whole.slot)
    np.testing.assert_array_equal(np.concatenate([part.own for part in parts]), whole.own)


def test_a_bot_that_cannot_play_at_a_table_is_one_clear_error(tmp_path):
    save_policy(tmp_path, Network(Shape([{"preset": "cabra", "seats": 3}], [4])))
    config = small(bots=0.5, bot_names=("heaviest", f"{tmp_path}/"))
    with pytest.raises(ValueError, match=f"{tmp_path}/: found seats 2, trained for 3"):
        Learner(config)
    Learner(small(bots=0.5, bot_names=(f"{tmp_path}/",), rules={"preset": "sin_robo", "seats": 3}))


# ---------------------------------------------------------------- who is met


def test_harder_opponents_are_met_more_often():
    """In proportion to the square of what they win, 0.01 for one that never does."""
    pool = Pool(["heaviest", "random", "expert", "lightest"], 4, 0, "cpu")
    pool.won = np.array([0.1, 0.8, 1.0, 0.1])
    random = np.random.default_rng(1)
    drawn = [pool.draw(True, random) for _ in range(20_000)]
    expected = np.array([0.81, 0.04, 0.01, 0.81]) / 1.67
    seen = np.bincount(drawn, minlength=4) / 20_000
    np.testing.assert_allclose(seen, expected, atol=4 * np.sqrt(0.25 / 20_000))
    assert seen[2] > 0


def test_snapshots_are_drawn_from_snapshots_and_bots_from_bots():
    pool = Pool(["heaviest", "random"], 4, 0, "cpu")
    random = np.random.default_rng(1)
    assert pool.draw(False, random) == SELF  # before the first snapshot they are self-play
    for _ in range(3):
        pool.add(Network(Shape([{"preset": "cabra"}], [2])))
    assert {pool.draw(True, random) for _ in range(100)} == {0, 1}
    assert {pool.draw(False, random) for _ in range(100)} == {2, 3, 4}


def test_snapshots_are_taken_on_schedule_and_the_first_one_stays():
    config = small(pool=0.5, pool_size=2, snapshot_every=2)
    learner, taken = Learner(config), []
    for update in range(1, 9):
        assert len(learner.pool.snapshots) == min(2, (update - 1) // 2)
        learner.update()
        assert bool((~learner.tables[0].storage.learns[:8]).any()) == (update > 2)
        if update % 2 == 0:
            taken.append(weights_of(learner.network))
        kept = [0, len(taken) - 1] if len(taken) > 1 else [0][: len(taken)]
        for snapshot, k in zip(learner.pool.snapshots, kept, strict=True):
            np.testing.assert_array_equal(weights_of(snapshot), taken[k])
            assert not any(p.requires_grad for p in snapshot.parameters())
        opponents = learner.tables[0].blocks.opponents
        assert set(opponents[:SLOTS]) <= set(range(len(kept)) if taken else [SELF])
        assert opponents[SLOTS:] == [SELF] * SLOTS


def test_a_pool_of_one_keeps_the_newest_and_a_new_snapshot_begins_at_a_half():
    pool = Pool(["random"], 1, 0, "cpu")
    networks = [Network(Shape([{"preset": "cabra"}], [2])) for _ in range(2)]
    for network in networks:
        pool.won[:] = 0.9
        pool.add(network)
        assert pool.won.tolist() == [0.9, 0.5]
        np.testing.assert_array_equal(weights_of(pool.snapshots[0]), weights_of(network))
    assert len(pool.snapshots) == 1


def test_opponents_are_drawn_anew_only_with_a_snapshot():
    learner = Learner(small(bots=1.0, bot_names=("random", "lightest"), snapshot_every=3))
    met = []
    for _ in range(7):
        met.append(tuple(learner.tables[0].blocks.opponents))
        learner.update()
    assert met[0] == met[1] == met[2]
    assert met[3] == met[4] == met[5]
    assert len(set(met)) > 1


# ---------------------------------------------------------------- what is counted


@pytest.mark.parametrize(
    "rules",
    [
        {"preset": "sin_robo", "hand_size": 2, "seats": 3},
        {"preset": "sin_robo_series", "hand_size": 2, "target": 20, "reward": "points"},
        {"preset": "sin_robo", "hand_size": 2, "seats": 4, "teams": True},
    ],
    ids=["3 seats", "matches for points", "pairs"],
)
def test_results_are_those_of_every_game_that_ended(rules):
    """Against a replay: whoever gets more than nothing over its whole episode has won it."""
    config = small(rules=rules, **OPPONENTS, steps=5, reward_scale=10.0)
    learner = learner_of(config, [Lowest(0), Highest(0)], [always_highest(config)])
    table = learner.tables[0]
    twin = DominoVec(64, rules, seed=0)
    twin.reset()
    own = places_by_hand(table.rules.seats, table.rules.teams, 64)
    won, ended = np.full(3, 0.5), 0
    for _ in range(4):
        who = [SELF if slot < 0 else table.blocks.opponents[slot] for slot in table.blocks.slot]
        learner.update()
        results: list[list[float]] = [[], [], []]
        for k in range(5):
            batch = twin.step(table.storage.action[k].numpy())
            for b in np.flatnonzero(batch.done):
                if who[b] != SELF:
                    earned = batch.final_reward[b, own[b]].mean()
                    results[who[b]].append(1.0 if earned > 0 else 0.5 if earned == 0 else 0.0)
        for n, found in enumerate(results):
            if found:
                won[n] = 0.98 * won[n] + 0.02 * np.mean(found)
        ended += sum(map(len, results))
        np.testing.assert_allclose(learner.pool.won, won, atol=1e-9)
    assert ended > 40
    assert np.ptp(won) > 0.001


def test_the_figures_name_each_bot_and_the_pool():
    learner = Learner(small(**OPPONENTS, snapshot_every=1))
    first, second = learner.update(), learner.update()
    names = [name for name in first if "opponents" in name]
    assert names == ["opponents/heaviest", "opponents/random", "opponents/pool"]
    assert second["opponents/pool"] == learner.pool.won[2:].mean()
    assert second["opponents/random"] == learner.pool.won[1]
    assert not any("opponents" in name for name in Learner(small()).update())


def test_games_of_several_tables_have_opponents_in_their_own_places():
    tables = [{"preset": "sin_robo", "seats": 2}, {"preset": "cabra", "seats": 3}]
    learner = Learner(small(rules=tables, observe_as=4, **OPPONENTS, snapshot_every=1))
    for _ in range(2):
        learner.update()
    for table in learner.tables:
        theirs = ~table.storage.learns[:8]
        assert not theirs[:, :8].any()
        assert theirs[:, 8:16].any()  # snapshots
        assert theirs[:, 16:].any()
    assert len(next(learner.minibatches())) < 512


def test_without_opponents_everything_is_learned_from():
    learner = Learner(small())
    assert len(one_minibatch(learner)) == 512
    assert not learner.tables[0].blocks.any
