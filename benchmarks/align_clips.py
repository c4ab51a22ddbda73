"""Do pairs about pictures alone lift replies about clips? The policies of finished arms are asked about clips of the
held-out things; nothing is trained.

A clip shows the things of a held-out prompt in four frames, from each to the next of which one of them moves to a free
cell beside it. Rubrics weigh colours, shapes, sizes and completeness alone, which a move does not change, so that the
gold is that of the picture. The words of the prompt stay as they are: the policies were never taught the word "clip".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.align_best_of import replies
from benchmarks.align_figures import Arm, Rows
from dikast.alignment.policy_samples import Draw
from dikast.core.item import Item, item_to
from dikast.core.part import Image, Part, Video, text_of
from dikast.core.records import read_items, write_records
from dikast.engines.base import Sampling
from dikast.worlds.domains.clip_graph import STEPS
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.drawing.raster import draw_scene, png
from dikast.worlds.replies import claims_of_sentences, reply_gold, scene_of, sentences_of
from dikast.worlds.sampling.rng import Stream

FRAMES = 4
NAMES = {"still": "the picture four times"}
KINDS = ("colour", "shape", "size")
Values = dict[tuple[int, str], float]  # by seed and prompt
SHOWN = ("clip", "still")  # four frames; the picture four times, which tells what the number of frames does


def moving(scene: Scene, name: str) -> list[Scene]:
    """The scene of each frame of a clip: the scene itself, then one thing more in another cell in each. No thing moves
    that is hidden or crossed by a bar, and none moves where there is no room.
    """
    rng, found = Stream("moving things", name), [scene]
    while len(found) < FRAMES:
        last = found[-1]
        taken = {(thing.col, thing.row) for thing in last.things} | set(last.covers)
        ways = [(i, thing.col + right, thing.row + down) for i, thing in enumerate(last.things)
                for right, down in STEPS.values()
                if i not in last.bars and (thing.col, thing.row) not in last.covers
                and (thing.col + right, thing.row + down) not in taken
                and 0 <= thing.col + right < last.grid and 0 <= thing.row + down < last.grid]  # fmt: skip
        if not ways:
            return [*found, *[last] * (FRAMES - len(found))]
        which, col, row = rng.pick(ways)
        things = [replace(each, col=col, row=row) if i == which else each for i, each in enumerate(last.things)]
        found.append(replace(last, things=things))
    return found


def clips_of(prompts: Mapping[str, Item], folder: Path, shown: str, size: int) -> Path:
    """The prompts with a clip, or with the picture four times, in the place of the picture."""
    path = folder / "items.jsonl"
    if not path.is_file():
        (folder / "images").mkdir(parents=True, exist_ok=True)
        write_records(path, (item_to(_clip(item, folder, shown, size)) for item in prompts.values()))
    return path


def _clip(item: Item, folder: Path, shown: str, size: int) -> Item:
    scene = scene_of(item.meta)
    assert scene is not None
    frames = []
    for number, each in enumerate(moving(scene, item.id) if shown == "clip" else [scene] * FRAMES):
        file = f"images/{item.id}-{number}.png"
        (folder / file).write_bytes(png(draw_scene(each, size)))
        frames.append(Image(file))
    video = Video(tuple(frames), tuple(map(float, range(FRAMES))))
    [turn] = item.instruction
    parts: list[Part] = [video if isinstance(part, Image) else part for part in turn.content]
    return replace(item, instruction=(replace(turn, content=tuple(parts)),))


def asked(policies: Mapping[str, Path], clips: Path, max_tokens: int, seed: int, folder: Path) -> None:
    """One reply of each policy to each prompt, where it is not there yet. All draw with the same seeds."""
    items = list(read_items(str(clips)))
    for name, policy in policies.items():
        file = folder / f"{name}-{seed}" / "samples.jsonl"
        replies(policy, items, Draw("clips", 1, Sampling(0.7, 0.9, max_tokens, seed)), file)


class Replies:
    """Replies by seed and prompt, with the prompts that they answer."""

    def __init__(self, files: Sequence[Path], prompts: Mapping[str, Item]) -> None:
        self.prompts = prompts
        self.by = {
            (seed, item.id): text_of(item.responses[0])
            for seed, file in enumerate(files)
            for item in read_items(str(file))
        }

    def column(self, measure: Callable[[str, Item], float | None]) -> Values:
        """A measure of each reply; those without are left out."""
        found = {key: measure(told, self.prompts[key[1]]) for key, told in self.by.items()}
        return {key: value for key, value in found.items() if value is not None}

    def floor(self) -> Values:
        """The gold that each reply has of the next prompt's things, under its own rubric: what blindness would get."""
        keys = list(self.prompts)
        after = dict(zip(keys, [*keys[1:], keys[0]], strict=True))

        def other(told: str, item: Item) -> float | None:
            scene = self.prompts[after[item.id]].meta["scene"]
            return gold_in(told, replace(item, meta={**item.meta, "scene": scene}))

        return self.column(other)


