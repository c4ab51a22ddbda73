"""Recorded rows of public benches, laid out as their sources publish them; skipped rows make no figure here."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import orjson


def _lines(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        return [orjson.loads(line) for line in file]


def _whole(path: Path) -> Any:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        return orjson.loads(file.read())


def put(path: Path, value: Any, *, rows: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(each) + "\n" for each in value) if rows else json.dumps(value)
    path.write_text(text)


def lay_out(recorded: Path, folder: Path, most: int | None = None) -> list[str]:
    """Write what `recorded` holds of the benches' rows into `folder`, `most` of each file; the benches' names."""

    def lines(path: Path) -> list[dict[str, Any]]:
        return _lines(path)[:most]

    def whole(path: Path) -> Any:
        value = _whole(path)
        return dict(islice(value.items(), most)) if isinstance(value, dict) else value[:most]

    benches = recorded / "benches"
    for name in ("Natural", "Adversarial/Neighbor", "Adversarial/GPTInst", "Adversarial/GPTOut", "Adversarial/Manual"):
        put(
            folder / "llmbar/Dataset/LLMBar" / name / "dataset.json",
            lines(benches / "llmbar" / f"{name.replace('/', '_')}.jsonl.gz"),
        )
    for task in ("t2i", "edit", "interleaved", "reasoning"):
        rows = lines(benches / "mmrb2" / f"{task}.jsonl.gz")
        put(folder / f"mmrb2/benchmark/{task}_response_only.json", {"pairs": rows})
    put(
        folder / "biggen/BiGGen-Bench/sample_responses.json",
        {r["id"]: r for r in lines(benches / "biggen/items.jsonl.gz")},
    )
    chat = benches / "fastchat"
    put(
        folder / "fastchat/llm_judge/data/mt_bench/question.jsonl",
        lines(chat / "mt_bench_question.jsonl.gz"),
        rows=True,
    )
    put(
        folder / "fastchat/llm_judge/data/vicuna_bench/question.jsonl",
        lines(chat / "vicuna_bench_question.jsonl.gz"),
        rows=True,
    )
    put(folder / "qa90_questions.jsonl", lines(benches / "llava_bench_coco/qa90_questions.jsonl.gz"), rows=True)
    prometheus = recorded / "prometheus"
    for name in ("vicuna_eval", "mt_bench_eval", "hhh_alignment_eval"):
        put(folder / f"{name}.json", whole(prometheus / f"{name}.json.gz"))
    put(folder / "testdata_pairwise.jsonl", lines(prometheus / "autoj_pairwise.jsonl.gz"), rows=True)
    put(folder / "sample_eval_data.jsonl", lines(prometheus / "perception_eval_sample.jsonl"), rows=True)
    put(folder / "testset-v1.json", whole(recorded / "pandalm/testset-v1.json"))
    put(folder / "human_annotations_with_scores.json", whole(recorded / "tifa/human_annotations_with_scores.json"))
    return [
        "auto-j", "biggen", "hhh", "llava-bench-coco", "llmbar", "mmrb2", "mt-bench", "mt-bench-turn-1", "pandalm",
        "perception-bench", "tifa", "vicuna", "vicuna-turn-1",
    ]  # fmt: skip
