"""Networks: what each is shown, what it must not depend on, and that all of it learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning import TABLE_NAMES, TABLES, another, flat_gradient, one_minibatch, small
from support import NUMBER, TILE

from agents.attention import Attention
from agents.base import View
from agents.graph import Graph, tiles_held
from agents.loss import Weights, loss_of
from agents.network import ACTORS, Network
from agents.policy import PolicyAgent, load_policy, save_policy
from agents.ppo import Learner
from agents.selfplay import parameters_of
from agents.shape import Inputs, Shape
from domino_env import DominoVec, Rules
from domino_env.observation import observation_layout
from domino_env.rules import PRESETS

EVERYTHING = {"history": True, "belief": True, "privileged_critic": True}
ROUND = {"preset": "cabra", "episode": "round"}


def positions(rules: Rules, games=12, moves=6, **options) -> DominoVec:
    """Games after some moves of the lowest number."""
    vec = DominoVec(games, rules, seed=3, **options)
    batch = vec.reset()
    for _ in range(moves):
        batch = vec.step(batch.mask.argmax(1))
    return vec


def inputs_of(learner: Learner) -> Inputs:
    """What the network is shown of the positions in a first rollout's middle."""
    learner.rollout()
    return learner.tables[0].storage.inputs(5)


# ---------------------------------------------------------------- playing


@pytest.mark.parametrize("table", TABLES, ids=TABLE_NAMES)
def test_attention_plays_legal_moves_in_every_game(table):
    for preset in PRESETS:
        rules = Rules.preset(preset, **table)
        torch.manual_seed(0)
        shape = Shape([rules.to_dict()], [16], "attention", history=True, temperature=1.0)
        agent = PolicyAgent(Network(shape), "test", 0)
        view = agent.view(rules, positions(rules).games)
        chances = agent.policy(view)
        np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
        assert not chances[view.mask == 0].any()
        assert view.mask[np.arange(12), agent.act(view)].all()


@pytest.mark.parametrize("network", [*ACTORS])
def test_one_network_plays_at_every_table_with_history_and_belief(network):
    games = [Rules.preset("estandar", **table) for table in TABLES]
    torch.manual_seed(0)
    shape = Shape([g.to_dict() for g in games], [16, 16], network, True, True, observe_as=4)
    agent = PolicyAgent(Network(shape), "test", 0)
    for rules in games:
        agent.check(rules)
        view = agent.view(rules, positions(rules).games)
        assert view.belief is not None
        assert view.belief.shape == (12, 5, 28)
        assert view.mask[np.arange(12), agent.act(view)].all()


def test_a_policy_plays_at_each_of_the_tables_that_it_was_trained_at():
    tables = [{"preset": "sin_robo", "seats": 4, "teams": teams} for teams in (False, True)]
    agent = PolicyAgent(Network(Shape(tables, [8])), "test", 0)
    for rules in tables:
        agent.check(Rules.from_dict(rules))
    with pytest.raises(ValueError, match="test: found seats 2, trained for 4"):
        agent.check(Rules.preset("sin_robo"))
    both = [{"preset": "sin_robo", "seats": seats} for seats in (3, 2)]
    with pytest.raises(ValueError, match="test: found seats 4, trained for 2 or 3"):
        PolicyAgent(Network(Shape(both, [8])), "test", 0).check(Rules.preset("sin_robo", seats=4))


# ---------------------------------------------------------------- what it is shown


def renamed(rules: Rules, observation: torch.Tensor, pips: list[int]) -> torch.Tensor:
    """Observations of the same positions with other pips on the tiles: n becomes pips[n]."""
    found, tiles = observation.clone(), [renamed_tile(t, pips) for t in range(rules.tiles)]
    for name, (where, shape) in observation_layout(rules).items():
        to = {rules.tiles: tiles, rules.set + 1: pips}.get(shape[-1])
        if name != "rules" and to is not None:
            part = observation[:, where].reshape(-1, *shape)
            new = torch.zeros_like(part)
            new[..., to] = part
            found[:, where] = new.flatten(1)
    return found