def gold_in(told: str, item: Item) -> float | None:
    """The goodness of a reply."""
    gold = reply_gold(told, item.meta)
    return None if gold is None else gold.goodness


def unreadable_in(told: str, item: Item) -> float | None:
    """1 for a reply with a sentence that says nothing of a scene."""
    gold = reply_gold(told, item.meta)
    return None if gold is None else float(gold.unreadable > 0)


def clips_table(arms: Sequence[Arm], folder: Path, prompts: Mapping[str, Item]) -> list[str]:
    """Gold of replies about pictures and about clips of the same things, at the start and at each arm's end, and what
    was gained; intervals by prompt, all seeds of a prompt together.
    """
    columns = ("policy", "shown", "seeds", "gold", "floor: read against other things", "words", "unreadable",
               "gold gained, paired", "share of the gain on pictures", "gained beyond the floor, paired")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for shown in ("picture", *SHOWN):
        found = dict(_shown(shown, arms, folder, prompts))
        for name, told in found.items():
            gold = told.column(gold_in)
            cells = [gold, told.floor(), told.column(lambda text, item: float(len(text.split())))]
            said = [f"{_rows(cell).mean():.{digits}f}" for cell, digits in zip(cells, (3, 3, 1), strict=True)]
            said.append(f"{_rows(told.column(unreadable_in)).mean():.3f}")
            gains = ["", "", ""]
            if name != "start":
                mine = less(gold, found["start"].column(gold_in))
                gains[0] = f"{_rows(mine).mean():.3f}"
                stills = dict(_shown("picture", arms, folder, prompts))
                whole = _rows(less(stills[name].column(gold_in), stills["start"].column(gold_in))).mean().value
                gains[1] = f"{_rows(mine).mean().value / whole:.2f}" if whole > 0 and shown != "picture" else ""
                gains[2] = f"{_rows(less(mine, less(told.floor(), found['start'].floor()))).mean():.3f}"
            seeds = len({seed for seed, _ in told.by})
            lines.append(f"| {name} | {NAMES.get(shown, shown)} | {seeds} | {' | '.join([*said, *gains])} |")
    return lines


def claims_table(arms: Sequence[Arm], folder: Path, prompts: Mapping[str, Item]) -> list[str]:
    """What the replies claim: how many different claims of each kind, the share of them that is right, and the share of
    all claims that only say again what the reply has said.
    """
    columns = ("policy", "shown", "weighed claims a reply", "claims said again",
               *(f"{kind}: {what}" for kind in KINDS for what in ("a reply", "right")))  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for shown in ("picture", *SHOWN):
        for name, told in _shown(shown, arms, folder, prompts):
            read = [(prompts[key], _claims(text)) for (_, key), text in told.by.items()]
            said = [(item, claim) for item, claims in read for claim in dict.fromkeys(claims)]
            whole = sum(len(claims) for _, claims in read)
            weighed = sum(claim.aspect in item.meta["spec"]["weights"] for item, claim in said)
            cells = [
                name,
                NAMES.get(shown, shown),
                f"{weighed / len(told.by):.2f}",
                f"{1 - len(said) / whole:.2f}" if whole else "",
            ]
            for kind in KINDS:
                right = Rows([], [])
                for item, claim in said:
                    if claim.kind == kind and (scene := scene_of(item.meta)) is not None:
                        right.ids.append(item.id)
                        right.values.append(float(Scenes().measure(claim, scene).metric == 0))
                cells += [f"{len(right.ids) / len(told.by):.2f}", f"{right.mean():.2f}" if right.ids else ""]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _claims(text: str) -> list[Claim]:
    """The claims of a reply, in its order."""
    read = (claims_of_sentences().get(sentence.casefold()) for sentence in sentences_of(text))
    return [claim for claim in read if claim is not None]


def _shown(shown: str, arms: Sequence[Arm], folder: Path, prompts: Mapping[str, Item]) -> Iterator[tuple[str, Replies]]:
    """The replies of the start and of each arm's end. Those about pictures were made when the arms were measured."""
    for name, arm in (("start", arms[0]), *((arm.name, arm) for arm in arms)):
        places = [
            each / ("start" if name == "start" or not arm.kept(seed) else f"round-{arm.kept(seed)}") / "held-out"
            for seed, each in enumerate(arm.folders)
        ]
        if shown != "picture":
            places = [folder / shown / f"{name}-{seed}" for seed in range(len(arm.folders))]
        files = [each / "samples.jsonl" for each in places]
        if all(each.is_file() for each in files):
            yield name, Replies(files, prompts)


def less(now: Values, then: Values) -> Values:
    """The difference of every reply that has both."""
    return {key: value - then[key] for key, value in now.items() if key in then}


def _rows(values: Values) -> Rows:
    return Rows([key for _, key in values], list(values.values()))
