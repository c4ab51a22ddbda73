"""Images and clips as a model takes them: what prompts show, prepared side by side, as token ids and tensors."""
