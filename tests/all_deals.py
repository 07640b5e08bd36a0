"""Every deal that agrees with what a seat knows, by the reference and by trying all."""

from collections.abc import Iterator
from itertools import combinations, permutations

from oracle import Deal, Oracle
from oracle_rules import Tile, text_of, texts_of, whole_set


def agreeing_deals(oracle: Oracle, seat: int) -> Iterator[Deal]:
    """Every deal (hands, boneyard in order) of this round that agrees with what a seat knows.

    A seat knows its dealt hand, the tiles that it drew, who leads, and every event; after the
    round also how it ended, who won and the pips. The actual deal is one of those given. All
    hands of the unseen tiles are tried; tiles are drawn one at a time, each after the events up
    to it were legal. For small sets only: the order of the tiles never drawn counts too.
    """
    hands, _ = oracle.dealt
    own = [tile for who, tile in oracle.drawn if who == seat]
    unseen = set(whole_set(oracle.rules["set"])) - hands[seat] - set(own)
    others = [s for s in range(oracle.rules["seats"]) if s != seat]
    for dealt in _hands_of(unseen, others, oracle.rules["hand_size"]):
        rest = unseen - {tile for hand in dealt.values() for tile in hand}
        texts = [texts_of((dealt | {seat: hands[seat]})[s]) for s in range(len(hands))]
        for boneyard in _boneyards(oracle, seat, texts, [], rest | set(own)):
            yield texts, [text_of(tile) for tile in boneyard]


def _hands_of(tiles: set[Tile], seats: list[int], size: int) -> Iterator[dict[int, set[Tile]]]:
    """Every way to deal `size` of the tiles to each of the seats."""
    if not seats:
        yield {}
        return
    for hand in combinations(sorted(tiles), size):
        for rest in _hands_of(tiles - set(hand), seats[1:], size):
            yield {seats[0]: set(hand)} | rest


def _boneyards(
    oracle: Oracle, seat: int, hands: list[list[str]], front: list[Tile], rest: set[Tile]
) -> Iterator[list[Tile]]:
    """Every order of the boneyard that begins with `front` and agrees with the events."""
    draws = [i for i, (_, move) in enumerate(oracle.events) if move == "draw"]
    done = len(front) == len(draws)
    until = len(oracle.events) if done else draws[len(front)]
    if not agrees(oracle, hands, front + sorted(rest), until):
        return
    if done:  # the tiles behind were never drawn: their order shows in nothing
        yield from (front + list(tail) for tail in permutations(sorted(rest)))
        return
    who, drawn = oracle.drawn[len(front)]
    own = {tile for s, tile in oracle.drawn if s == seat}
    for tile in [drawn] if who == seat else sorted(rest - own):
        yield from _boneyards(oracle, seat, hands, [*front, tile], rest - {tile})


def agrees(oracle: Oracle, hands: list[list[str]], boneyard: list[Tile], until: int) -> bool:
    """Whether the first `until` events can be played from a deal, and the same follows."""
    twin = oracle.redeal(hands, [text_of(tile) for tile in boneyard])
    if twin.lead_seat != oracle.lead_seat:
        return False
    for seat, move in oracle.events[:until]:
        if twin.seat != seat or move not in twin.legal():
            return False
        twin.play(move)
    if until < len(oracle.events):
        return True
    return (twin.end, twin.winner, twin.pips) == (oracle.end, oracle.winner, oracle.pips)
