"""Errors of games and records; `RulesError` is in rules.py. All are ValueErrors of one line."""


class IllegalMove(ValueError):  # noqa: N818 (a contract name)
    """A move that the rules do not allow, or that is no move at all."""


class RecordError(ValueError):
    """A game record that cannot be read, or whose replay differs from what it says."""
