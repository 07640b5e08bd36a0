"""Print every speed target beside what is reached here.

    python -m benchmarks [--json] [--save] [NAME ...]

Without a name those of NAMES run; those of LONG take minutes each. `--save` keeps the rows in
results/speed.json, beside those of other names that are there, for docs/results.md.
"""

import contextlib
import dataclasses
import importlib
import io
import json
import sys
from typing import Any

NAMES = ("vector", "environment", "bots", "evaluate", "worlds", "search", "train")
LONG = ("figures", "solver", "exact", "nashconv", "variants", "opponents", "policies", "results")
OPTIONS = "--json", "--save"


def main(words: list[str]) -> int:
    """Run the benchmarks that are named, each in its own module; returns the exit status."""
    if {"-h", "--help"} & set(words):
        print(f"{__doc__}\nNAMES: {', '.join(NAMES)}\nLONG: {', '.join(LONG)}")
        return 0
    names = [word for word in words if word not in OPTIONS] or list(NAMES)
    for name in names:
        if name not in NAMES + LONG:
            expected = ", ".join(OPTIONS + NAMES + LONG)
            print(f"benchmarks: found {name!r}, expected {expected}", file=sys.stderr)
            return 2
    as_json = "--json" in words
    with contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext():
        found = {name: run(name) for name in names}
    if as_json:
        print(json.dumps(found, default=plain))
    if "--save" in words:
        save(found)
    return 0


def save(found: dict[str, Any]) -> None:
    """Keep rows in results/speed.json, with the machine they are of; those of another one go."""
    from benchmarks.measures import SPEED, keep_json, machine, read_json

    kept = read_json(SPEED)
    rows = kept["rows"] if kept.get("machine") == machine() else {}
    found = json.loads(json.dumps(found, default=plain))
    keep_json(SPEED, {"machine": machine(), "rows": rows | found})


def run(name: str) -> Any:
    """Run one benchmark, which prints its tables; what it returns are their rows."""
    module = importlib.import_module(f"benchmarks.{name}")
    return (getattr(module, name, None) or module.main)()


def plain(value: Any) -> Any:
    """What JSON has no form for: a row as a mapping, anything else as text."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
