"""The network `attention`: a token for each tile, one for the rest of the table, and the events.

With `history` each event has a token too; the logits of a tile come from that tile's token.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.mlp import Events, Scale, small_head
from agents.shape import Inputs, Read, Shape
from domino_env.observation import history_length, layout_size, observation_layout
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW

HEADS = 4  # of a block, at most; each at least 16 wide


class Attention(nn.Module):
    """A token for each tile, one for the table, and one for each event."""

    low: Tensor
    high: Tensor

    def __init__(self, shape: Shape, games: list[Rules]) -> None:
        super().__init__()
        if not shape.hidden:
            raise ValueError("hidden: found no layers, expected one or more for attention")
        rules = games[0]
        self.layout = observation_layout(rules, shape.observe_as)
        self.tiles, self.width = rules.tiles, shape.hidden[0]
        self.scale = Scale(self.layout)
        for name, pips in (("low", LOW), ("high", HIGH)):
            numbers = torch.from_numpy(pips[: rules.tiles].astype("int64"))
            self.register_buffer(name, numbers, persistent=False)
        places = self.layout["hand_size"][1][0]
        of_tile = 2 + places + 4 + 2 * places + (places + 1 if shape.belief else 0)
        self.tile = nn.Linear(of_tile, self.width)
        self.tile_name = nn.Parameter(0.02 * torch.randn(rules.tiles, self.width))
        self.table = nn.Linear(layout_size(self.layout), self.width)
        self.events: Events | None = None
        if shape.history:
            self.events = Events(max(map(history_length, games)), rules.tiles, self.width)
        self.blocks = nn.ModuleList(Block(self.width) for _ in shape.hidden)
        self.norm = nn.LayerNorm(self.width)
        self.tile_head = small_head(self.width, 2)
        self.table_head = small_head(self.width, 3)

    def forward(self, inputs: Inputs) -> Read:
        """The logits, and the token of the table."""
        vector = self.scale(inputs.observation)
        tokens = [self.table(vector)[:, None], self.tile(self._of_tiles(vector, inputs.belief))]
        tokens[1] = tokens[1] + self.tile_name
        keep = None
        if self.events is not None:
            assert inputs.history is not None
            tokens.append(self.events(inputs.history))
            happened = inputs.history[:, : self.events.rows, 0].to(vector.device) > 0
            happened = F.pad(happened, (0, self.events.rows - happened.shape[1]))
            keep = F.pad(happened, (1 + self.tiles, 0), value=True)[:, None, None]
        x = torch.cat(tokens, 1)
        for block in self.blocks:
            x = block(x, keep)
        x = self.norm(x[:, : 1 + self.tiles])
        logits = torch.cat([self.tile_head(x[:, 1:]).flatten(1), self.table_head(x[:, 0])], 1)
        return Read(logits, x[:, 0])

    def _of_tiles(self, vector: Tensor, belief: Tensor | None) -> Tensor:
        """What is known of each tile and of its two pips, [B, T, .]."""
        B = len(vector)
        part = {name: vector[:, where] for name, (where, _) in self.layout.items()}
        lacks = part["lacks"].view(B, *self.layout["lacks"][1])
        found = [part["hand"][:, None], part["not_dealt"][:, None]]
        found.append(part["placed"].view(B, -1, self.tiles))
        for pips in (self.low, self.high):
            ends = [part["left"][:, None, pips], part["right"][:, None, pips]]
            found += [*ends, lacks[..., pips]]
        if belief is not None:
            found.append(belief.to(vector.device).to(vector.dtype))
        return torch.cat(found, 1).transpose(1, 2)


class Block(nn.Module):
    """Attention and two linear layers, each added to what came in, normalised first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = next(
            h for h in range(min(HEADS, max(1, width // 16)), 0, -1) if width % h == 0
        )
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """[B, tokens, W]; `keep` bool [B, 1, 1, tokens] says which are looked at, None for all."""
        B, N, W = x.shape
        mixed = self.mix(self.before(x)).view(B, N, 3, self.heads, W // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=keep)
        x = x + self.out(found.transpose(1, 2).reshape(B, N, W))
        return x + self.narrow(F.relu(self.wide(self.between(x))))
