"""The inputs of an alignment, checked before the first sample: prompts, images, models, settings."""

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dikast.alignment.align_options import AlignOptions
from dikast.alignment.round_pairs import one_criterion
from dikast.core.canonical import fingerprint
from dikast.core.checking import Mistakes
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.media import check_image, sample_video, video_sha256
from dikast.core.part import Image, Part, Text, Video
from dikast.core.records import read_items
from dikast.core.text import Located, read_located
from dikast.engines.base import Engine
from dikast.engines.local.source import file_sha256, locate
from dikast.judging.judge import Judge
from dikast.judging.run_options import allowed_failures
from dikast.training.preferences import PreferenceConfig, load_preference_config

if TYPE_CHECKING:
    from dikast.engines.local.source import ModelSource

_OWN = ("model", "init", "data", "out", "seed")


@dataclass(frozen=True)
class Given:
    """All inputs of a run. `settings` are those of `train dpo`; `allowed` says how many of n verdicts may be missing.

    `identity` determines samples, rewards and weights; a folder holds runs of one identity. `about` describes models
    and files for the report.
    """

    options: AlignOptions
    prompts: list[Item]
    held: list[Item]
    judge: Judge
    second: Judge | None
    policy: str
    settings: Mapping[str, Any]
    allowed: Callable[[int], float]
    own_judge: bool
    overlap: int
    identity: dict[str, Any]

    def training(self, model: str, folder: Path) -> PreferenceConfig:
        """The configuration of a round's training."""
        return load_preference_config(self.training_settings(model, folder))

    def training_settings(self, model: str, folder: Path) -> dict[str, Any]:
        """The same as it would stand in a file."""
        own = {"model": model, "out": str(folder), "data": [{"items": [str(folder / "pairs.jsonl")]}]}
        return {"seed": self.options.seed, **self.settings, **own}


def checked(options: AlignOptions, engine: Engine | None = None) -> Given:
    """The inputs of a run; raises all mistakes at once, before anything is asked. `engine`: the judge, if no spec."""
    mistakes = Mistakes(Located({}, "flags"))
    prompts = mistakes.of(lambda: _items(options.prompts, "--prompts")) or []
    held = mistakes.of(lambda: _items(options.held_out, "--held-out")) or []
    settings = mistakes.of(lambda: _settings(options.training)) or {}
    allowed = mistakes.of(lambda: allowed_failures(options.max_failures))
    judge = mistakes.of(lambda: Judge(engine or options.judge, options.rubric))
    second = mistakes.of(lambda: Judge(options.second_judge, options.rubric) if options.second_judge else None)
    source = mistakes.of(lambda: _policy(options.policy))
    mistakes.of(lambda: _launcher(options.launch))
    shown: dict[str, list[str]] = {}
    for flag, items in (("--prompts", prompts), ("--held-out", held)):
        shown[flag] = [found for item in items if (found := mistakes.of(partial(_shown, item))) is not None]
        if judge is not None:
            mistakes += [
                DataError(f"item {item.id!r} has no rubric: give --rubric, or the item one", path=item.origin)
                for item in items
                if item.rubric is None and judge.rubric is None
            ][:3]
            if not one_criterion(judge, items):
                mistakes.tell(f"{flag}: an alignment needs a single criterion, and these items are judged by several")
    both = set(shown["--prompts"]) & set(shown["--held-out"])
    if both and not options.force:
        mistakes.tell(
            f"{len(both):,} prompts of {options.prompts} also stand in {options.held_out}, which would measure what was"
            " memorised: take them out of one, or add --force"
        )
    if source is not None:
        mistakes.of(lambda: _sees(source, options, [*prompts, *held]))
    mistakes.raise_all()
    assert judge is not None
    assert source is not None
    assert allowed is not None
    policy = str(Path(options.policy).absolute()) if Path(options.policy).is_dir() else options.policy
    known = dict(judge.engine.identity())
    own = all(known.get(name) == value for name, value in source.identity().items())
    skipped = ("out", "prompts", "held_out", "policy", "judge", "second_judge", "rounds", "force", "training", "launch")
    told = {name: value for name, value in asdict(options).items() if name not in (*skipped, "max_failures", "dry_run")}
    identity = {
        "settings": told,
        "training": {name: value for name, value in settings.items() if name not in ("device", "workers")},
        "policy": dict(source.identity()),
        "judge": judge.hash,
        "second_judge": second.hash if second is not None else None,
        "rubric": judge.rubric.hash if judge.rubric is not None else None,
        "prompts": file_sha256(options.prompts),
        "held_out": file_sha256(options.held_out),
    }
    given = Given(options, prompts, held, judge, second, policy, settings, allowed, own, len(both), identity)
    given.training(policy, options.out.absolute())  # mistakes in the settings are reported now
    return given


