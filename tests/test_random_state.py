"""The game's own random state: its generator, the shuffle, and that it moves in the deal alone."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from support import Table, random_rules

from domino_env import engine
from domino_env.rules import Rules
from domino_env.state import random_word

WORD = 0xFFFFFFFF


def splitmix64(seed: int) -> Iterator[int]:
    """Steele, Lea and Flood's generator, written again after Vigna's splitmix64.c."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


class Xoshiro:
    """xoshiro128++ 1.0, written again after Blackman and Vigna's xoshiro128plusplus.c."""

    def __init__(self, state: list[int]) -> None:
        self.s = list(state)

    def word(self) -> int:
        def rotate(x: int, k: int) -> int:
            return (x << k | x >> 32 - k) & WORD

        s = self.s
        result = (rotate((s[0] + s[3]) & WORD, 7) + s[0]) & WORD
        t = s[1] << 9 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 11)
        return result

    def below(self, n: int) -> int:
        """The high part of word * n, as the deal uses it."""
        return self.word() * n >> 32


def state(g: Any) -> list[int]:
    return [int(word) for word in g.random]


def seeded(seed: int) -> Xoshiro:
    """The generator of the game of a seed: two words of splitmix64, low halves first."""
    stream = splitmix64(seed)
    words = [next(stream), next(stream)]
    return Xoshiro([half for word in words for half in (word & WORD, word >> 32)])


def test_the_generator_gives_the_words_of_the_reference() -> None:
    # The reference C program from state 1, 2, 3, 4; the same list is in the tests of rand_xoshiro.
    published = [641, 1573767, 3222811527, 3517856514, 836907274]
    published += [4247214768, 3867114732, 1355841295, 495546011, 621204420]
    g: Any = engine.new_games(Rules(), 0)[0]
    g.random[:] = [1, 2, 3, 4]
    assert [random_word(g) for _ in range(10)] == published


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31, 2**63, 2**64 - 1])
def test_the_generator_agrees_with_another_writing_of_it_for_long(seed: int) -> None:
    g: Any = engine.new_games(Rules(), seed)[0]
    other = seeded(seed)
    assert [random_word(g) for _ in range(2000)] == [other.word() for _ in range(2000)]
    assert state(g) == other.s


def test_a_seed_becomes_the_first_two_words_of_splitmix64() -> None:
    # From splitmix64.c: seed 1234567, and seed 0.
    games = engine.new_games(Rules(), np.array([1234567, 0], np.uint64))
    words = games["random"].astype("<u4").copy().view("<u8")
    assert words[0].tolist() == [6457827717110365317, 3203168211198807973]
    assert words[1].tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_the_deal_of_a_seed_is_that_of_another_writing() -> None:
    for seed, rules in enumerate([Rules(), Rules(set=9, seats=3), Rules(seats=4, lead="random")]):
        games = engine.new_games(rules, seed)
        engine.reset(games[0])
        generator, order = seeded(seed), list(range(rules.tiles))
        for k in range(1, rules.tiles):
            j = generator.below(k + 1)
            order[k], order[j] = order[j], order[k]
        if rules.lead == "random":
            assert int(games[0].leader) == generator.below(rules.seats)
        assert list(games[0].boneyard[: rules.stock]) == order[: rules.stock]
        hands = [{order.pop() for _ in range(rules.hand_size)} for _ in range(rules.seats)]
        assert [int(bits) for bits in games[0].hands[: rules.seats]] == [
            sum(1 << t for t in hand) for hand in hands
        ]
        assert state(games[0]) == generator.s


# ---------------------------------------------------------------- where it moves


@pytest.mark.parametrize("seed", range(10))
def test_the_random_state_moves_in_the_deal_alone_and_by_one_shuffle(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        table = Table(random_rules(rng), rng.getrandbits(64))
        words = table.rules.tiles - 1 + (table.rules.lead == "random")
        while table.oracle.over is None:
            before = Xoshiro(state(table.g))
            if table.oracle.end is None:
                table.play(rng.choice(table.oracle.legal()))
            else:
                table.next_round()
                for _ in range(words):
                    before.word()
            assert state(table.g) == before.s
        before = Xoshiro(state(table.g))
        engine.reset(table.g)
        for _ in range(words):
            before.word()
        assert state(table.g) == before.s


# ---------------------------------------------------------------- uniform


def order_dealt(g: Any, rules: Rules) -> tuple[int, ...]:
    """The deal of hands of one tile as one order of the whole set."""
    held = [int(bits).bit_length() - 1 for bits in g.hands[: rules.seats]]
    return (*held, *(int(t) for t in g.boneyard[: rules.stock]))


def chi_square(counts: Counter[Any], cells: int) -> float:
    """How many standard deviations chi-square lies from its mean; cells that are equally likely."""
    mean = counts.total() / cells
    chi = sum((n - mean) ** 2 for n in counts.values()) / mean + mean * (cells - len(counts))
    return (chi - (cells - 1)) / sqrt(2 * (cells - 1))


def test_all_deals_of_consecutive_seeds_are_equally_likely() -> None:
    rules = Rules(set=2, seats=3, hand_size=1, lead="random")
    games = engine.new_games(rules, np.arange(50_000))
    counts: Counter[Any] = Counter()
    leaders: Counter[Any] = Counter()
    for i in range(len(games)):
        engine.reset(games[i])
        counts[order_dealt(games[i], rules)] += 1
        leaders[int(games[i].leader)] += 1
    assert set(counts) == set(permutations(range(6)))
    assert abs(chi_square(counts, 720)) < 4
    assert abs(chi_square(leaders, 3)) < 4


def test_all_deals_of_one_stream_are_equally_likely() -> None:
    rules = Rules(set=2, seats=2, hand_size=1)
    games = engine.new_games(rules, 1)
    g = games[0]
    counts: Counter[Any] = Counter()
    pairs: Counter[Any] = Counter()
    last = 0
    for _ in range(50_000):
        engine.reset(g)
        order = order_dealt(g, rules)
        counts[order] += 1
        pairs[last, order[0]] += 1
        last = order[0]
    assert abs(chi_square(counts, 720)) < 4
    assert abs(chi_square(pairs, 36)) < 4, "a deal says nothing about the next one"


def test_neighbouring_seeds_have_nothing_to_do_with_each_other() -> None:
    games = engine.new_games(Rules(set=6), np.arange(20_001))
    words = games["random"].astype(np.uint32)
    differing = np.bitwise_count(words[1:] ^ words[:-1]).sum(axis=1)
    mean = float(differing.mean())
    assert abs(mean - 64) < 4 * sqrt(32 / 20_000)  # of 128 bits each differs with probability 1/2
    assert len(np.unique(words, axis=0)) == len(words)
    first = np.empty(len(games), np.int64)
    for i in range(len(games)):
        engine.reset(games[i])
        first[i] = int(games[i].hands[0])
    same = np.bitwise_count(first[1:] & first[:-1])  # of 7 tiles 7/28 come again
    variance = 7 * 0.25 * 0.75 * 21 / 27
    assert abs(float(same.mean()) - 1.75) < 4 * sqrt(variance / 20_000)
