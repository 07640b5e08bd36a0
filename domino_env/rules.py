"""`Rules`: every game as one set of fields, with presets and validation (RULES.md 2 to 10).

    Rules.preset("cabra", seats=3)                      a preset with overrides
    Rules.from_dict({"preset": "cabra", "seats": 3})    the same, from a record or a YAML section
    Rules.preset("cabra").replace(seats=4, teams=True)  changed, derived fields derived anew

A field is *given* when its user named it. Fields that are not given have the preset's value, and
`hand_size`, `target` and `episode` then follow from the others.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np

from domino_env.tiles import set_name, tile_count

DEFAULT_PRESET = "sin_robo"

# The values of the fields that are text; a value's place here is its code (`Rules.codes`).
CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "draw": ("none", "one", "until_playable"),
        "lead": ("highest_double", "lowest_double", "seat", "random"),
        "lead_tile": ("forced", "free"),
        "next_lead": ("same", "winner", "rotate"),
        "blank_double_when": ("always", "alone"),
        "score": ("none", "winner", "loser"),
        "opening_mode": ("lost", "pending"),
        "block_score": ("net", "gross"),
        "team_block": ("total", "lowest_hand"),
        "episode": ("round", "match"),
        "reward": ("win", "points"),
    }
)

# Smallest and largest value of the fields that are integers. The largest hand depends on the deal.
RANGES: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        "set": (1, 9),
        "seats": (2, 4),
        "hand_size": (1, None),
        "reserve": (0, 55),
        "blank_double": (0, 1000),
        "target": (1, 1_000_000),
        "opening": (0, 1_000_000),
        "max_rounds": (1, 1_000_000),
    }
)

# What a field is where neither the preset nor the user says otherwise; None is derived.
DEFAULTS: Mapping[str, int | bool | str | None] = MappingProxyType(
    {
        "set": 6,
        "seats": 2,
        "teams": False,
        "hand_size": None,
        "draw": "none",
        "reserve": 0,
        "double_pair": False,
        "lead": "highest_double",
        "lead_tile": "forced",
        "next_lead": "same",
        "blank_double": 0,
        "blank_double_when": "always",
        "score": "none",
        "target": None,
        "opening": 0,
        "opening_mode": "lost",
        "block_score": "net",
        "team_block": "total",
        "episode": None,
        "reward": "win",
        "max_rounds": 1000,
    }
)
FIELDS: tuple[str, ...] = tuple(DEFAULTS)
DERIVED = ("hand_size", "target", "episode")

# RULES.md 10: what a preset changes in DEFAULTS.
PRESETS: Mapping[str, Mapping[str, int | bool | str]] = MappingProxyType(
    {
        "cabra": MappingProxyType(
            {
                "draw": "until_playable",
                "double_pair": True,
                "blank_double": 25,
                "score": "loser",
                "opening": 13,
            }
        ),
        "sin_robo": MappingProxyType({}),
        "estandar": MappingProxyType({"draw": "until_playable"}),
        "sin_robo_series": MappingProxyType({"score": "winner"}),
        "estandar_series": MappingProxyType({"draw": "until_playable", "score": "winner"}),
    }
)
ALIASES: Mapping[str, str] = MappingProxyType(
    {"kozel": "cabra", "goat": "cabra", "block": "sin_robo", "draw": "estandar"}
)


class RulesError(ValueError):
    """Rules, or a deal, that cannot be played; one line: the name, what was found, what fits."""


class _Preset:
    """`Rules.preset(name, **overrides)` makes rules; on an instance it is its preset's name."""

    @overload
    def __get__(self, rules: None, owner: type["Rules"]) -> "Callable[..., Rules]": ...
    @overload
    def __get__(self, rules: "Rules", owner: type["Rules"]) -> str: ...
    def __get__(self, rules: "Rules | None", owner: type["Rules"]) -> "Callable[..., Rules] | str":
        return owner._from_preset if rules is None else rules._preset


