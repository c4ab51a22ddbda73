"""Samples as lm-evaluation-harness writes them with `--log_samples` (0.4): `samples_TASK_DATE.jsonl`."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dikast.core.output_folder import one_writer
from dikast.core.records import write_records
from dikast.core.runs.run import Run
from dikast.core.runs.run_table import RunTable
from dikast.surface.export.inspect_log import written_at
from dikast.surface.export.judged_samples import Sample, plain, samples_of

_NOT_PLAIN = re.compile(r"[^\w .+@=-]")  # in the name of a file: control characters, marks that turn text round
_MOST = 100


def write_lm_eval(run: Run, table: RunTable, folder: Path) -> int:
    """Write the samples of the task that is named after the run's folder; metrics are criteria, null where they failed.

    `doc` is the item, `arguments` its instruction, `resps` the judged response or both of a pair, whose metric is 1
    where the judge prefers the first, 0 where the second, 0.5 for a tie and for orders that disagree. The metric of a
    criterion that has the name of another field (`doc`, `target`) is called `doc_score`; `judged` has its own name.
    """
    task = _NOT_PLAIN.sub("_", run.folder.resolve().name)[:_MOST] or "run"
    date = written_at(run).isoformat(timespec="microseconds").replace("+00:00", "").replace(":", "-")
    with one_writer(folder, "exporting"):
        return write_records(folder / f"samples_{task}_{date}.jsonl", _records(table))


def _records(table: RunTable) -> Iterator[dict[str, Any]]:
    for number, sample in enumerate(samples_of(table, table.metas)):
        doc = {"id": sample.id, **sample.texts, **sample.meta}
        target = plain(sample.texts.get("gold", sample.texts.get("reference", "")))
        prompt = plain(sample.texts.get("instruction", ""))
        texts = [plain(each) for each in sample.responses]
        told = {
            "doc_id": number,
            "doc": doc,
            "target": target,
            "arguments": {f"gen_args_{k}": {"arg_0": prompt, "arg_1": {}} for k in range(len(texts))},
            "resps": [[text] for text in texts],
            "filtered_resps": texts,
            "filter": "none",
            "metrics": [],
            "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
            "prompt_hash": _hash(prompt),
            "target_hash": _hash(target),
        }
        metrics: dict[str, Any] = {}
        for name, score in sample.scores.items():
            while name in told or name in metrics or name == "judged":
                name += "_score"
            metrics[name] = score.value
        judged = {name: _score_fields(sample, name) for name in sample.scores}
        yield {**told, "metrics": list(metrics), **metrics, "judged": judged}


def _score_fields(sample: Sample, name: str) -> dict[str, Any]:
    score = sample.scores[name]
    told = {"judge": score.judge, "status": score.status, "label": score.answer, "feedback": score.feedback}
    return told | ({"reason": score.reason} if score.reason else {})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
