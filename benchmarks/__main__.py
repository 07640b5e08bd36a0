"""Print every speed target beside what is reached here: python -m benchmarks [NAME ...].

Names: those of NAMES, which are also what runs without one, and of LONG.
"""

import importlib
import sys

NAMES = ("vector", "environment", "evaluate", "worlds", "train")
LONG = ("figures", "solver", "exact")  # minutes each


def main() -> None:
    """Run the benchmarks that are named, each in its own module."""
    known = (*NAMES, *LONG)
    for name in sys.argv[1:] or NAMES:
        if name not in known:
            sys.exit(f"benchmarks: there is no {name!r}, expected {', '.join(known)}")
        module = importlib.import_module(f"benchmarks.{name}")
        run = getattr(module, name, None) or module.main
        run()


if __name__ == "__main__":
    main()
