"""Replies of the policy, in batches that are each written atomically, so that an interrupted call resumes with the same
batches.

A reply depends on the seed, the name of the draw and, through rounding, on the other prompts of its batch; therefore
batches are the same in every call, and an unfinished batch is drawn again.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import RunError
from dikast.core.item import Item, item_to
from dikast.core.media import resolved
from dikast.core.part import Content, Image, Text, Turn, Video
from dikast.core.records import read_items
from dikast.core.runs.run_files import changed_files, write_checked, write_whole
from dikast.engines.base import Engine, Request, Sampling
from dikast.engines.sampled_replies import sampled_replies
from dikast.judging.settling import with_frames
from dikast.prompts.ask import prompt_alone
from dikast.worlds.replies import reply_gold

FAILED = "failed.json"
_PROMPTS = 16  # of a batch


@dataclass(frozen=True, slots=True)
class Draw:
    """How replies are sampled: `count` for each prompt; `name` distinguishes draws of the same prompts."""

    name: str
    count: int
    sampling: Sampling
    frames: int = 8


def sampled(
    prompts: Sequence[Item], draw: Draw, policy: Callable[[], Engine], file: Path, watch: Callable[[int, int], None]
) -> list[Item]:
    """The prompts with `draw.count` replies each as their responses, in `file`, made where it is not there yet.

    Replies about worlds have their exact gold. Prompts that the policy could not answer are left out, with the reason
    in `failed.json` beside the file. `policy` is called if there is anything left to draw. RunError where it answers no
    prompt at all.
    """
    if not file.is_file():
        folder = file.with_name(file.stem + "-batches")
        folder.mkdir(parents=True, exist_ok=True)
        batches = range(0, len(prompts), _PROMPTS)
        engine: Engine | None = None
        for number, start in enumerate(batches):
            part = folder / f"{number:05d}.json"
            if not part.is_file() or changed_files(folder, part.name):
                engine = engine or policy()
                write_checked(part, orjson.dumps(_drawn(prompts[start : start + _PROMPTS], draw, engine)))
            watch(min(start + _PROMPTS, len(prompts)), len(prompts))
        rows = [
            row for number in range(len(batches)) for row in orjson.loads((folder / f"{number:05d}.json").read_bytes())
        ]
        failed = {row["id"]: row["failed"] for row in rows if row["failed"]}
        if len(failed) == len(rows):
            raise RunError(f"{file}: the policy answered no prompt: {next(iter(failed.values()))}")
        if failed:
            write_whole(file.with_name(FAILED), orjson.dumps(failed, option=orjson.OPT_INDENT_2))
        answered = zip(prompts, rows, strict=True)
        kept = (item_to(_answered(item, row)) for item, row in answered if not row["failed"])
        write_checked(file, b"".join(orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for each in kept))
        shutil.rmtree(folder)
    return list(read_items(str(file)))


def _drawn(prompts: Sequence[Item], draw: Draw, engine: Engine) -> list[dict[str, Any]]:
    requests = {}
    for item in prompts:
        messages = prompt_alone(with_frames(item, (), draw.frames))
        for k in range(draw.count):
            key = f"{draw.name}/{item.id}/{k}"
            requests[key] = Request(key, messages, draw.sampling)
    found = {each.key: each for each in sampled_replies(engine, requests.values())}
    rows = []
    for item in prompts:
        replies = [found[f"{draw.name}/{item.id}/{k}"] for k in range(draw.count)]
        rows.append(
            {
                "id": item.id, "failed": next((each.problem for each in replies if each.problem), ""),
                "texts": [each.text.strip() for each in replies], "cut": [each.cut for each in replies],
            }
        )  # fmt: skip
    return rows


def _answered(item: Item, row: dict[str, Any]) -> Item:
    """The item with the replies, the gold of each where it is about a world, and media at absolute paths."""
    golds = [reply_gold(text, item.meta) for text in row["texts"]]
    known = [each for each in golds if each is not None]
    scores = [each.score for each in known]
    meta = {"cut": row["cut"], **({"unreadable": [each.unreadable for each in known]} if known else {})}
    gold: Any = None
    if known:
        gold = {"scores": scores} if len(scores) > 1 else {"score": scores[0]}
    return replace(
        item,
        instruction=tuple(Turn(turn.role, _placed(turn.content)) for turn in item.instruction),
        reference=None if item.reference is None else _placed(item.reference),
        context=None if item.context is None else _placed(item.context),
        responses=tuple((Text(text),) for text in row["texts"]),
        gold=gold,
        meta=meta,
    )


def _placed(content: Content) -> Content:
    return tuple(_absolute(part) for part in content)


def _absolute(part: Any) -> Any:
    if isinstance(part, Video):
        frames = tuple(_absolute(frame) for frame in part.frames)
        source = _path(Image(part.source, part.root)) if part.source else ""
        return replace(part, frames=frames, source=source, root="" if source else part.root)
    return replace(part, source=_path(part), root="") if isinstance(part, Image) else part


def _path(image: Image) -> str:
    if "://" in image.source or image.source.startswith("data:"):
        return image.source
    return str(Path(resolved(image)).absolute())