def renamed_tile(t: int, pips: list[int]) -> int:
    low, high = sorted(pips[n] for n in TILE[t])
    return NUMBER[low, high]


def graph_alone(rules: Rules) -> Network:
    """A graph network of two rounds that does not see what its `mlp` sees, nor how heavy pips are.

    Its weights are far from zero.
    """
    network = another(small(rules=rules.to_dict(), network="graph", hidden=(16, 16, 16)), 1)
    assert isinstance(network.actor, Graph)
    with torch.no_grad():
        for parameter in network.actor.base.parameters():
            parameter.zero_()
        network.actor.score.weight.normal_()
        network.actor.value.zero_()
    return network


@pytest.mark.parametrize("table", TABLES, ids=TABLE_NAMES)
def test_a_graph_gives_all_pips_the_same_weights(table):
    """With other pips on the tiles it gives each play of a tile what it gave the play before."""
    rules = Rules.preset("estandar", **table)
    batch = positions(rules, games=64).current()
    observation, legal = torch.from_numpy(batch.observation), batch.mask > 0
    network, pips = graph_alone(rules), [3, 5, 0, 6, 2, 1, 4]
    with torch.no_grad():
        before = network.logits(Inputs(observation)).numpy()
        after = network.logits(Inputs(renamed(rules, observation, pips))).numpy()
    for t in range(28):
        to = renamed_tile(t, pips)
        for side in (0, 1):
            rows = legal[:, 2 * t + side]
            found, expected = after[rows, 2 * to + side], before[rows, 2 * t + side]
            np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.std(before[legal]) > 0.01


def test_a_graph_gives_both_ends_the_same_weights():
    """A table seen from behind: left is right."""
    rules = Rules.preset("sin_robo")
    batch = positions(rules, games=64).current()
    observation, mirrored = torch.from_numpy(batch.observation), batch.observation.copy()
    layout = observation_layout(rules)
    for a, b in (("left", "right"), ("left_by", "right_by")):
        for one, other in ((a, b), (b, a)):
            mirrored[:, layout[one][0]] = batch.observation[:, layout[other][0]]
    network = graph_alone(rules)
    with torch.no_grad():
        before = network.logits(Inputs(observation)).numpy()[:, :56].reshape(64, 28, 2)
        after = network.logits(Inputs(torch.from_numpy(mirrored))).numpy()[:, :56]
    legal = batch.mask[:, :56].reshape(64, 28, 2) > 0
    found = after.reshape(64, 28, 2)[..., ::-1]
    # Where only one end would be marked here, the play of a tile is legal at the left alone.
    np.testing.assert_allclose(found[legal], before[legal], atol=1e-4)
    assert np.std(before[legal]) > 0.01


def test_attention_gives_the_two_sides_of_each_tile_and_then_the_other_actions():
    network = Network(Shape([ROUND], [16], "attention"))
    assert isinstance(network.actor, Attention)
    with torch.no_grad():
        for head, biases in (
            (network.actor.tile_head, [1, 2]),
            (network.actor.table_head, [7] * 3),
        ):
            head.weight.zero_()
            head.bias.copy_(torch.tensor(biases))
        logits, values = network(Inputs(torch.zeros(3, 193, dtype=torch.uint8)))
    assert logits.tolist() == [[1, 2] * 28 + [7, 7, 7]] * 3
    assert values.shape == (3,)


