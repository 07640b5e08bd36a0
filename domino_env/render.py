"""A domino table to look at: what there is to see (`Table`), its text, and how its line lies.

Nothing here knows the engine: whoever shows a game fills a `Table` with what the viewer may know.
A hidden tile is not in it at all, so no drawing can give it away. The picture and the window are in
`picture.py`, which needs pygame.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

Tile = tuple[int, int]
Point = tuple[float, float]
WIDTH = 80  # columns of the text
BACK = "▒▒▒"


@dataclass(frozen=True, kw_only=True)
class Table:
    """What one viewer sees of one game. P seats; a tile is a pair of pips, each 0 to 9.

    Raises `ValueError` where the fields do not fit together.
    """

    hands: Sequence[Sequence[Tile | None]]  # [P] hands; None: a tile that the viewer may not see
    line: Sequence[Tile] = ()  # from the left end to the right end, halves as they lie
    placed_by: Sequence[int] = ()  # seat of each tile of the line; may be left out
    lead: int = 0  # index in the line of the first tile of the round
    newest: Sequence[int] = ()  # indices in the line of the tiles put down in the last move
    boneyard: int = 0  # tiles in it
    drawable: int | None = None  # how many of them may still be drawn; None: nothing is said of it
    scores: Sequence[int] | None = None  # [sides], in the order of each side's first seat
    target: int | None = None
    teams: bool = False  # seats 0 and 2 play seats 1 and 3
    round: int = 0  # counted from 0 (RULES.md 12)
    to_move: int | None = None  # seat; None once the round is over
    leader: int | None = None  # seat that began the round
    viewer: int = 0  # seat at the bottom of the picture
    last_move: str = ""
    result: str = ""  # one line, once the round or the match is over
    names: Sequence[str] = ()  # [P]; player_0, player_1, ... if left out

    def __post_init__(self) -> None:
        seats, tiles = len(self.hands), len(self.line)
        if not 2 <= seats <= 4:
            raise ValueError(f"hands: found {seats}, expected one for each of 2 to 4 seats")
        if self.teams and seats != 4:
            raise ValueError(f"teams: found {seats} seats, expected 4")
        for name, found, sizes in (
            ("placed_by", self.placed_by, (0, tiles)),
            ("names", self.names, (0, seats)),
            ("scores", self.scores or (), (0, len(self.sides))),
        ):
            if len(found) not in sizes:
                raise ValueError(f"{name}: found {len(found)} entries, expected {sizes[1]}")
        for name, found, size in (
            ("lead", [self.lead], max(tiles, 1)),
            ("newest", self.newest, tiles),
            ("placed_by", self.placed_by, seats),
            ("viewer", [self.viewer], seats),
            ("to_move", [self.to_move or 0], seats),
            ("leader", [self.leader or 0], seats),
        ):
            if any(not 0 <= index < size for index in found):
                raise ValueError(f"{name}: found {list(found)}, expected 0 to {size - 1}")
        self._check_tiles()

    def _check_tiles(self) -> None:
        shown = [tile for hand in self.hands for tile in hand if tile]
        for tile in [*self.line, *shown]:
            if not all(0 <= half <= 9 for half in tile):
                raise ValueError(f"tile: found {tile}, expected two halves from 0 to 9")
        for index in range(1, len(self.line)):
            if self.line[index - 1][1] != self.line[index][0]:
                found = f"{self.line[index - 1]} before {self.line[index]}"
                raise ValueError(f"line[{index}]: found {found}, expected equal halves to meet")

    @property
    def sides(self) -> list[tuple[int, ...]]:
        """Seats of each side, in the order of `scores` (RULES.md 2)."""
        return [(0, 2), (1, 3)] if self.teams else [(seat,) for seat in range(len(self.hands))]

    def name(self, seat: int) -> str:
        """The name given to a seat, or `player_0` and so on."""
        return self.names[seat] if self.names else f"player_{seat}"

    def side_name(self, side: int) -> str:
        """The names of a side's seats, `player_0 + player_2`."""
        return " + ".join(self.name(seat) for seat in self.sides[side])

    def seen_by(self, seat: int) -> "Table":
        """The table with `seat` as the viewer and every other hand face down."""
        hands = [
            hand if other == seat else [None] * len(hand) for other, hand in enumerate(self.hands)
        ]
        return replace(self, hands=hands, viewer=seat)


def counted(number: int) -> str:
    """The number of tiles in words: `1 tile`, `2 tiles`."""
    return f"{number} tile" if number == 1 else f"{number} tiles"


def table_text(table: Table) -> str:
    """The table as text for `render_mode="ansi"`: lines of at most 80 columns, no colours.

    Doubles stand crosswise in the line, which wraps like text; under each tile is the seat that
    put it there, with a star at the lead. Hidden tiles are shown as backs.
    """
    rows = [_cut(_headline(table), WIDTH), *_line_rows(table)]
    indent = max(len(_label(table, seat)) for seat in range(len(table.hands))) + 2
    for seat, hand in enumerate(table.hands):
        tiles = " ".join(BACK if tile is None else f"{max(tile)}-{min(tile)}" for tile in hand)
        text = f"{counted(len(hand))}: {tiles}" if hand else counted(0)
        rows += _labelled(_label(table, seat), text, indent)
    stock = counted(table.boneyard)
    if table.drawable is not None and table.drawable < table.boneyard:
        stock += f", {table.drawable} may still be drawn"
    rows += _labelled("  boneyard", stock, indent)
    if table.last_move:
        rows += _labelled("  last move", table.last_move, indent)
    if table.result:
        rows += _labelled("  result", table.result, indent)
    return "\n".join(row.rstrip() for row in rows)


