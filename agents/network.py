"""Networks: what a seat may know to logits of its actions, and a value.

`mlp` takes everything as one vector. `attention` has a token for each tile, one for the rest of
the table and, with `history`, one for each event; its logits of a tile come from that tile's token.
`graph` adds to an `mlp` a vector for each pip, with the same weights for all pips and both ends;
with `history` it sees what was done to each pip (`agents/pip_history.py`).

Letters: `B` positions, `P` places, `N` pips, `T` tiles, `A` actions, `D` observation length,
`H` rows of history, `W` width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from msgspec import Meta
from torch import Tensor, nn

from agents.pip_history import CHANNELS, pip_history
from domino_env.observation import (
    Layout,
    history_length,
    layout_size,
    observation_layout,
    state_layout,
)
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW

Width = Annotated[int, Meta(ge=1, le=2**16)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]

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
EVENT_WIDTH = 16  # of an event in an `mlp`
HEADS = 4  # of `attention`, at most; each at least 16 wide


@dataclass(frozen=True)
class Shape:
    """What must be known of a network to build it."""

    rules: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=64)]
    """`Rules.to_dict()` of the games that it is trained for, all of one set"""
    hidden: Annotated[list[Width], Meta(max_length=64)]
    """widths of the hidden layers; of `attention` the first for all, one block for each; of `graph`
    the first for both layers of its `mlp`, the second for its pips, one round for each but one"""
    network: Literal["mlp", "attention", "graph"] = "mlp"
    history: bool = False
    """it is shown the history too"""
    belief: bool = False
    """it is shown the exact chance of each place of each tile too"""
    privileged: bool = False
    """its value is that of the state, with all hands open"""
    hands: bool = False
    """it guesses how many tiles of each pip each place holds, of `graph`"""
    observe_as: Annotated[int, Meta(ge=2, le=4)] | None = None
    temperature: NotNegative = 0.0
    """of the moves that the agent draws; 0 takes the likeliest"""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a batch that the network is shown, as named in `Inputs`."""
        switched = {"history": self.history, "belief": self.belief}
        switched["state"] = self.privileged or self.hands
        return ("observation", *(name for name, on in switched.items() if on))


class Inputs(NamedTuple):
    """What a network is shown of B positions; parts that its shape does not have are None."""

    observation: Tensor  # uint8 [B, D]
    history: Tensor | None = None  # uint8 [B, H, 4]
    belief: Tensor | None = None  # float32 [B, P + 1, T]
    state: Tensor | None = None  # uint8 [B, S], for the value alone

    def rows(self, rows: Any) -> Inputs:
        """Some of the positions: what a tensor takes as its first index."""
        more = (None if part is None else part[rows] for part in self[1:])
        return Inputs(self.observation[rows], *more)


class Read(NamedTuple):
    """What an actor makes of B positions."""

    logits: Tensor  # [B, A]
    hidden: Tensor  # [B, W], for a value
    pips: Tensor | None = None  # [B, N, W], of `graph`


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


ACTORS: dict[str, type[Mlp | Attention | Graph]] = {
    "mlp": Mlp,
    "attention": Attention,
    "graph": Graph,
}
