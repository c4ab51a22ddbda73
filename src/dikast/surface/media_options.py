"""The flags that say which media items may name; they hold until the command that they are given to ends."""

from pathlib import Path
from typing import Annotated

import typer


def _confine(context: typer.Context, root: Path | None) -> Path | None:
    from dikast.core.media import media_rules

    if root is not None:
        context.with_resource(media_rules(root=root))
    return root


def _allow(context: typer.Context, private_urls: bool) -> bool:
    from dikast.core.media import media_rules

    if private_urls:
        context.with_resource(media_rules(private_urls=True))
    return private_urls


MediaRoot = Annotated[
    Path | None,
    typer.Option(
        "--media-root", callback=_confine, help="Items may name images and videos in this folder only, links resolved."
    ),
]
PrivateUrls = Annotated[
    bool,
    typer.Option(
        "--allow-private-urls",
        callback=_allow,
        help="Fetch media also from private, loopback and link-local addresses.",
    ),
]
