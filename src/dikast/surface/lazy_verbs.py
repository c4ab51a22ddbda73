"""A group of verbs that are imported when they are used: help, completion and each verb start without the others."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


class LazyVerb(NamedTuple):
    """Where a verb or a group of verbs is defined ("MODULE:NAME" in this room), and its line in the help of all verbs.

    The line of a verb is the first paragraph of its docstring.
    """

    where: str
    about: str

    def build(self, name: str) -> Any:
        """The command with all of its options, or the group."""
        module, _, found = self.where.partition(":")
        defined = getattr(importlib.import_module(f"dikast.surface.{module}"), found)
        group = typer.Typer()
        if isinstance(defined, typer.Typer):
            group.add_typer(defined, name=name, help=self.about)
        else:
            from dikast.surface.verbs import Verb

            group.command(name, cls=Verb)(defined)
        return get_group(group).commands[name]


class LazyVerbs(TyperGroup):
    """A group whose verbs stand in the table `verbs`, by name."""

    verbs: Mapping[str, LazyVerb]

    def __init__(self, **settings: Any) -> None:
        listed = {name: TyperCommand(name, help=verb.about) for name, verb in self.verbs.items()}
        super().__init__(**{**settings, "commands": listed})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The name of a verb, the verb, and what is left of `args`."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.verbs[name].build(name), rest
