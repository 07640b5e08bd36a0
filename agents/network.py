"""Networks: what a seat may know to logits of its actions, and a value.

An actor gives the logits: `mlp` (mlp.py), `graph` (graph.py) or `attention` (attention.py). What
they are shown and how they are described stands in shape.py.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from agents.attention import Attention
from agents.graph import Graph
from agents.mlp import Head, Mlp, Scale, layers
from agents.shape import Inputs, Shape
from domino_env.observation import layout_size, observation_layout, state_layout
from domino_env.rules import Rules

ACTORS: dict[str, type[Mlp | Attention | Graph]] = {
    "mlp": Mlp,
    "attention": Attention,
    "graph": Graph,
}


class Judged(NamedTuple):
    """What a network makes of B positions."""

    logits: Tensor  # [B, A]
    value: Tensor  # [B], to the seat to move
    held: Tensor | None = None  # [B, N, P], with `hands`: what it takes for `tiles_held`


class Network(nn.Module):
    """`Inputs` to logits of all actions, and the value to the seat to move."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        games = [Rules.from_dict(rules) for rules in shape.rules]
        self.actor = ACTORS[shape.network](shape, games)
        width = self.actor.width
        self.critic_body: nn.Module | None = None
        if shape.privileged:
            layout = state_layout(games[0], shape.observe_as)
            self.critic_scale = Scale(layout)
            self.critic_body = layers([layout_size(layout), *shape.hidden])
            width = shape.hidden[-1] if shape.hidden else layout_size(layout)
        self.critic = nn.Linear(width, 1)
        nn.init.orthogonal_(self.critic.weight)
        nn.init.zeros_(self.critic.bias)
        self.held: Head | None = None
        if shape.hands:
            if shape.network != "graph":
                raise ValueError(f"hands: found network {shape.network}, expected graph with it")
            places = observation_layout(games[0], shape.observe_as)["hand_size"][1][0]
            self.held = Head(shape.hidden[1], places)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and values [B]."""
        judged = self.judge(inputs)
        return judged.logits, judged.value

    def judge(self, inputs: Inputs) -> Judged:
        """All that it makes of the positions."""
        logits, hidden, pips = self.actor(inputs)
        if self.critic_body is not None:
            assert inputs.state is not None
            hidden = self.critic_body(self.critic_scale(inputs.state))
        guess = None if self.held is None else self.held(pips)
        return Judged(logits, self.critic(hidden).squeeze(-1), guess)

    def logits(self, inputs: Inputs) -> Tensor:
        """Logits [B, A] alone, for which no state is needed."""
        return self.actor(inputs).logits

    def inner_weights(self) -> list[Tensor]:
        """The matrices between two layers: of linear layers that give neither logits nor value."""
        inner = [m for m in self.modules() if isinstance(m, nn.Linear) and not isinstance(m, Head)]
        return [linear.weight for linear in inner if linear is not self.critic]
