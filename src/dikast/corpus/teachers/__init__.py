"""Teachers whose answers are exact: procedural worlds behind the engine protocol."""
