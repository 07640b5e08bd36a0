"""The picture of a table and the window that shows it, drawn with pygame.

`table_image` needs no display. A frame is a few hundred copies of small images kept ready
(`sprites.py`). The layout of the line is in units of half a tile (`render.line_places`).
"""

from collections.abc import Sequence

import numpy as np

from domino_env.render import Place, Point, Table, Tile, counted, line_extent, line_places
from domino_env.sprites import (
    FAINT,
    GOLD,
    GOLD_INK,
    INK,
    SEATS,
    SHADE,
    SIZE,
    TEXT,
    Colour,
    badge,
    box_image,
    dot,
    felt,
    label,
    pygame,
    shadow,
    tile_image,
)

SMALLEST = (480, 360)
SIDE = 108  # width of the hands at the left and right, in pixels at SIZE
GAP = 1.12  # from tile to tile in a hand, in widths of a tile


def table_image(table: Table, size: tuple[int, int] = SIZE) -> np.ndarray:
    """The table as a picture: uint8 [H, W, 3], the same for the same table and size.

    The viewer's seat is at the bottom, the others follow clockwise. The bar of a placed tile has
    the colour of the seat that put it there; the lead has a white rim, the newest tiles a golden
    one; L and R are the left and the right end. Raises `ValueError` for a size below 480 x 360.
    """
    if size[0] < SMALLEST[0] or size[1] < SMALLEST[1]:
        raise ValueError(f"size: found {size}, expected at least {SMALLEST}")
    canvas = felt(size).copy()
    painter = _Painter(canvas, table)
    painter.score_panel()
    painter.boneyard_panel()
    for side in painter.seat_at:
        painter.hand(side)
    painter.line()
    painter.message()
    pixels = np.frombuffer(pygame.image.tobytes(canvas, "RGB"), np.uint8)
    return pixels.reshape(size[1], size[0], 3).copy()


