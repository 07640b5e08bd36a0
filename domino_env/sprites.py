"""Small images that make up the picture of a table: felt, tiles, boxes and words.

Everything is drawn at four times its size, smoothed down and kept. All lengths are pixels.
"""

import os
from functools import lru_cache
from itertools import takewhile

import numpy as np

from domino_env.render import Point, Tile

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
try:
    import pygame
except ImportError as error:
    raise ImportError(
        "pygame: not installed, expected for pictures and windows: pip install 'domino-env[render]'"
    ) from error

Colour = tuple[int, ...]
SIZE = (960, 720)  # of the whole picture: width, height; other lengths scale with it
SHARP = 4  # images are drawn at this multiple of their size

FELT, FELT_EDGE = (44, 122, 86), (14, 58, 42)
WOOD, WOOD_EDGE = (104, 66, 38), (58, 34, 18)
IVORY, IVORY_EDGE, INK = (252, 246, 230), (168, 150, 112), (70, 60, 50)
BACK, BACK_EDGE, BACK_MARK = (58, 70, 106), (24, 30, 52), (104, 120, 166)
TEXT, FAINT, GOLD, GOLD_INK = (244, 242, 230), (182, 204, 190), (255, 208, 90), (48, 34, 0)
SHADE = (6, 30, 21, 150)
SEATS = ((60, 140, 255), (255, 116, 36), (200, 90, 235), (20, 190, 165))
PIPS = (  # of a half with so many pips, as on common double-nine sets
    *((0, 0, 0), (30, 145, 215), (25, 140, 60), (205, 35, 45), (120, 70, 35)),
    *((25, 45, 140), (226, 150, 0), (215, 65, 150), (0, 125, 130), (90, 50, 160)),
)
SPOTS = {  # pips of a half as (across, along) the tile, in steps from the middle
    0: [],
    2: [(-1, -1), (1, 1)],
    4: [(-1, -1), (-1, 1), (1, -1), (1, 1)],
    6: [(x, y) for x in (-1, 1) for y in (-1, 0, 1)],
    8: [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0)],
}
SPOTS |= {pips + 1: [*SPOTS[pips], (0, 0)] for pips in (0, 2, 4, 6, 8)}


