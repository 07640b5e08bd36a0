"""The text and the picture of a table; the drawn examples were made by hand."""

import importlib
import itertools
import os
import random
import re
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from domino_env.render import BACK, Table, line_extent, line_places, table_text

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
pygame = pytest.importorskip("pygame")
from domino_env.picture import Window, table_image  # noqa: E402
from domino_env.sprites import GOLD, PIPS, SEATS  # noqa: E402

SMALL = Table(
    hands=[[(6, 5), (0, 3)], [(1, 1), (2, 0), (4, 1)]],
    line=[(1, 6), (6, 6), (6, 4)],
    placed_by=[0, 1, 0],
    lead=1,
    newest=[2],
    boneyard=20,
    drawable=18,
    scores=[13, 45],
    target=101,
    round=2,
    to_move=1,
    leader=1,
    last_move="player_0 plays 6-4 R",
)


def long_line(highest, tiles, seed=0):
    """A line of so many tiles of the double-`highest` set, grown at random at both ends."""
    rng, line = random.Random(seed), []
    while len(line) < tiles:
        left = {(a, b) for b in range(highest + 1) for a in range(b + 1)}
        end = rng.randrange(highest + 1)
        line, turned = [], False
        while len(line) < tiles:
            fits = [tile for tile in sorted(left) if end in tile]
            if not fits:
                if turned:
                    break  # both ends are dead: begin again
                line, turned = [(b, a) for a, b in reversed(line)], True
                end = line[-1][1]
                continue
            # Doubles as soon as they fit, as they may have no second chance.
            a, b = tile = rng.choice([t for t in fits if t[0] == t[1]] or fits)
            left.remove(tile)
            line.append((a, b) if a == end else (b, a))
            end = line[-1][1]
    return line


def colour_mask(image, colour):
    return (image == np.array(colour[:3], np.uint8)).all(axis=2)


def blobs(mask):
    """The number of connected areas of a mask."""
    left, count = {(int(y), int(x)) for y, x in np.argwhere(mask)}, 0
    while left:
        count += 1
        front = [left.pop()]
        while front:
            y, x = front.pop()
            near = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= near
            front += near
    return count


# Text


def test_the_text_of_a_small_table_is_as_drawn_by_hand():
    assert table_text(SMALL.seen_by(0)) == "\n".join(
        [
            "Round 2, target 101: player_0 13, player_1 45",
            "",
            "     ┌─┐",
            "┌─┬─┐│6│┌─┬─┐",
            "│1│6│├─┤│6│4│",
            "└─┴─┘│6│└─┴─┘",
            "     └─┘",
            "  0   1*  0",
            "left end 1, right end 4",
            "",
            "  0 player_0          2 tiles: 6-5 3-0",
            "> 1 player_1, leader  3 tiles: ▒▒▒ ▒▒▒ ▒▒▒",
            "  boneyard            20 tiles, 18 may still be drawn",
            "  last move           player_0 plays 6-4 R",
        ]
    )


def test_an_empty_table_and_a_result_are_said_in_words():
    table = Table(hands=[[], [(5, 5)]], boneyard=1, round=0, result="player_0 goes out")
    assert table_text(table) == "\n".join(
        [
            "Round 0",
            "",
            "  nothing on the table yet",
            "",
            "  0 player_0  0 tiles",
            "  1 player_1  1 tile: 5-5",
            "  boneyard    1 tile",
            "  result      player_0 goes out",
        ]
    )


def test_a_line_without_doubles_is_three_rows_and_the_seats():
    table = Table(hands=[[], []], line=[(1, 6), (6, 4)], placed_by=[1, 0])
    assert table_text(table).splitlines()[1:7] == [
        "",
        "┌─┬─┐┌─┬─┐",
        "│1│6││6│4│",
        "└─┴─┘└─┴─┘",
        "  1*   0",
        "left end 1, right end 4",
    ]


def test_partners_share_their_score():
    table = Table(hands=[[]] * 4, teams=True, scores=[30, 7], names=["a", "b", "c", "d"])
    assert table_text(table).startswith("Round 0: a + c 30, b + d 7\n")


def test_hidden_hands_show_no_tile_in_text():
    text = table_text(replace(SMALL.seen_by(1), line=[], placed_by=[], newest=[], lead=0))
    assert text.count(BACK) == 2
    assert not any(shown in text for shown in ("6-5", "5-6", "3-0", "0-3"))
    assert all(shown in text for shown in ("1-1", "2-0", "4-1"))