def _hand_unit(count: int, along: float, across: float, most: int) -> tuple[int, int]:
    """The largest half tile at which a hand fits into its box, and the number of its rows."""
    sizes = []
    for rows in range(1, 5):
        in_row = -(-count // rows)
        fits = min(along / (in_row * GAP), across / (2 + (rows - 1) * (GAP + 1)))
        sizes.append((min(most, int(fits)), -rows))
    unit, rows = max(sizes)
    return max(unit, 2), -rows


class _Painter:
    """Draws the parts of one table onto one surface; lengths are for `SIZE` and scale with it."""

    def __init__(self, canvas: pygame.Surface, table: Table):
        self.canvas, self.table = canvas, table
        self.width, self.height = canvas.get_size()
        self.scale = min(self.width / SIZE[0], self.height / SIZE[1])
        self.margin = self.px(24)
        self.corner = (self.px(200), self.px(116))  # size of the panels in the upper corners
        seats = len(table.hands)
        sides = {2: "bt", 3: "blr", 4: "bltr"}[seats]  # bottom, left, top, right: clockwise
        self.seat_at = {sides[(seat - table.viewer) % seats]: seat for seat in range(seats)}

    def px(self, length: float) -> int:
        return max(1, round(length * self.scale))

    def put(self, surface: pygame.Surface, x: float, y: float) -> None:
        """Draws a surface with its middle at a pixel."""
        width, height = surface.get_size()
        self.canvas.blit(surface, (round(x - width / 2), round(y - height / 2)))

    def words(self, text: str, size: int, colour: Colour, x: float, y: float, room: float) -> None:
        """Draws a line of text from x on, its middle at y, cut to the room."""
        drawn = label(text, self.px(size), colour, int(room))
        self.put(drawn, x + drawn.get_width() / 2, y)

    def tile(self, halves: Tile | None, upright: bool, unit: int, x: float, y: float) -> None:
        self.put(shadow(upright, unit), x + unit / 16, y + unit / 8)
        self.put(tile_image(halves, upright, unit), x, y)

    def score_panel(self) -> None:
        """Round, target, sides and their scores, in the corner at the upper left."""
        table, (width, height) = self.table, self.corner
        left, y = self.margin + self.px(14), self.margin + self.px(18)
        right = self.margin + width - self.px(14)
        self.put(box_image(width, height, SHADE), self.margin + width / 2, self.margin + height / 2)
        title = f"Round {table.round}"
        title += "" if table.target is None else f" · target {table.target}"
        self.words(title, 22, FAINT, left, y, right - left)
        y, row = y + self.px(3), self.px(min(28, 82 / len(table.hands)))
        for side, seats in enumerate(table.sides):
            score = label(str(table.scores[side]) if table.scores else "", self.px(25), TEXT, width)
            self.put(score, right - score.get_width() / 2, y + row * (len(seats) + 1) / 2)
            room = right - score.get_width() - left - self.px(26)
            for seat in seats:
                y += row
                self.put(dot(self.px(11), SEATS[seat]), left + self.px(6), y)
                self.words(table.name(seat), 22, TEXT, left + self.px(18), y, room)

    def boneyard_panel(self) -> None:
        """A stack of backs and the number of tiles, in the corner at the upper right."""
        table, (width, height) = self.table, self.corner
        x = self.width - self.margin - width
        self.put(box_image(width, height, SHADE), x + width / 2, self.margin + height / 2)
        self.words("Boneyard", 22, FAINT, x + self.px(14), self.margin + self.px(18), width)
        y = self.margin + self.px(70)
        for n in range(min(table.boneyard, 5)):
            self.tile(None, True, self.px(33), x + self.px(34 + 9 * n), y)
        number = label(str(table.boneyard), self.px(52), TEXT, width)
        if table.drawable is not None and table.drawable < table.boneyard:
            note = label(f"{table.drawable} to draw", self.px(20), FAINT, width)
            self.put(note, x + self.px(144), y + self.px(24))
            y -= self.px(8)
        self.put(number, x + (self.px(144) if table.boneyard else width / 2), y)

    def hand_box(self, side: str) -> pygame.Rect:
        """Where the tiles of a hand may lie; the plate with the name is beside it."""
        margin, plate, (width, height) = self.margin, self.px(34), self.corner
        if side == "b":
            top = self.height - margin - plate - self.px(86)
            return pygame.Rect(margin, top, self.width - 2 * margin, self.px(86))
        if side == "t":
            x = margin + width + self.px(12)
            return pygame.Rect(x, margin + plate, self.width - 2 * x, height - plate)
        top = margin + height + self.px(70)
        x = margin if side == "l" else self.width - margin - self.px(SIDE)
        return pygame.Rect(x, top, self.px(SIDE), self.line_box().bottom - top)

    def line_box(self) -> pygame.Rect:
        """Where the line may lie: what the hands, the panels and the message leave."""
        x = self.margin + (self.px(SIDE + 10) if "l" in self.seat_at else 0)
        top = self.margin + self.corner[1] + self.px(10)
        bottom = self.hand_box("b").top - self.px(46 if "t" in self.seat_at else 10)
        return pygame.Rect(x, top, self.width - 2 * x, bottom - top)

    def hand(self, side: str) -> None:
        """One hand, face up where its tiles are known, in rows (columns at the left and right)."""
        tiles, upright = self.table.hands[self.seat_at[side]], side in "bt"
        box = self.hand_box(side)
        self.plate(side, box)
        if not tiles:
            return
        along, across = box.size if upright else (box.height, box.width)
        unit, rows = _hand_unit(len(tiles), along, across, self.px(40 if side == "b" else 34))
        in_row = -(-len(tiles) // rows)
        for n, tile in enumerate(tiles):
            row, column = divmod(n, in_row)
            a = (column - (in_row - 1) / 2) * unit * GAP
            b = (row - (rows - 1) / 2) * unit * (GAP + 1)
            x, y = (a, b) if upright else (b, a)
            halves = None if tile is None else (max(tile), min(tile))
            self.tile(halves, upright, unit, box.centerx + x, box.centery + y)

    def plate(self, side: str, box: pygame.Rect) -> None:
        """The name of a seat and the size of its hand; golden while the seat is to move."""
        seat, beside, indent = self.seat_at[side], side in "lr", self.px(18)
        active, count = seat == self.table.to_move, counted(len(self.table.hands[seat]))
        notes = count + (" · leader" if seat == self.table.leader else "")
        room = self.px(SIDE - 12 if beside else 240)
        name = label(
            self.table.name(seat), self.px(22), GOLD_INK if active else TEXT, room - indent
        )
        size = self.px(18 if beside else 20)
        note = label(notes, size, GOLD_INK if active else FAINT, room)
        wide = indent + name.get_width() + (0 if beside else self.px(12) + note.get_width())
        width, height = (SIDE, 48) if beside else (wide / self.scale + 36, 28)
        above = box.top - self.px(36 if beside else 20)
        x, y = box.centerx, box.bottom + self.px(22) if side == "b" else above
        self.put(box_image(self.px(width), self.px(height), GOLD if active else SHADE), x, y)
        left, apart = x - wide / 2, self.px(10) if beside else 0
        self.put(dot(self.px(12), SEATS[seat]), left + indent / 3, y - apart)
        self.put(name, left + indent + name.get_width() / 2, y - apart)
        self.put(note, x if beside else left + wide - note.get_width() / 2, y + apart)

    def line(self) -> None:
        """The line, as large as it fits, and a mark at each end."""
        table, box = self.table, self.line_box()
        if not table.line:
            return
        unit, places, ends = self.fitted(box)
        top, bottom = line_extent(places, ends)
        x, y = box.centerx, box.centery - unit * (top + bottom) / 2
        for place in places:
            under_x, under_y = place.x + 1 / 16, place.y + 1 / 8
            self.put(shadow(place.upright, unit), x + under_x * unit, y + under_y * unit)
        for index, place in enumerate(places):
            bar = SEATS[table.placed_by[index]] if table.placed_by else INK
            rim = GOLD if index in table.newest else TEXT if index == table.lead else None
            sprite = tile_image(place.halves, place.upright, unit, bar, rim)
            self.put(sprite, x + place.x * unit, y + place.y * unit)
        for letter, (end_x, end_y) in zip("LR", ends, strict=True):
            self.put(badge(letter, unit), x + end_x * unit, y + end_y * unit)

    def fitted(self, box: pygame.Rect) -> tuple[int, list[Place], Sequence[Point]]:
        """The largest half tile at which the line fits into the box, and how the line then lies."""
        unit = self.px(44)
        while True:
            reach = max(3, box.width / 2 / unit - 1.6)
            places, ends = line_places(self.table.line, self.table.lead, reach)
            top, bottom = line_extent(places, ends)
            if (bottom - top) * unit <= box.height or unit <= 4:
                return unit, places, ends
            unit = max(4, int(unit * 0.94))

    def message(self) -> None:
        """The result or the last move: above the viewer's hand, or where no seat is opposite."""
        words = self.table.result or self.table.last_move
        if not words:
            return
        ink, fill = (GOLD_INK, GOLD) if self.table.result else (TEXT, SHADE)
        aside = 3 * self.margin + (0 if "t" in self.seat_at else 2 * self.corner[0])
        text = label(words, self.px(22), ink, self.width - aside - self.px(32))
        low, high = self.hand_box("b").top - self.px(24), self.margin + self.corner[1] / 2
        x, y = self.width / 2, low if "t" in self.seat_at else high
        self.put(box_image(text.get_width() + self.px(32), self.px(30), fill), x, y)
        self.put(text, x, y)


class Window:
    """A window for `render_mode="human"`: it opens at the first picture shown.

    A person may close it, after which `closed` is true and `show` does nothing.
    """

    def __init__(self, title: str = "domino", fps: float = 2.0):
        self.title, self.fps, self.closed = title, fps, False
        self._screen: pygame.Surface | None = None
        self._clock = pygame.time.Clock()

    def show(self, image: np.ndarray) -> None:
        """Shows a picture, uint8 [H, W, 3], at least 1 / fps seconds after the one before."""
        if self.closed:
            return
        height, width = image.shape[:2]
        screen = self._opened((width, height))
        picture = pygame.image.frombytes(image.tobytes(), (width, height), "RGB")
        self._clock.tick(self.fps)
        screen.blit(picture, (0, 0))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.closed = True
            self.close()

    def _opened(self, size: tuple[int, int]) -> pygame.Surface:
        screen = self._screen
        # Others in the same process may have quit pygame or made a window of their own.
        ours = screen is not None and pygame.display.get_surface() is screen
        if screen is None or not ours or screen.get_size() != size:
            pygame.display.init()
            pygame.display.set_caption(self.title)
            screen = self._screen = pygame.display.set_mode(size)
        return screen

    def close(self) -> None:
        """Closes the window if it is open; a later `show` opens it again."""
        if self._screen is not None:
            self._screen = None
            pygame.display.quit()