def _items(path: Path, flag: str) -> list[Item]:
    items = list(read_items(str(path)))
    if not items:
        raise UserError(f"{flag} {path}: there are no items")
    for item in items:
        if not item.instruction:
            raise DataError(f"item {item.id!r} has no instruction: give it one", path=item.origin)
        if item.instruction[-1].role != "user":
            raise DataError(f"item {item.id!r}: its last turn is not the user's, so there is no question to answer",
                            path=item.origin, field="instruction")  # fmt: skip
    return items


def _shown(item: Item) -> str:
    """A fingerprint of what is asked, pictures and videos by their content.

    DataError for one that cannot be read, also in the context and the reference, which the judge alone is shown.
    """
    try:
        asked = [[turn.role, *(_content_of(part) for part in turn.content)] for turn in item.instruction]
        for part in (*(item.context or ()), *(item.reference or ())):
            _content_of(part)
    except DataError as error:
        raise DataError(f"item {item.id!r}: {error}", path=item.origin) from None
    return fingerprint(asked)


def _content_of(part: Part) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Video) and part.source:
        sample_video(part)
        return [video_sha256(part), part.count]
    return [check_image(image) for image in ((part,) if isinstance(part, Image) else part.frames)]


def _policy(spec: str) -> "ModelSource":
    folder = Path(spec)
    if not folder.is_dir() and not spec.startswith("hf:"):
        raise UserError(f"--policy {spec}: is neither a model folder nor hf:ORG/NAME: only such a model can be trained")
    return locate(spec.removeprefix("hf:") if not folder.is_dir() else str(folder))


def _launcher(launch: str | None) -> None:
    """UserError for a launcher that cannot be started."""
    try:
        command = shlex.split(launch or "")
    except ValueError as error:
        raise UserError(f"--launch {launch}: {error}") from None
    if launch is not None and (not command or shutil.which(command[0]) is None):
        raise UserError(f"--launch {launch}: there is no such program: write it as in a shell, `accelerate launch ...`")


def _sees(source: "ModelSource", options: AlignOptions, items: list[Item]) -> None:
    from dikast.core.errors import require
    from dikast.engines.local.loading import sees_images
    from dikast.engines.local.trusted import model_config

    require("torch", "hf")
    config = model_config(source.folder)
    asked = ((item, part) for item in items for turn in item.instruction for part in turn.content)
    shows = next((item for item, part in asked if not isinstance(part, Text)), None)
    if shows is not None and not sees_images(config, source):
        raise UserError(
            f"--policy {options.policy}: has no vision, and item {shows.id!r} ({shows.origin}) shows a picture: take a"
            " vision-language model, or prompts of text"
        )


def _settings(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = read_located(path).value
    except UserError as error:
        raise UserError(f"--training {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"--training {path}: a mapping of settings, such as 'learning_rate: 1.0e-6'")
    for name in _OWN:
        if name in found:
            raise UserError(f"--training {path}: {name!r} is set by the alignment itself: leave it out")
    return found