def test_a_tile_is_shown_its_own_flags_and_those_of_its_two_pips():
    """Ends 3 and 5; the left neighbour lacks 3; tile 5-3 was placed by the seat across."""
    rules = Rules.preset("sin_robo", seats=3)
    layout = observation_layout(rules)
    flags = {"hand": {(9,)}, "not_dealt": {(27,)}, "placed": {(2, 18)}}
    flags |= {"left": {(3,)}, "right": {(5,)}, "lacks": {(1, 3)}}
    vector = torch.zeros(1, sum(int(np.prod(shape)) for _, shape in layout.values()))
    for name, (where, shape) in layout.items():
        part = torch.zeros(shape)
        for index in flags.get(name, ()):
            part[index] = 1
        vector[0, where] = part.flatten()
    actor = Network(Shape([rules.to_dict()], [16], "attention")).actor
    assert isinstance(actor, Attention)
    belief = torch.arange(4 * 28.0).view(1, 4, 28)
    found = actor._of_tiles(vector, belief)[0]
    for t, row in enumerate(found.tolist()):
        high, low = TILE[t]
        expected = [t == 9, t == 27, False, False, t == 18]
        for pip in (min(high, low), max(high, low)):
            expected += [pip == 3, pip == 5, False, pip == 3, False]
        assert row == [*expected, t, 28 + t, 56 + t, 84 + t], TILE[t]


@pytest.mark.parametrize("network", [*ACTORS])
def test_more_rows_of_padding_behind_a_history_change_nothing(network):
    """Rows that are cut off, or added, come to the same; what happened does not."""
    config = small(network=network, hidden=(16, 16), history=True, rules={"preset": "estandar"})
    inputs, net = inputs_of(Learner(config)), another(config, 1)
    history = inputs.history
    assert history is not None
    used = int((history[..., 0] > 0).sum(1).max())
    assert used < history.shape[1]
    with torch.no_grad():
        full = net.logits(inputs)
        for rows in (history[:, :used], torch.nn.functional.pad(history, (0, 0, 0, 9))):
            np.testing.assert_allclose(net.logits(inputs._replace(history=rows)), full, atol=1e-5)
        fewer = net.logits(inputs._replace(history=history[:, : used - 1]))
    assert (fewer - full).abs().max() > 1e-4


def test_attention_does_not_look_at_rows_without_an_event():
    config = small(network="attention", history=True)
    inputs, network = inputs_of(Learner(config)), another(config, 1)
    assert isinstance(network.actor, Attention)
    assert network.actor.events is not None
    assert inputs.history is not None
    used = int((inputs.history[..., 0] > 0).sum(1).max())
    with torch.no_grad():
        before = network.logits(inputs)
        network.actor.events.place[used:] = 100.0
        np.testing.assert_allclose(network.logits(inputs), before, atol=1e-5)
        network.actor.events.place[used - 1] = 100.0
        assert (network.logits(inputs) - before).abs().max() > 1e-3


def test_the_policy_does_not_depend_on_the_state_but_the_value_does():
    config = small(privileged_critic=True)
    inputs, network = inputs_of(Learner(config)), another(config, 1)
    assert inputs.state is not None
    hidden = torch.zeros_like(inputs.state)
    with torch.no_grad():
        logits, values = network(inputs)
        others, nothing = network(inputs._replace(state=hidden))
    assert torch.equal(logits, others)
    assert torch.equal(network.logits(inputs._replace(state=None)), logits)
    assert (values - nothing).abs().max() > 0.01
    assert nothing.std() < 1e-6  # nor does the value see anything but the state


def test_a_policy_with_a_privileged_critic_is_saved_and_plays_without_the_state(tmp_path):
    learner = Learner(small(privileged_critic=True, temperature=1.0))
    learner.update()
    save_policy(tmp_path, learner.played)
    agent, rules = load_policy(tmp_path), learner.tables[0].rules
    assert agent.uses == {"observation"}
    view = View.of(rules, positions(rules).games, agent.uses)
    np.testing.assert_array_equal(agent.policy(view), learner.agent().policy(view))


