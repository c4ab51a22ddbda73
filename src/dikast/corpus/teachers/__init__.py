"""Teachers with exact gold: procedural worlds behind the engine interface."""