@dataclass(frozen=True, init=False, repr=False)
class Rules:
    """The rules of one game, all fields resolved; `Rules()` is `sin_robo` for two seats.

    Equality and hash are those of the resolved fields: what was given and the preset's name do
    not count, so `Rules.preset("kozel") == Rules.preset("cabra")`. Every way to make rules raises
    `RulesError` on an unknown name, a value of the wrong type or range, or fields that do not go
    together. Copies and pickles keep everything.
    """

    set: int  # the double-N set, 1 to 9 (RULES.md 1)
    seats: int  # 2 to 4 (2)
    teams: bool  # seats 0 and 2 against 1 and 3 (2)
    hand_size: int  # tiles dealt to each seat (3)
    draw: str  # none, one or until_playable (5)
    reserve: int  # last tiles of the boneyard that are never drawn (5)
    double_pair: bool  # both doubles may go down in one turn (5)
    lead: str  # highest_double, lowest_double, seat or random (4)
    lead_tile: str  # forced or free (4)
    next_lead: str  # same, winner or rotate (4)
    blank_double: int  # points of 0-0 (7)
    blank_double_when: str  # always or alone (7)
    score: str  # none, winner or loser (8)
    target: int | None  # points that end a match, None without score (8)
    opening: int  # points that open a record (8)
    opening_mode: str  # lost or pending (8)
    block_score: str  # net or gross (8)
    team_block: str  # total or lowest_hand (7)
    episode: str  # round or match (9)
    reward: str  # win or points (9)
    max_rounds: int  # a match is truncated after that many rounds (8)
    _preset: str = field(compare=False)
    _given: tuple[tuple[str, int | bool | str], ...] = field(compare=False)

    preset = _Preset()

    def __init__(self, preset: str = DEFAULT_PRESET, **fields: object) -> None:
        name = _main_name(preset)
        given = _checked(fields)
        values = _resolve({**DEFAULTS, **PRESETS[name], **given})
        values.update(_preset=name, _given=tuple(sorted(given.items())))
        for key, value in values.items():
            object.__setattr__(self, key, value)  # frozen for everyone else

    @classmethod
    def _from_preset(cls, name: str, /, **overrides: object) -> Self:
        """Rules of a preset, by its main or other name, with fields overridden (RULES.md 10)."""
        _check_names(overrides)
        return cls(name, **overrides)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], /, **overrides: object) -> Self:
        """Rules of a mapping of fields with a `preset` (`sin_robo` if it has none).

        This is how the `rules` of a record and of a YAML file are read, as strictly as any other.
        An override wins over the same field of the mapping.
        """
        if not isinstance(mapping, Mapping):
            raise RulesError(f"rules: {_show(mapping)} is no mapping, expected a preset and fields")
        fields = dict(mapping)
        name = fields.pop("preset", DEFAULT_PRESET)
        _check_names(fields)
        _check_names(overrides)
        return cls(name, **{**fields, **overrides})

    @classmethod
    def of(cls, rules: "str | Mapping[str, Any] | Rules", /, **overrides: object) -> "Rules":
        """Rules of a preset's name, a mapping or rules, with fields overridden."""
        if isinstance(rules, Rules):
            return rules.replace(**overrides)
        if isinstance(rules, Mapping):
            return cls.from_dict(rules, **overrides)
        if isinstance(rules, str):
            return cls._from_preset(rules, **overrides)
        raise RulesError(f"rules: {_show(rules)} is not what was expected: a name, dict or Rules")

    def replace(self, **fields: object) -> Self:
        """The same rules with fields changed; derived fields that were not given follow anew.

        None for `hand_size`, `target` or `episode` makes it derived again.
        """
        return type(self).from_dict(self.to_dict(), **fields)

    def to_dict(self) -> dict[str, int | bool | str]:
        """`preset` (main name), then the given fields in sorted order; `from_dict` reads it."""
        return {"preset": self._preset, **dict(self._given)}

    @property
    def given(self) -> dict[str, int | bool | str]:
        """The fields that were given, in sorted order, as a new dict."""
        return dict(self._given)

    @property
    def tiles(self) -> int:
        """T: tiles in the set."""
        return tile_count(self.set)

    @property
    def stock(self) -> int:
        """Tiles in the boneyard at the deal."""
        return self.tiles - self.seats * self.hand_size

    @property
    def sides(self) -> int:
        """Sides of the game: 2 with teams, else one a seat (RULES.md 2)."""
        return 2 if self.teams else self.seats

    @property
    def actions(self) -> int:
        """A: actions, 2T + 3 (a tile at either end, draw, pass, both doubles)."""
        return 2 * self.tiles + 3

    def codes(self) -> dict[str, int]:
        """Every field as an integer: a choice's place in `CHOICES`, bool 0/1, no target 0."""
        return {name: _code(name, getattr(self, name)) for name in FIELDS}

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self._given)
        return f"Rules.preset({self._preset!r}{given})"


def _code(name: str, value: Any) -> int:
    return CHOICES[name].index(value) if name in CHOICES else int(value or 0)


