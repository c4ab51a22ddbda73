"""The verb `dikast align`."""

from functools import partial

from dikast.alignment.align_options import AlignOptions
from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import CONFIG, ShowOptions, verb


@partial(verb, config=CONFIG)
def align(options: AlignOptions, media: MediaOptions, *, shown: ShowOptions) -> None:
    """Improve a model with a judge as its only teacher: sample, judge, pair, train, measure, round by round.

    Example: dikast align --policy hf:ORG/MODEL --judge hf:ORG/JUDGE --prompts a.jsonl --held-out b.jsonl --out runs/up
    """
    from dikast.core.errors import require

    for package in ("torch", "transformers"):
        require(package, "hf")
    require("matplotlib", "train")
    from dikast.alignment.align import align as run
    from dikast.alignment.align import check_folder
    from dikast.alignment.align_inputs import checked
    from dikast.alignment.dry_run import dry_run, plan_lines

    if options.dry_run:
        given = checked(options)
        check_folder(given)
        plan = dry_run(given)
        if shown.json:
            echo_json(plan)
        else:
            for line in plan_lines(plan):
                echo(line)
        return

    def tell(line: str) -> None:
        if not shown.quiet:
            echo(line, err=True)

    done = run(options, tell=tell)
    if shown.json:
        echo_json(done)
        return
    echo(f"the model is in {done['model']}" + (f"; stopped: {done['stopped']}" if done["stopped"] else ""))
