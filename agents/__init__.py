"""Everything that chooses a move: bots, search, trained policies, and how they are measured."""

from agents.base import Agent, AgentError, View, load

__all__ = ["Agent", "AgentError", "View", "load"]