# Names and values, each by itself.


def _main_name(name: object) -> str:
    if not isinstance(name, str):
        raise RulesError(f"preset: {_show(name)} is no text, expected {_either(PRESETS)}")
    if name not in PRESETS and name not in ALIASES:
        raise RulesError(_unknown("preset", name, (*PRESETS, *ALIASES)))
    return ALIASES.get(name) or str(name)


def _check_names(fields: Mapping[Any, object]) -> None:
    for name in fields:
        if name == "preset":
            raise RulesError(
                f"preset: {_show(fields[name])} was found among the overrides, expected fields"
            )
        if name not in DEFAULTS:
            raise RulesError(_unknown("rules", name, FIELDS, what="field "))


def _checked(fields: Mapping[str, object]) -> dict[str, int | bool | str]:
    """The given fields as plain Python values; a derived field given as None is not given."""
    _check_names(fields)
    return {
        name: _checked_value(name, value)
        for name, value in fields.items()
        if not (value is None and name in DERIVED)
    }


def _checked_value(name: str, value: object) -> int | bool | str:
    if name in CHOICES:
        return _checked_choice(name, value)
    if name in RANGES:
        return _checked_integer(name, value)
    if not isinstance(value, bool | np.bool_):
        raise RulesError(f"{name}: {_show(value)} is no switch, expected true or false")
    return bool(value)


def _checked_choice(name: str, value: object) -> str:
    choices = CHOICES[name]
    if not isinstance(value, str):
        raise RulesError(f"{name}: {_show(value)} is no text, expected {_either(choices)}")
    if value not in choices:
        raise RulesError(_unknown(name, value, choices))
    return choices[choices.index(value)]


def _checked_integer(name: str, value: object) -> int:
    low, high = RANGES[name]
    expected = f"{low} or more" if high is None else f"{low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise RulesError(f"{name}: {_show(value)} is no integer, expected {expected}")
    if value < low or (high is not None and value > high):
        raise RulesError(f"{name}: {_show(int(value))} is out of range, expected {expected}")
    return int(value)


def _unknown(name: str, found: object, options: Iterable[str], what: str = "") -> str:
    """Message for a name that is none of the options: the nearest one, or else all of them."""
    options = tuple(options)
    near = get_close_matches(str(found).casefold(), options, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"expected {_either(options)}"
    return f"{name}: there is no {what}{_show(found)}, {hint}"


def _either(options: Iterable[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}"


def _show(value: object) -> str:
    """A value in a message: on one line, and no longer than that line bears."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


# Fields together.


def _resolve(values: dict[str, Any]) -> dict[str, Any]:
    """All fields, the derived ones filled in (RULES.md 3, 8, 9), or `RulesError`."""
    if values["teams"] and values["seats"] != 4:
        raise RulesError(f"teams: found with {values['seats']} seats, expected 4 seats")
    _resolve_hand_size(values)
    _resolve_match(values)
    return values


def _resolve_hand_size(values: dict[str, Any]) -> None:
    set_, seats = values["set"], values["seats"]
    if values["hand_size"] is None:
        values["hand_size"] = _default_hand_size(set_, seats, values["teams"])
    size = values["hand_size"]
    if size * seats > tile_count(set_):
        tiles = "1 tile" if size == 1 else f"{_show(size)} tiles"
        raise RulesError(
            f"hand_size: {tiles} x {seats} seats is more than the {tile_count(set_)} of a "
            f"{set_name(set_)} set"
        )


def _default_hand_size(set_: int, seats: int, teams: bool) -> int:
    if set_ == 6:
        return 7 if teams or seats == 2 else 5
    dealt = tile_count(set_) if teams else tile_count(set_) * 3 // 4
    largest = min(dealt // seats, 10 if set_ == 9 else 7)
    return max(largest, 1)  # three quarters of a double-one set are too few for three seats


def _resolve_match(values: dict[str, Any]) -> None:
    if values["score"] == "none":
        if values["target"] is not None:
            raise RulesError(
                f"target: found {values['target']} with score none, expected no target"
            )
        if values["episode"] == "match":
            raise RulesError("episode: found match with score none, expected round")
    elif values["target"] is None:
        values["target"] = _default_target(values["score"], values["seats"], values["teams"])
    if values["episode"] is None:
        values["episode"] = "round" if values["target"] is None else "match"


def _default_target(score: str, seats: int, teams: bool) -> int:
    if score == "loser":
        return 101
    return 100 if teams or seats == 2 else 61