def test_the_longest_line_of_double_nine_wraps_within_80_columns():
    # Each number is on nine tiles besides its double, an odd number, and only the two ends of a
    # line may be odd: four tiles at least stay out of the 55.
    line = long_line(9, 51)
    hidden = [None] * 40
    text = table_text(Table(hands=[hidden, hidden], line=line, placed_by=[0] * 51, round=0))
    assert max(map(len, text.splitlines())) <= 80
    position = 0
    for tile in (f"│{a}│{b}│" for a, b in line if a != b):
        position = text.index(tile, position) + len(tile)
    assert text.count("├─┤") == sum(a == b for a, b in line)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hands": [[]]}, "hands: found 1, expected one for each of 2 to 4 seats"),
        ({"hands": [[(6, 10)], []]}, "tile: found (6, 10), expected two halves from 0 to 9"),
        ({"line": [(1, 6), (4, 6), (6, 4)]}, "line[1]: found (1, 6) before (4, 6), expected equal"),
        ({"placed_by": [0]}, "placed_by: found 1 entries, expected 3"),
        ({"placed_by": [0, 1, 2]}, "placed_by: found [0, 1, 2], expected 0 to 1"),
        ({"lead": 3}, "lead: found [3], expected 0 to 2"),
        ({"scores": [1, 2, 3]}, "scores: found 3 entries, expected 2"),
        ({"teams": True}, "teams: found 2 seats, expected 4"),
        ({"to_move": 2}, "to_move: found [2], expected 0 to 1"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(fields, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        replace(SMALL, **fields)


# The line on the table


def test_doubles_lie_crosswise_and_halves_as_they_lie():
    places, ends = line_places([(1, 6), (6, 6), (6, 4)], 1, 8)
    assert places == [(-1.5, 0, False, (1, 6)), (0, 0, True, (6, 6)), (1.5, 0, False, (6, 4))]
    assert ends == ((-3, 0), (3, 0))


def test_the_right_arm_turns_down_and_the_left_arm_up():
    line = [(3, 1), (1, 0), (0, 2), (2, 4), (4, 5), (5, 6)]
    places, ends = line_places(line, 2, 3)
    assert places[2:] == [
        (0, 0, False, (0, 2)),
        (2, 0, False, (2, 4)),
        (2.5, 1.5, True, (4, 5)),  # upright under the outer half of 2-4
        (2, 3, False, (6, 5)),  # back to the left under it: 6 is its left half
    ]
    assert places[:2] == [(-2.5, -1.5, True, (3, 1)), (-2, 0, False, (1, 0))]
    assert ends == ((-2.5, -3), (0.5, 3))


def test_a_double_at_a_corner_lies_across_the_tile_that_turned():
    places, ends = line_places([(0, 2), (2, 4), (4, 5), (5, 5), (5, 1)], 0, 3)
    assert places[3:] == [(2.5, 3, False, (5, 5)), (0.5, 3, False, (1, 5))]
    assert ends[1] == (-1, 3)


def rectangle(place):
    wide, tall = (0.5, 1) if place.upright else (1, 0.5)
    return place.x - wide, place.y - tall, place.x + wide, place.y + tall


def joints(place):
    """The number and middle of each half, and of a double its own middle too."""
    dx, dy = (0, 0.5) if place.upright else (0.5, 0)
    a, b = place.halves
    both = [(a, place.x - dx, place.y - dy), (b, place.x + dx, place.y + dy)]
    return [*both, (a, place.x, place.y)] if a == b else both


@pytest.mark.parametrize("seed", range(12))
def test_tiles_never_overlap_and_equal_halves_meet(seed):
    rng = random.Random(seed)
    highest = rng.choice([6, 9])
    line = long_line(highest, rng.randint(2, 28 if highest == 6 else 51), seed)
    reach = rng.uniform(3, 18)
    places, ends = line_places(line, rng.randrange(len(line)), reach)
    boxes = [rectangle(place) for place in places]
    boxes += [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in ends]
    for (l1, t1, r1, b1), (l2, t2, r2, b2) in itertools.combinations(boxes, 2):
        assert min(r1, r2) - max(l1, l2) <= 1e-9 or min(b1, b2) - max(t1, t2) <= 1e-9
    assert all(-reach - 1.5 <= left and right <= reach + 1.5 for left, _, right, _ in boxes)
    for n, (one, two) in enumerate(itertools.pairwise(places)):
        near = [
            abs(x1 - x2) + abs(y1 - y2)
            for (pips, x1, y1), (other, x2, y2) in itertools.product(joints(one), joints(two))
            if pips == other == line[n][1]
        ]
        assert min(near) == pytest.approx(1)
    assert line_extent(places, ends) == (min(b[1] for b in boxes), max(b[3] for b in boxes))


# The picture


@pytest.mark.parametrize("size", [(960, 720), (480, 360), (1280, 720), (600, 900)])
def test_a_picture_is_height_by_width_by_three_bytes_and_always_the_same(size):
    image = table_image(SMALL, size)
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.uint8
    assert image.flags.writeable
    pygame.quit()  # as other environments do when they close
    np.testing.assert_array_equal(table_image(SMALL, size), image)


def test_too_small_a_picture_is_refused():
    with pytest.raises(ValueError, match=r"size: found \(479, 360\), expected at least"):
        table_image(SMALL, (479, 360))


@pytest.mark.parametrize("pips", range(10))
def test_a_half_shows_as_many_pips_as_its_number_in_its_own_colour(pips):
    other = (pips + 3) % 10
    table = Table(hands=[[], []], line=[(pips, other)], round=0)
    image = table_image(table)[160:520]  # the table without panels and names
    if pips:
        assert blobs(colour_mask(image, PIPS[pips])) == pips
    if other:
        assert blobs(colour_mask(image, PIPS[other])) == other


def test_hidden_tiles_swapped_change_nothing_and_show_no_pips():
    hands = [[(6, 5)], [(1, 1), (2, 0)], [(9, 9), (4, 3)], [(8, 7)]]
    table = Table(hands=hands, to_move=2, round=0)
    swapped = replace(table, hands=[hands[0], hands[2], hands[1], [(3, 0)]])
    seen, other = table.seen_by(0), swapped.seen_by(0)
    np.testing.assert_array_equal(table_image(seen), table_image(other))
    assert (table_image(table) != table_image(swapped)).any()
    pips = [blobs(colour_mask(table_image(seen), PIPS[number])) for number in range(1, 10)]
    assert pips == [0, 0, 0, 0, 5, 6, 0, 0, 0]


def test_seats_sit_clockwise_from_the_viewer_at_the_bottom():
    quarter = {0: "bottom", 1: "left", 2: "top", 3: "right"}
    for viewer, seat in itertools.product(range(4), repeat=2):
        table = Table(hands=[[None]] * 4, to_move=seat, viewer=viewer, round=0)
        y, x = np.argwhere(colour_mask(table_image(table), GOLD)).mean(axis=0)
        side = "top" if y < 60 else "bottom" if y > 660 else "left" if x < 480 else "right"
        assert side == quarter[(seat - viewer) % 4]


def test_a_placed_tile_has_the_colour_of_its_seat_and_the_newest_a_golden_rim():
    table = replace(SMALL, to_move=None, placed_by=[0, 0, 0], newest=[])
    middle = np.s_[160:520, 200:760]
    before = table_image(table)[middle]
    assert not colour_mask(before, SEATS[1]).any()
    assert not colour_mask(before, GOLD).any()
    after = table_image(replace(table, placed_by=[0, 0, 1], newest=[2]))[middle]
    assert colour_mask(after, SEATS[1]).any()
    assert np.argwhere(colour_mask(after, GOLD))[:, 1].min() > 280  # right of the middle


@pytest.mark.parametrize("lead", [0, 25, 50])
@pytest.mark.parametrize(("seats", "sides"), [(2, 24), (3, 142), (4, 142)])
def test_the_longest_line_stays_clear_of_hands_and_panels(seats, sides, lead):
    bare = Table(hands=[[None] * 12] * seats, last_move="player_0 passes", round=0)
    line = replace(bare, line=long_line(9, 51), lead=lead)
    changed = np.argwhere((table_image(line) != table_image(bare)).any(axis=2))
    (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0)
    # The hand begins at 576 and the message at 537; for three seats the message is at the top.
    low = 575 if seats == 3 else 536
    assert top >= 145
    assert left >= sides
    assert bottom <= low
    assert right <= 960 - sides


@pytest.mark.parametrize("count", [1, 14, 30])
def test_a_large_hand_stays_between_the_panels(count):
    table = Table(hands=[[(0, 0)] * count] * 4, round=0)
    none = Table(hands=[[]] * 4, round=0)
    changed = (table_image(table) != table_image(none)).any(axis=2)
    assert not changed[24:140, 24:224].any()  # scores
    assert not changed[24:140, 736:936].any()  # boneyard
    assert not changed[205:530, 140:820].any()  # the line's place
    assert not changed[:24].any()
    assert not changed[:, :20].any()


def test_a_frame_takes_less_than_50_milliseconds():
    table = replace(SMALL, line=long_line(9, 51), placed_by=[0] * 51)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        table_image(table)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05


# The window


def test_a_window_shows_pictures_of_any_size_and_closes_twice():
    window = Window(fps=1000)
    window.close()
    for size in ((960, 720), (480, 360)):
        image = table_image(SMALL, size)
        window.show(image)
        screen = pygame.display.get_surface()
        np.testing.assert_array_equal(pygame.surfarray.array3d(screen).swapaxes(0, 1), image)
    window.close()
    window.close()
    assert not pygame.display.get_init()
    window.show(image)
    assert pygame.display.get_init()
    pygame.quit()
    window.show(image)
    window.close()


def test_a_window_closed_by_a_person_stays_closed():
    window, image = Window(fps=1000), table_image(SMALL)
    window.show(image)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(image)
    assert window.closed
    window.show(image)
    assert not pygame.display.get_init()


def test_a_window_keeps_to_its_frames_a_second():
    window, image = Window(fps=20), table_image(SMALL)
    window.show(image)
    start = time.perf_counter()
    for _ in range(4):
        window.show(image)
    window.close()
    assert time.perf_counter() - start >= 0.19


def test_without_pygame_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    for name in ("domino_env.picture", "domino_env.sprites"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install 'domino-env\[render\]'"):
        importlib.import_module("domino_env.picture")
