"""A judge as the reward function of a trainer, best-of-n, and preference pairs."""

from dikast.rewards.best_of_n import Best, best_of_n
from dikast.rewards.reward import MissingVerdict, Reward, Scored

__all__ = ["Best", "MissingVerdict", "Reward", "Scored", "best_of_n"]
