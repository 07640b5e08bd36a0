"""`domino train` as a script: python train.py configs/cabra.yaml [--field value ...]."""

import sys

from agents.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
