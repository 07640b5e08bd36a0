"""Errors of games and records; `RulesError` is in rules.py. All are ValueErrors of one line."""


class IllegalMove(ValueError):
    """A move that the rules do not allow, or that is no move at all."""


class RecordError(ValueError):
    """A game record that cannot be read, or whose replay differs from what it says."""


def shown(value: object) -> str:
    """Any value as a message shows it: on one line, and no longer than that line bears."""
    if isinstance(value, str):
        value = value[:200]
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in a list in a
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
