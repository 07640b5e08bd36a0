"""The network `mlp`, which takes everything as one vector, and layers that the others use too."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.shape import Inputs, Read, Shape
from domino_env.observation import Layout, history_length, layout_size, observation_layout
from domino_env.rules import Rules

# What one unit of a part of the observation is divided by; the parts that are not here are flags.
UNITS = {
    "boneyard": 16.0,
    "hand_size": 8.0,
    "stock": 16.0,
    "draws": 8.0,
    "passes": 8.0,
    "score": 64.0,
    "aside": 16.0,
    "match": 64.0,
    "rules": 16.0,
}
EVENT_KINDS, EVENT_SEATS, EVENT_ENDS = 6, 4, 3  # of the columns of `history`, with 0
EVENT_WIDTH = 16  # in an `mlp`


class Scale(nn.Module):
    """Numbers of an observation or a state, uint8 [B, D], brought near to 1."""

    scale: Tensor

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        scale = torch.ones(layout_size(layout))
        for name in layout.keys() & UNITS.keys():
            scale[layout[name][0]] = 1 / UNITS[name]
        self.register_buffer("scale", scale, persistent=False)

    def forward(self, numbers: Tensor) -> Tensor:
        """[B, D] in the dtype of the network."""
        return numbers.to(self.scale.device).to(self.scale.dtype) * self.scale


def layers(sizes: list[int]) -> nn.Sequential:
    """Linear layers, a ReLU behind each."""
    found: list[nn.Module] = []
    for fan_in, width in pairwise(sizes):
        linear = nn.Linear(fan_in, width)
        nn.init.orthogonal_(linear.weight, 2**0.5)
        nn.init.zeros_(linear.bias)
        found += [linear, nn.ReLU()]
    return nn.Sequential(*found)


class Head(nn.Linear):
    """A linear layer that gives logits, or other numbers that leave the network."""


def small_head(width: int, outputs: int) -> Head:
    """One that begins with nearly uniform play."""
    head = Head(width, outputs)
    nn.init.orthogonal_(head.weight, 0.01)
    nn.init.zeros_(head.bias)
    return head


class Events(nn.Module):
    """Rows of history as vectors [B, H, W]; longer histories than `rows` are cut."""

    def __init__(self, rows: int, tiles: int, width: int) -> None:
        super().__init__()
        self.rows = rows
        sizes = (EVENT_KINDS, EVENT_SEATS, tiles + 1, EVENT_ENDS)
        columns = [nn.Embedding(size, width) for size in sizes]
        self.columns = nn.ModuleList(columns)
        self.place = nn.Parameter(0.02 * torch.randn(rows, width))
        for column in columns:
            nn.init.uniform_(column.weight, -0.5, 0.5)

    def forward(self, history: Tensor) -> Tensor:
        """uint8 [B, H, 4] to [B, rows, W]."""
        rows = history[:, : self.rows].to(self.place.device).int()
        rows = F.pad(rows, (0, 0, 0, self.rows - rows.shape[1]))
        found = sum(column(rows[..., k]) for k, column in enumerate(self.columns))
        return found + self.place


class Mlp(nn.Module):
    """Everything in one vector, through linear layers."""

    def __init__(self, shape: Shape, games: list[Rules]) -> None:
        super().__init__()
        layout = observation_layout(games[0], shape.observe_as)
        self.scale = Scale(layout)
        size, tiles = layout_size(layout), games[0].tiles
        self.events: Events | None = None
        if shape.history:
            self.events = Events(max(map(history_length, games)), tiles, EVENT_WIDTH)
            size += self.events.rows * EVENT_WIDTH
        if shape.belief:
            size += (layout["hand_size"][1][0] + 1) * tiles
        self.body = layers([size, *shape.hidden])
        self.width = shape.hidden[-1] if shape.hidden else size
        self.head = small_head(self.width, games[0].actions)

    def forward(self, inputs: Inputs) -> Read:
        """The logits and the last hidden layer."""
        vector = self.scale(inputs.observation)
        more = []
        if self.events is not None:
            assert inputs.history is not None
            more.append(self.events(inputs.history).flatten(1))
        if inputs.belief is not None:
            more.append(inputs.belief.to(vector.device).to(vector.dtype).flatten(1))
        hidden = self.body(torch.cat([vector, *more], 1) if more else vector)
        return Read(self.head(hidden), hidden)
