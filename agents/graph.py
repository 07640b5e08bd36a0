"""The network `graph`: a vector for each pip, with the same weights for all pips and both ends.

With `history` it sees what was done to each pip (pip_history.py).
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.mlp import Mlp, small_head
from agents.pip_history import CHANNELS, pip_history
from agents.shape import Inputs, Read, Shape
from domino_env.observation import observation_layout
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW


class Graph(nn.Module):
    """A vector for each pip; the tiles that join two pips carry messages between them.

    The weights are the same for all pips and for both ends, so what is learned of one is known of
    all. A play is scored by the pip that becomes an end and by the pip of the other end, and that
    is added to the logits of an `mlp`, which also sees what is no matter of pips.
    """

    joins: Tensor
    ends: Tensor
    value: Tensor

    def __init__(self, shape: Shape, games: list[Rules]) -> None:
        super().__init__()
        if len(shape.hidden) < 2:
            raise ValueError(f"hidden: found {len(shape.hidden)} widths, expected two for graph")
        (table, width), rules = shape.hidden[:2], games[0]
        self.base = Mlp(replace(shape, hidden=[table, table], history=False), games)
        self.layout = observation_layout(rules, shape.observe_as)
        self.tiles, pips = rules.tiles, rules.set + 1
        low, high = (torch.from_numpy(half[: self.tiles].astype("int64")) for half in (LOW, HIGH))
        joins = torch.zeros(pips, pips, dtype=torch.int64)
        joins[low, high] = joins[high, low] = torch.arange(self.tiles)
        self.register_buffer("joins", joins.flatten(), persistent=False)  # the tile of two pips
        self.register_buffer("ends", low + high, persistent=False)
        self.register_buffer("value", torch.arange(pips) / pips, persistent=False)
        places = self.layout["hand_size"][1][0]
        relations = 2 + places + (places + 1 if shape.belief else 0)
        self.history = shape.history
        counts = len(CHANNELS) * places if shape.history else 0
        self.pip = nn.Linear(2 * relations + 2 * places + 2 + counts, width)
        rounds = len(shape.hidden) - 1
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.message = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in self.own)
        self.context = nn.ModuleList(nn.Linear(table, width, bias=False) for _ in self.own)
        self.new_end, self.other_end = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.score = small_head(width, 1)
        self.width = table + 2 * width

    def forward(self, inputs: Inputs) -> Read:
        """The logits; the table with the mean pip and the sum of both ends; all pips."""
        logits, table, _ = self.base(inputs)
        vector = self.base.scale(inputs.observation)
        part = {name: vector[:, where].view(-1, *n) for name, (where, n) in self.layout.items()}
        ends = torch.stack([part["left"], part["right"]], 1)  # [B, 2, N]
        pips, joined = self._of_pips(part, inputs)
        x = F.relu(self.pip(pips))
        # One product passes the messages of both kinds: what a pip sends stands in two rows.
        joined = joined.permute(0, 2, 3, 1).flatten(2)  # [B, N, 2 N]
        for own, message, context in zip(self.own, self.message, self.context, strict=True):
            (weight,) = message.parameters()  # [W, 2 W]
            both = weight.unflatten(1, (2, -1)).transpose(0, 1).flatten(0, 1)  # [2 W, W]
            sent = F.linear(x, both).view(len(x), joined.shape[2], -1)  # [B, 2 N, W]
            x = F.relu(torch.baddbmm(own(x) + context(table)[:, None], joined, sent))
        at_ends = ends @ x  # [B, 2, W]
        new, other = self.new_end(x)[:, None], self.other_end(at_ends.flip(1))[:, :, None]
        scores = self.score(F.relu(new + other)).squeeze(-1)  # [B, 2, N]
        scores = scores * ends.sum(2, keepdim=True)  # nothing where the table is empty
        becomes = (self.ends - ends.argmax(2, keepdim=True)).clamp(0, scores.shape[2] - 1)
        plays = scores.gather(2, becomes).transpose(1, 2).flatten(1)  # [B, 2 T]
        logits = logits + F.pad(plays, (0, logits.shape[1] - plays.shape[1]))
        return Read(logits, torch.cat([table, x.mean(1), at_ends.sum(1)], 1), x)

    def _of_pips(self, part: dict[str, Tensor], inputs: Inputs) -> tuple[Tensor, Tensor]:
        """What is known of each pip, [B, N, .]; by own and by unseen tiles joined, [B, 2, N, N]."""
        hand, placed = part["hand"][:, None], part["placed"]
        relations = [hand, 1 - hand - placed.sum(1, keepdim=True), placed]
        if inputs.belief is not None:
            relations.append(inputs.belief.to(hand.device).to(hand.dtype))
        of_tiles = torch.cat(relations, 1)  # [B, R, T]
        joined = of_tiles[..., self.joins].unflatten(-1, (len(self.value), -1))
        found = [joined.sum(3), joined.diagonal(0, 2, 3), part["lacks"]]
        left, right = part["left"][:, None], part["right"][:, None]
        found += [
            left + right,
            left * part["left_by"][..., None] + right * part["right_by"][..., None],
        ]
        found.append(self.value.expand(len(hand), 1, -1))
        if self.history:
            assert inputs.history is not None
            counts = pip_history(inputs.history.cpu().numpy(), placed.shape[1], len(self.value))
            found.append(torch.from_numpy(counts).to(hand.device).to(hand.dtype))
        return torch.cat(found, 1).transpose(1, 2), joined[:, :2]


def tiles_held(state: Tensor, places: int, rules: Rules) -> Tensor:
    """The tiles of each pip that the others hold, a double once, float32 [B, N, P].

    `state`, uint8 [B, S], is that of P places: columns are the hands of places 1 to P - 1, then
    the boneyard.
    """
    tiles = rules.tiles
    hands = state[:, tiles : (places + 1) * tiles].unflatten(1, (places, tiles)) > 0
    pips = torch.arange(rules.set + 1)[:, None]
    low, high = (torch.from_numpy(half[:tiles].astype("int64")) for half in (LOW, HIGH))
    has = ((low == pips) | (high == pips)).float().to(state.device)  # [N, T]
    return has @ hands.float().transpose(1, 2)