@pytest.mark.parametrize("observe_as", [None, 4])
@pytest.mark.parametrize("table", TABLES, ids=TABLE_NAMES)
def test_the_tiles_that_are_held_are_those_of_the_hands_and_the_boneyard(table, observe_as):
    rules = Rules.preset("estandar", **table)
    vec = DominoVec(12, rules, seed=3, state=True, observe_as=observe_as)
    batch = vec.reset()
    for _ in range(6):
        batch = vec.step(batch.mask.argmax(1))
    places = observe_as or rules.seats
    found = tiles_held(torch.from_numpy(batch.state), places, rules)
    assert found.shape == (12, 7, places)
    for game, of_pips in zip(vec.games, found, strict=True):
        hands = [game["hands"][(game["seat"] + k) % rules.seats] for k in range(1, rules.seats)]
        hands += [0] * (places - rules.seats)
        rest = [1 << int(t) for t in game["boneyard"][game["drawn"] : game["stock"]]]
        for place, hand in enumerate([*hands, sum(rest)]):
            tiles = [TILE[t] for t in range(28) if int(hand) >> t & 1]
            expected = [sum(pip in tile for tile in tiles) for pip in range(7)]
            assert of_pips[:, place].tolist() == expected


def test_a_guess_of_hands_needs_a_graph():
    with pytest.raises(ValueError, match="hands: found network mlp, expected graph with it"):
        Learner(small(hands_weight=0.1))


# ---------------------------------------------------------------- learning


@pytest.mark.parametrize("network", [*ACTORS])
def test_the_gradient_reaches_every_parameter(network):
    fields = EVERYTHING | ({"hands_weight": 0.1} if network == "graph" else {})
    config = small(network=network, hidden=(16, 16), games=32, **fields)
    learner, net = Learner(config), another(config, 1)
    loss = loss_of(net, one_minibatch(learner), config, Weights(0.05), None)
    grads = torch.autograd.grad(loss.total, parameters_of(net))
    for (name, _), grad in zip(net.named_parameters(), grads, strict=True):
        assert grad.abs().max() > 1e-6, name


@pytest.mark.parametrize("network", [*ACTORS])
def test_bfloat16_comes_close_to_float32(network):
    """In the rollout, where the whole network is in it, and in the loss, where autocast is."""
    config = small(network=network, hidden=(16, 16), games=32, bf16=True, **EVERYTHING)
    learner, net = Learner(config), another(config, 1, 0.05)
    mb = one_minibatch(learner)
    with torch.no_grad():
        exact, rounded = (
            net.logits(mb.inputs),
            another(config, 1, 0.05).bfloat16().logits(mb.inputs),
        )
    assert rounded.dtype == torch.bfloat16
    assert (exact - rounded).abs().max() < 0.05 * exact.abs().max()
    gradients = [
        flat_gradient(loss_of(net, mb, c, Weights(0.05), None).total, parameters_of(net))
        for c in (config, replace(config, bf16=False))
    ]
    scale = np.abs(gradients[1]).max()
    assert 0 < np.abs(gradients[0] - gradients[1]).max() < 0.05 * scale


@pytest.mark.parametrize("network", [*ACTORS])
def test_the_policy_that_learns_is_the_one_that_played_with_all_parts(network):
    sizes = {"hidden": (16, 16), "games": 32, "epochs": 1, "minibatch": 10**6}
    config = small(network=network, **sizes, **EVERYTHING)
    figures = Learner(config).update()
    assert abs(figures["losses/approx_kl"]) < 1e-6
    assert figures["losses/clip_fraction"] == 0


@pytest.mark.parametrize("hidden", [(), (16,)])
def test_a_graph_needs_two_widths(hidden):
    with pytest.raises(ValueError, match=f"hidden: found {len(hidden)} widths, expected two"):
        Learner(small(network="graph", hidden=hidden))


def test_attention_needs_a_width():
    with pytest.raises(ValueError, match="hidden: found no layers, expected one or more"):
        Learner(small(network="attention", hidden=()))


@pytest.mark.parametrize(("width", "heads"), [(4, 1), (16, 1), (32, 2), (48, 3), (50, 2), (96, 4)])
def test_heads_divide_the_width_and_are_at_most_four(width, heads):
    """At least 16 wide each, as far as the width divides."""
    network = Network(Shape([ROUND], [width], "attention"))
    assert isinstance(network.actor, Attention)
    assert [block.heads for block in network.actor.blocks] == [heads]
