"""The verbs `world make`, `world teach` and `world peek`."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Procedural images, text and clips with exact gold scores.")


@app.command("make")
def make(
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 1000,
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", help="What the items are about [scenes]; several, by commas or again, take turns."),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="What is held out; `train` and its test splits.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Other seeds give other items.")] = 0,
    pairs: Annotated[bool, typer.Option("--pairs", help="Two responses to each instruction.")] = False,
    ties: Annotated[int, typer.Option("--ties", help="Percent of pairs whose scores are equal.")] = 33,
    groups: Annotated[int, typer.Option("--groups", help="This many responses to each instruction.")] = 1,
    size: Annotated[int, typer.Option("--size", help="Side of a picture in pixels.")] = 96,
    objects: Annotated[str, typer.Option("--objects", help="Range of things in a scene, such as 2-6.")] = "",
    claims: Annotated[str, typer.Option("--claims", help="Range of claims in a response, such as 3-6.")] = "",
    aspects: Annotated[str, typer.Option("--aspects", help="Only weigh these, with commas between.")] = "",
    scales: Annotated[str, typer.Option("--scales", help="Only use these, with commas between.")] = "",
    grid: Annotated[int, typer.Option("--grid", help="Rows and columns of places in a scene.")] = 4,
    clutter: Annotated[int, typer.Option("--clutter", help="Most specks in a picture, 0-100.")] = 30,
    noise: Annotated[int, typer.Option("--noise", help="Most that a pixel is off, 0-100.")] = 10,
    occlusion: Annotated[int, typer.Option("--occlusion", help="Percent of pictures with bars across things.")] = 10,
    form: Annotated[int, typer.Option("--form", help="Percent of rubrics that also weigh layout and the like.")] = 20,
    suite: Annotated[
        str,
        typer.Option("--suite", help="`prove`: the standing suite; `probe`: what probes draw from; --large for more."),
    ] = "",
    large: Annotated[bool, typer.Option("--large", help="The large suite.")] = False,
    workers: Annotated[int, typer.Option("--workers", help="Processes; changes nothing but the time.")] = 1,
    shard: Annotated[int, typer.Option("--shard", help="Records in a file.")] = 10_000,
    suffix: Annotated[str, typer.Option("--suffix", help="jsonl, jsonl.gz or parquet.")] = "jsonl",
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Write items with their pictures and their gold."""
    from dataclasses import replace

    import orjson

    from dikast.core.errors import UserError
    from dikast.worlds.settings import Settings, range_of
    from dikast.worlds.write import write_world

    if suite:
        from dikast.worlds.prove import write_suite

        if domain or pairs or groups != 1 or split != "train":
            raise UserError("suite: it has all domains and splits, single items and pairs; leave these options out")
        written = write_suite(suite, out, seed=seed, large=large)
    else:
        if large:
            raise UserError("large: it is the size of a suite; name one with --suite")
        if pairs and groups != 1:
            raise UserError("--pairs and --groups: use one of them")
        names = [name for given in domain or ["scenes"] for name in given.split(",") if name] or [""]
        settings = Settings(
            domain=names[0], split=split, seed=seed, responses=2 if pairs else groups, size=size, grid=grid,
            objects=range_of("objects", objects), claims=range_of("claims", claims), clutter=clutter, noise=noise,
            occlusion=occlusion, aspects=tuple(filter(None, aspects.split(","))),
            scales=tuple(filter(None, scales.split(","))), form=form, ties=ties,
        )  # fmt: skip
        worlds = [replace(settings, domain=name) for name in names]
        written = write_world(worlds, n, out, workers=workers, shard=shard, suffix=suffix)
    if json:
        typer.echo(orjson.dumps({"items": written.items, "files": [str(file) for file in written.files]}).decode())
    else:
        typer.echo(f"{written.items} items in {out}")


@app.command("teach")
def teach(
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    n: Annotated[int, typer.Option("-n", help="How many lessons.")] = 1000,
    domain: Annotated[str, typer.Option("--domain", help="What they are about.")] = "scenes",
    split: Annotated[str, typer.Option("--split", help="Of which split.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Other seeds give other lessons.")] = 0,
    pairs: Annotated[bool, typer.Option("--pairs", help="Two responses to each instruction.")] = False,
    talk: Annotated[bool, typer.Option("--talk", help="Look-and-say instead: what stands in each cell.")] = False,
    reference: Annotated[int, typer.Option("--reference", help="Percent of lessons with a reference answer.")] = 0,
    padding: Annotated[int, typer.Option("--padding", help="Percent of lessons with empty sentences more.")] = 0,
    workers: Annotated[int, typer.Option("--workers", help="Processes; changes nothing but the time.")] = 1,
) -> None:
    """Write lessons for a small judge: items whose gold feedback is worked claim by claim, or look-and-say."""
    from dikast.worlds.settings import Settings
    from dikast.worlds.teach import write_lessons

    settings = Settings(domain=domain, split=split, seed=seed, responses=2 if pairs else 1)
    written = write_lessons(settings, n, out, reference=reference, padding=padding, only_talk=talk, workers=workers)
    typer.echo(f"{written.items} lessons in {out}")


@app.command("peek")
def peek(
    world: Annotated[Path, typer.Argument(help="A folder that `world make` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Write OUT.html and OUT.png.")] = Path("peek"),
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 24,
) -> None:
    """Write a contact sheet: picture, response with its wrong claims marked, gold, rubric."""
    from dikast.worlds.peek import peek as sheet

    for path in sheet(world, out, n=n):
        typer.echo(str(path))
