"""A judge as the only teacher of another model: samples, rewards, pairs and preference optimisation, round by round."""