def _headline(table: Table) -> str:
    text = f"Round {table.round}"
    if table.target is not None:
        text += f", target {table.target}"
    if table.scores:
        scores = (f"{table.side_name(side)} {score}" for side, score in enumerate(table.scores))
        text += ": " + ", ".join(scores)
    return text


def _label(table: Table, seat: int) -> str:
    mark, note = ">" if seat == table.to_move else " ", ", leader" if seat == table.leader else ""
    return f"{mark} {seat} {_cut(table.name(seat), 16)}{note}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _labelled(label: str, text: str, indent: int) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - indent)
    return [f"{label if n == 0 else '':<{indent}}{line}" for n, line in enumerate(lines)]


def _line_rows(table: Table) -> list[str]:
    if not table.line:
        return ["", "  nothing on the table yet", ""]
    columns = [_columns(table, index) for index in range(len(table.line))]
    rows, strip = [""], [columns[0]]
    for column in columns[1:]:
        if sum(len(drawn[0]) for drawn in (*strip, column)) > WIDTH:
            rows += _joined(strip)
            strip = []
        strip.append(column)
    ends = f"left end {table.line[0][0]}, right end {table.line[-1][1]}"
    return [*rows, *_joined(strip), ends, ""]


def _joined(strip: Sequence[Sequence[str]]) -> list[str]:
    rows = ["".join(column[row] for column in strip) for row in range(6)]
    blank = {0, 4, 5}  # outer rows that only doubles and seats fill
    return [text for row, text in enumerate(rows) if text.strip() or row not in blank]


def _columns(table: Table, index: int) -> list[str]:
    a, b = table.line[index]
    under = str(table.placed_by[index]) if table.placed_by else " "
    under += "*" if index == table.lead else " "
    if a == b:
        return ["┌─┐", f"│{a}│", "├─┤", f"│{b}│", "└─┘", f" {under}"]
    return ["     ", "┌─┬─┐", f"│{a}│{b}│", "└─┴─┘", "     ", f"  {under} "]


class Place(NamedTuple):
    """Where one tile lies, in units of half a tile from the middle of the lead; y grows down."""

    x: float
    y: float
    upright: bool
    halves: Tile  # left or upper half first


class _Step(NamedTuple):
    """A tile of an arm: its middle, and the direction in which the arm runs through it."""

    x: float
    y: float
    dx: int
    dy: int
    tile: Tile  # the half nearer to the lead first

    def mirrored(self) -> "_Step":
        return _Step(-self.x, -self.y, -self.dx, -self.dy, self.tile)

    def place(self) -> Place:
        double = self.tile[0] == self.tile[1]
        halves = self.tile if self.dx + self.dy > 0 else (self.tile[1], self.tile[0])
        return Place(self.x, self.y, (self.dy == 0) == double, halves)


def line_places(
    line: Sequence[Tile], lead: int, reach: float
) -> tuple[list[Place], tuple[Point, Point]]:
    """Where the tiles of a line lie, and the middles of the next half at its left and right end.

    Both arms begin at the lead, run to the right and to the left and turn `reach` units (at least
    3) from its middle: the right arm down, the left arm up. Nothing lies further than
    `reach + 1.5` to either side.
    """
    double = line[lead][0] == line[lead][1]
    following = (0, 1)  # stands for the tile to come at either end; no double, so it lies along
    outward = [(b, a) for a, b in reversed(line[:lead])]
    left = [step.mirrored() for step in _arm([*outward, following], double, reach)]
    right = _arm([*line[lead + 1 :], following], double, reach)
    steps = [*left[-2::-1], _Step(0, 0, 1, 0, line[lead]), *right[:-1]]
    a, b = left[-1], right[-1]
    ends = (a.x - a.dx / 2, a.y - a.dy / 2), (b.x - b.dx / 2, b.y - b.dy / 2)
    return [step.place() for step in steps], ends


def _arm(tiles: Sequence[Tile], crosswise: bool, reach: float) -> list[_Step]:
    """The right arm: rows that run to the right and to the left in turn, each below the last.

    At the end of a row one tile stands upright and the next row begins under it, a double there
    lying across it. Doubles never turn, which always works as no two of them meet.
    """
    x, y, step, corner = 0.5 if crosswise else 1.0, 0.0, 1, False
    steps: list[_Step] = []
    for tile in tiles:
        double = tile[0] == tile[1]
        if double and corner:
            steps.append(_Step(x + step / 2, y, 0, 1, tile))
            x += 1.5 * step
        elif double or step * x + 2 <= reach:
            length = step * (1 if double else 2)
            steps.append(_Step(x + length / 2, y, step, 0, tile))
            x += length
        else:
            column, top = x - step / 2, y + (1 if crosswise else 0.5)
            steps.append(_Step(column, top + 1, 0, 1, tile))
            step = -step
            x, y = column - step / 2, top + 2.5
        crosswise, corner = double, steps[-1].dy == 1
    return steps


def line_extent(places: Sequence[Place], ends: Sequence[Point]) -> tuple[float, float]:
    """The top and the bottom of a line, its ends included."""
    halves = [(place.y, 1 if place.upright else 0.5) for place in places]
    halves += [(y, 0.5) for _, y in ends]
    return min(y - half for y, half in halves), max(y + half for y, half in halves)
