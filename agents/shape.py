"""What a network is built for, what it is shown and what an actor makes of that.

Letters of all networks: `B` positions, `P` places, `N` pips, `T` tiles, `A` actions,
`D` observation length, `H` rows of history, `W` width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta
from torch import Tensor

Width = Annotated[int, Meta(ge=1, le=2**16)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]


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
