"""A judge as the reward of a trainer, and what trainers of preferences read."""

from dikast.rewards.best_of_n import Best, best_of_n
from dikast.rewards.reward import MissingVerdict, Reward, Scored

__all__ = ["Best", "MissingVerdict", "Reward", "Scored", "best_of_n"]
