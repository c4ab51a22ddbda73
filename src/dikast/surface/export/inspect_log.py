"""An evaluation log of Inspect (version 2, JSON), which `inspect view` and `inspect log` open.

The item is the sample, the judged response the model's output, the judge the scorer. Source: the models of
`inspect_ai.log` 0.3.285.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import EngineError, UserError
from dikast.core.output_folder import replacing
from dikast.core.part import Image
from dikast.core.runs.last_verdict import recorded_at
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import SUMMARY
from dikast.core.runs.run_table import RunTable
from dikast.engines.http.images import Encoded
from dikast.surface.export.judged_samples import JudgeScore, Sample, plain, samples_of

_LISTED = re.compile(r"\d{4}-\d\d-\d\dT")
_REASONS = {
    "unparsed": "invalid_response_format", "off_scale": "invalid_response_format",
    "truncated": "invalid_response_format", "refused": "refusal", "engine_error": "no_response",
}  # fmt: skip


def written_at(run: Run) -> datetime:
    """When the last verdict was given, in UTC; of a run of an earlier version the date of its summary."""
    at = recorded_at(run.folder)
    return datetime.fromtimestamp((run.folder / SUMMARY).stat().st_mtime if at is None else at, UTC)


def write_inspect_log(run: Run, table: RunTable, path: Path) -> int:
    """Write the log; returns its samples. Verdicts that are missing are scores of NaN, Inspect's word for unscored.

    path: a file named .json, or a folder, in which the log is named after the time and the run, as the viewer lists it.
    Pictures are part of the log, as the viewer shows no files; one that cannot be read is named.
    """
    if path.is_dir() or not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
        task = re.sub(r"[^A-Za-z0-9-]+", "-", run.folder.resolve().name)
        path = path / f"{written_at(run):%Y-%m-%dT%H-%M-%S}+00-00_{task}_{fingerprint(task)[:12]}.json"
    elif not _LISTED.match(path.name):
        where = path.parent if path.parent != Path() else "FOLDER"
        told = "`inspect view` lists JSON logs only under names that begin with a time"
        table.notes.append(f"{told}: export to inspect:{where} names it so")
    if path.suffix != ".json":
        raise UserError(f"inspect:{path}: the log is JSON: name it .json (`inspect log convert` makes .eval of it)")
    tallies, ids, models = dict[str, _Tally](), [], dict[str, None]()
    for sample in samples_of(table, table.metas):
        ids.append(sample.id)
        models[str(sample.meta.get("model", ""))] = None
        for name, score in sample.scores.items():
            tallies.setdefault(name, _Tally(score.judge)).add(score.value)
    model = next(iter(models)) if len(models) == 1 and "" not in models else "unknown"
    head, shown = _head(run, ids, tallies, model), _pictures(str(path.parent))
    with replacing(str(path)) as temporary, Path(temporary).open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "samples": [')
        for number, each in enumerate(samples_of(table, table.metas)):
            file.write((",\n" if number else "\n") + json.dumps(_sample(each, model, shown), ensure_ascii=False))
        file.write("\n]}\n")
    return len(ids)


class _Tally:
    """Mean and standard error of one scorer, and how many samples it left unscored."""

    def __init__(self, judge: str) -> None:
        self.judge, self.scored, self.unscored, self._sum, self._squares = judge, 0, 0, 0.0, 0.0

    def add(self, value: float | None) -> None:
        if value is None:
            self.unscored += 1
            return
        self.scored += 1
        self._sum += value
        self._squares += value * value

    @property
    def metrics(self) -> dict[str, Any]:
        n = self.scored
        mean = self._sum / n if n else math.nan
        error = math.sqrt(max(self._squares / n - mean * mean, 0) / (n - 1)) if n > 1 else math.nan
        return {name: {"name": name, "value": value} for name, value in (("mean", mean), ("stderr", error))}


def _head(run: Run, ids: list[str], tallies: Mapping[str, _Tally], model: str) -> dict[str, Any]:
    when = written_at(run).isoformat(timespec="seconds")
    task, judges = run.folder.resolve().name, run.summary.get("judges") or [run.summary.get("judge", "")]
    key = fingerprint([task, when, *ids[:1000], len(ids)])
    scores = [
        {
            "name": name, "scorer": name, "scored_samples": each.scored, "unscored_samples": each.unscored,
            "params": {}, "metrics": each.metrics, "metadata": {"judge": each.judge},
        }
        for name, each in tallies.items()
    ]  # fmt: skip
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": key[:22], "run_id": key[:22], "created": when, "task": task, "task_id": key[:22],
            "task_version": 0, "task_attribs": {}, "task_args": {}, "model": model, "model_generate_config": {},
            "model_args": {}, "model_roles": {
                "grader" if len(judges) == 1 else f"grader_{k}": {"model": str(judge)}
                for k, judge in enumerate(judges, 1)
            },
            "dataset": {"name": task, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "config": {"epochs": 1}, "packages": {"dikast": version("dikast")},
            "scorers": [{"name": name, "metadata": {"judge": each.judge}} for name, each in tallies.items()],
        },
        "plan": {"name": "dikast", "steps": [], "config": {}},
        "results": {"total_samples": len(ids), "completed_samples": len(ids), "scores": scores},
        "stats": {"started_at": when, "completed_at": when, "model_usage": {}},
    }  # fmt: skip


def _sample(sample: Sample, model: str, shown: Callable[[str], str]) -> dict[str, Any]:
    asked = list(_messages(sample.texts.get("instruction", ""), shown))
    answers = [{"role": "assistant", "content": _content(each, shown)} for each in sample.responses]
    one = isinstance(sample.texts.get("instruction", ""), str)
    told = {name: sample.texts[name] for name in ("context", "gold") if name in sample.texts}
    return {
        "id": sample.id,
        "epoch": 1,
        "input": plain(sample.texts.get("instruction", "")) if one else asked,
        "target": plain(sample.texts.get("reference", sample.texts.get("gold", ""))),
        "messages": [*asked, *answers],
        "output": {
            "model": model,
            "choices": [{"message": each, "stop_reason": "stop"} for each in answers],
            "completion": answers[0]["content"] if answers and isinstance(answers[0]["content"], str) else "",
        },
        "scores": {name: _score(score) for name, score in sample.scores.items()},
        "metadata": {**told, **sample.meta},
        "store": {}, "events": [], "model_usage": {}, "attachments": {},
    }  # fmt: skip


def _score(score: JudgeScore) -> dict[str, Any]:
    told = {"judge": score.judge, "status": score.status, **score.details}
    told |= {"gold": score.gold} if score.gold is not None else {}
    value: dict[str, Any] = {
        "value": math.nan if score.value is None else score.value,
        "answer": score.answer,
        "explanation": score.feedback or score.reason or None,
        "metadata": told,
    }
    if score.value is None:
        value["reason"] = _REASONS.get(score.status, "scoring_failed")
    return value


def _messages(instruction: Any, shown: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    turns: Iterable[Any] = [{"role": "user", "content": instruction}]
    with suppress(TypeError, IndexError):
        turns = instruction if "role" in instruction[0] and not isinstance(instruction, str) else turns
    for turn in turns:
        yield {"role": turn["role"], "content": _content(turn["content"], shown)}


def _pictures(root: str) -> Callable[[str], str]:
    """What stands for a picture: its file as a data URL; an address, or a path that cannot be read, as it is."""
    encoded = Encoded()

    def shown(source: str) -> str:
        if "://" in source or source.startswith("data:"):
            return source
        try:
            return encoded.url(Image(source, root)).decode()
        except EngineError:
            return source

    return shown


def _content(content: Any, shown: Callable[[str], str]) -> str | list[dict[str, Any]]:
    """Text, or parts: pictures as Inspect has them, anything else as JSON."""
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "text":
            parts.append({"type": "text", "text": str(part.get("text", ""))})
        elif isinstance(part, dict) and isinstance(part.get("image"), str):
            parts.append({"type": "image", "image": shown(part["image"])})
        else:
            parts.append({"type": "text", "text": plain(part)})
    return parts