@lru_cache(maxsize=8)
def felt(size: tuple[int, int]) -> pygame.Surface:
    """The empty table: green felt, lighter in the middle, in a wooden frame."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    far = np.hypot((x / width - 0.5) * 1.25, (y / height - 0.5) * 1.25)[..., None].clip(0, 1)
    grain = np.random.default_rng(0).normal(0, 2.2, (height, width, 1))
    colours = np.array(FELT) * (1 - far) + np.array(FELT_EDGE) * far + grain
    frame = max(4, round(min(width / SIZE[0], height / SIZE[1]) * 12))
    edge = np.minimum.reduce([x, y, width - 1 - x, height - 1 - y])[..., None]
    shine = 1 - np.abs(2 * edge / frame - 1).clip(0, 1)
    wood = np.array(WOOD_EDGE) + (np.array(WOOD) - np.array(WOOD_EDGE)) * shine + grain
    shadow = 1 - 0.4 * (1 - (edge - frame) / frame).clip(0, 1)
    pixels = np.where(edge < frame, wood, colours * shadow).clip(0, 255).astype(np.uint8)
    return pygame.image.frombytes(pixels.tobytes(), size, "RGB")


def _smooth(surface: pygame.Surface) -> pygame.Surface:
    width, height = surface.get_size()
    return pygame.transform.smoothscale(surface, (width // SHARP, height // SHARP))


def _blank(width: int, height: int, colour: Colour) -> pygame.Surface:
    """A surface at SHARP times its size: nothing yet, in the colour that its rims will fade to."""
    surface = pygame.Surface((width * SHARP, height * SHARP), pygame.SRCALPHA)
    surface.fill((*colour[:3], 0))
    return surface


@lru_cache(maxsize=1024)
def tile_image(
    halves: Tile | None, upright: bool, unit: int, bar: Colour = INK, rim: Colour | None = None
) -> pygame.Surface:
    """A tile of 1 x 2 units (pixels) with pips, or its back; a rim marks it."""
    face, edge = (IVORY, IVORY_EDGE) if halves else (BACK, BACK_EDGE)
    surface = _blank(*((unit, 2 * unit) if upright else (2 * unit, unit)), rim or edge)
    side, gap = unit * SHARP, unit * SHARP // 32 + 1
    body = surface.get_rect().inflate(-2 * gap, -2 * gap)
    radius, thick = side // 7, side // 14
    pygame.draw.rect(surface, rim or edge, body, border_radius=radius)
    if rim:
        wide = max(3 * thick // 2, 4 * SHARP)  # both sides together
        body.inflate_ip(-wide, -wide)
        pygame.draw.rect(surface, edge, body, border_radius=radius)
    body.inflate_ip(-thick // 2, -thick // 2)
    body.height -= thick // 2  # the rest is the front of the tile, in its own shade
    pygame.draw.rect(surface, face, body, border_radius=radius)
    if halves is None:
        body.inflate_ip(-side // 5, -side // 5)
        pygame.draw.rect(surface, BACK_MARK, body, max(1, side // 28), border_radius=radius // 2)
        pygame.draw.circle(surface, BACK_MARK, body.center, side // 9)
        return _smooth(surface)
    _draw_bar(surface, body.center, upright, side, bar)
    for sign, pips in zip((-1, 1), halves, strict=True):
        x, y = body.center
        away = sign * side * 0.485
        _draw_pips(surface, (x, y + away) if upright else (x + away, y), upright, side, pips)
    return _smooth(surface)


def _draw_bar(
    surface: pygame.Surface, middle: tuple[int, int], upright: bool, side: int, colour: Colour
) -> None:
    long, thick = int(side * 0.68), max(SHARP, side // 14)
    bar = pygame.Rect(0, 0, *((long, thick) if upright else (thick, long)))
    bar.center = middle
    pygame.draw.rect(surface, colour, bar, border_radius=thick // 2)
    pygame.draw.circle(surface, colour, middle, side * 0.09)
    pygame.draw.circle(surface, IVORY_EDGE, middle, side * 0.045)


def _draw_pips(surface: pygame.Surface, centre: Point, upright: bool, side: int, pips: int) -> None:
    colour = PIPS[pips]
    rim = tuple(part * 6 // 10 for part in colour)
    for spot in SPOTS[pips]:
        across, along = spot if upright else spot[::-1]
        x, y = centre[0] + across * side * 0.25, centre[1] + along * side * 0.25
        pygame.draw.circle(surface, rim, (x, y), side * 0.11)
        pygame.draw.circle(surface, colour, (x, y + side * 0.018), side * 0.092)


@lru_cache(maxsize=256)
def shadow(upright: bool, unit: int) -> pygame.Surface:
    """The soft shadow of a tile, to be drawn under it."""
    width, height = (unit, 2 * unit) if upright else (2 * unit, unit)
    soft = max(1, unit // 10)
    surface = _blank(width + 4 * soft, height + 4 * soft, (0, 0, 0))
    body = surface.get_rect().inflate(-4 * soft * SHARP, -4 * soft * SHARP)
    for n in range(soft, -1, -1):
        grown = body.inflate(2 * n * SHARP, 2 * n * SHARP)
        alpha = 110 * (soft + 1 - n) // (soft + 1)
        pygame.draw.rect(surface, (0, 0, 0, alpha), grown, border_radius=unit * SHARP // 5)
    return _smooth(surface)


@lru_cache(maxsize=256)
def box_image(width: int, height: int, fill: Colour) -> pygame.Surface:
    """A box with round corners for words to stand on."""
    surface = _blank(width, height, fill)
    radius = min(height * SHARP // 2, 12 * SHARP)
    pygame.draw.rect(surface, fill, surface.get_rect(), border_radius=radius)
    return _smooth(surface)


@lru_cache(maxsize=64)
def dot(width: int, colour: Colour) -> pygame.Surface:
    """A disc, the mark of a seat."""
    surface = _blank(width, width, colour)
    pygame.draw.circle(surface, colour, surface.get_rect().center, width * SHARP // 2)
    return _smooth(surface)


@lru_cache(maxsize=64)
def badge(letter: str, unit: int) -> pygame.Surface:
    """The mark of an end of the line."""
    disc = dot(max(6, int(unit * 0.72)), (12, 48, 34)).copy()
    text = label(letter, max(6, int(unit * 0.62)), FAINT, unit)
    width, height = disc.get_size()
    disc.blit(text, ((width - text.get_width()) / 2, (height - text.get_height()) / 2 + unit // 24))
    return disc


@lru_cache(maxsize=512)
def label(text: str, size: int, colour: Colour, room: int) -> pygame.Surface:
    """One line of text, cut to `room` pixels. Fonts are not kept: `pygame.quit` breaks them."""
    pygame.font.init()
    font = pygame.font.Font(None, size)
    cuts = (text[:n].rstrip() + "…" for n in range(len(text) - 1, 0, -1))
    too_long = sum(1 for _ in takewhile(lambda s: font.size(s)[0] > room, (text, *cuts)))
    shown = text if too_long == 0 else text[: len(text) - too_long].rstrip() + "…"
    return font.render(shown, True, colour)
