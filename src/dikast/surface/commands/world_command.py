"""The verbs `world make`, `world teach` and `world peek`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, Verbs, verb

VersionOption = Annotated[
    int, typer.Option("--version", help="Version of the worlds: 4 has rubrics composed of many parts.")
]
FormOption = Annotated[int, typer.Option("--form", help="Percent of rubrics that also weigh form, such as layout.")]
RubricsOption = Annotated[int, typer.Option("--rubrics", help="Rubrics for each response (version 4).")]
app = Verbs(no_args_is_help=True)


@app.command("make")
@verb
def make(
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 1000,
    domain: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            help="Domain of the items, scenes if none is named; several (comma-separated or repeated) alternate.",
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="`train`, or one of its test splits.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the items.")] = 0,
    pairs: Annotated[bool, typer.Option("--pairs", help="Two responses to each instruction.")] = False,
    ties: Annotated[int, typer.Option("--ties", help="Percent of pairs whose scores are equal.")] = 33,
    groups: Annotated[int, typer.Option("--groups", help="Number of responses to each instruction.")] = 1,
    size: Annotated[int, typer.Option("--size", help="Side of an image in pixels.")] = 96,
    objects: Annotated[str, typer.Option("--objects", help="Objects in a scene, as a range such as 2-6.")] = "",
    claims: Annotated[str, typer.Option("--claims", help="Claims in a response, as a range such as 3-6.")] = "",
    aspects: Annotated[str, typer.Option("--aspects", help="Aspects that rubrics may weigh, comma-separated.")] = "",
    scales: Annotated[str, typer.Option("--scales", help="Scales to use, comma-separated.")] = "",
    grid: Annotated[int, typer.Option("--grid", help="Rows and columns of the grid of a scene.")] = 4,
    clutter: Annotated[int, typer.Option("--clutter", help="Maximum number of specks in an image, 0-100.")] = 30,
    noise: Annotated[int, typer.Option("--noise", help="Maximum noise of a pixel, 0-100.")] = 10,
    occlusion: Annotated[
        int, typer.Option("--occlusion", help="Percent of images with bars that occlude objects.")
    ] = 10,
    form: FormOption = 20,
    version: VersionOption = 3,
    rubrics: RubricsOption = 4,
    suite: Annotated[
        str,
        typer.Option(
            "--suite", help="Write a whole suite: `prove`, the standard one, or `probe`, the items of `dikast probe`."
        ),
    ] = "",
    large: Annotated[bool, typer.Option("--large", help="Write the large version of the suite.")] = False,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes; does not change the output.")] = 1,
    shard: Annotated[int, typer.Option("--shard", help="Records per file.")] = 10_000,
    suffix: Annotated[str, typer.Option("--suffix", help="File format: jsonl, jsonl.gz or parquet.")] = "jsonl",
    *,
    shown: JsonOptions,
) -> None:
    """Generate items with images and exact gold."""
    from dataclasses import replace

    from dikast.core.errors import UserError
    from dikast.worlds.settings import Settings, range_of
    from dikast.worlds.write import write_world

    if suite:
        from dikast.worlds.prove import write_suite

        if domain or pairs or groups != 1 or split != "train":
            raise UserError(
                "suite: a suite has all domains and splits, single items and pairs; leave these options out"
            )
        written = write_suite(suite, out, seed=seed, large=large)
    else:
        if large:
            raise UserError("large: this is the size of a suite; name one with --suite")
        if pairs and groups != 1:
            raise UserError("--pairs and --groups: use one of them")
        names = [name for given in domain or ["scenes"] for name in given.split(",") if name] or [""]
        settings = Settings(
            domain=names[0], split=split, seed=seed, responses=2 if pairs else groups, size=size, grid=grid,
            objects=range_of("objects", objects), claims=range_of("claims", claims), clutter=clutter, noise=noise,
            occlusion=occlusion, aspects=tuple(filter(None, aspects.split(","))),
            scales=tuple(filter(None, scales.split(","))), form=form, ties=ties, version=version, rubrics=rubrics,
        )  # fmt: skip
        worlds = [replace(settings, domain=name) for name in names]
        written = write_world(worlds, n, out, workers=workers, shard=shard, suffix=suffix)
    if shown.json:
        echo_json({"items": written.items, "files": [str(file) for file in written.files]})
    else:
        echo(f"{written.items} items in {out}")


@app.command("teach")
def teach(
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    n: Annotated[int, typer.Option("-n", help="How many lessons.")] = 1000,
    domain: Annotated[str, typer.Option("--domain", help="Domain of the lessons.")] = "scenes",
    split: Annotated[str, typer.Option("--split", help="Split of the lessons.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the lessons.")] = 0,
    pairs: Annotated[bool, typer.Option("--pairs", help="Two responses to each instruction.")] = False,
    talk: Annotated[
        bool, typer.Option("--talk", help="Write look-and-say texts instead: what is in each cell of an image.")
    ] = False,
    glossary: Annotated[
        bool, typer.Option("--glossary", help="Write instead what names in rubrics mean (with --version 4).")
    ] = False,
    matching: Annotated[
        bool, typer.Option("--matching", help="Write instead findings to compare with rules (with --version 4).")
    ] = False,
    reference: Annotated[int, typer.Option("--reference", help="Percent of lessons with a reference answer.")] = 0,
    padding: Annotated[int, typer.Option("--padding", help="Percent of lessons with added filler sentences.")] = 0,
    blank: Annotated[
        int, typer.Option("--blank", help="Percent of lessons about an empty picture: nothing said of it is there.")
    ] = 0,
    silent: Annotated[
        int,
        typer.Option("--silent", help="Percent of lessons whose response says nothing: it gets the worst label."),
    ] = 0,
    agreement: Annotated[
        int,
        typer.Option("--agreement", help="Percent of lessons that compare the response with a reference alone."),
    ] = 0,
    only: Annotated[
        str,
        typer.Option(
            "--only",
            help="State only this (with --form 0): colour, size, texture (scenes); number, sum, list (text).",
        ),
    ] = "",
    claims: Annotated[str, typer.Option("--claims", help="Claims in a response, as a range such as 3-6.")] = "",
    form: FormOption = 20,
    version: VersionOption = 3,
    rubrics: RubricsOption = 4,
    quote: Annotated[
        bool, typer.Option("--quote", help="Check each claim by each rule of the rubric; version 3: quote it.")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes; does not change the output.")] = 1,
) -> None:
    """Write training data for a small judge: lessons checked claim by claim, look-and-say, a glossary, or matching."""
    from dikast.core.errors import UserError
    from dikast.worlds.settings import Settings, range_of
    from dikast.worlds.teach import write_lessons

    instead = [name for name, asked in (("talk", talk), ("glossary", glossary), ("matching", matching)) if asked]
    if len(instead) > 1:
        raise UserError(f"{' and '.join(f'--{name}' for name in instead)}: use one of them")
    settings = Settings(
        domain=domain, split=split, seed=seed, responses=2 if pairs else 1, claims=range_of("claims", claims),
        form=form, version=version, rubrics=rubrics,
    )  # fmt: skip
    written = write_lessons(
        settings, n, out, reference=reference, padding=padding, blank=blank, silent=silent, agreement=agreement,
        instead="".join(instead), quote=quote, only=only, workers=workers,
    )  # fmt: skip
    echo(f"{written.items} lessons in {out}")


@app.command("peek")
def peek(
    world: Annotated[Path, typer.Argument(help="A folder that `world make` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Write OUT.html and OUT.png.")] = Path("peek"),
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 24,
) -> None:
    """Write a contact sheet: picture, response with its wrong claims marked, gold, rubric."""
    from dikast.worlds.peek import peek as sheet

    for path in sheet(world, out, n=n):
        echo(str(path))
