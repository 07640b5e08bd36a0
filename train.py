"""`domino train` as a script: python train.py configs/cabra.yaml [--field value ...]."""

from agents.ppo import main

if __name__ == "__main__":
    main()
