"""The glossary holds the field's terms, once each, and points to pages that are there."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = Path(__file__).parents[1] / "src" / "dikast"
PAGE = (DOCS / "glossary.md").read_text("utf-8")
ROWS = [row.strip("|").split("|") for row in PAGE.splitlines() if row.startswith("| ") and not row.startswith("| term")]

IMPLEMENTED = {  # the terms that people search for, and a module that implements each
    "confidence interval": "core/confidence", "inter-rater": "audit/statistics/rater_agreement",
    "hyperparameter": "training/config", "attention mask": "training/packed_attention",
    "loss mask": "training/data/encode", "prompt injection": "prompts/escape", "perturbation": "probes/changes",
    "adversarial": "testing/hostile", "few-shot": "prompts/format", "prompt template": "prompts/format",
    "length bias": "audit/statistics/length_bias", "verbosity bias": "audit/statistics/length_bias",
    "reward model": "rewards/reward", "LLM-as-a-judge": "judging/judge", "synthetic": "worlds/__init__",
    "deduplication": "corpus/dedup/text_dedup", "data augmentation": "training/data/rubric_augmentation",
    "statistical power": "audit/statistics/sample_size", "learning rate": "training/schedule",
    "ground truth": "core/gold",
}  # fmt: skip
OF_THE_FIELD = {  # what the field calls things that had names of our own
    "label scoring": "engines/local/label_scoring", "logprob": "engines/local/label_scoring",
    "weighted rubric": "core/rubric", "baselines": "audit/sections/pair_baselines", "PPI": "audit/statistics/ppi",
    "alt-test": "audit/statistics/alt_test", "conformal": "audit/statistics/conformal",
    "event loop": "engines/http/event_loop", "transport": "engines/http/transport",
    "sanitise": "engines/http/sanitise", "growable": "engines/local/growable_cache",
    "install hints": "engines/local/install_hints", "contamination": "corpus/dedup/contamination",
    "image deduplication": "corpus/dedup/image_dedup", "record pool": "corpus/pipeline/record_pool",
    "post-processing": "corpus/pipeline/post_processing", "text images": "worlds/domains/text_images",
    "image edits": "worlds/domains/image_edits", "paraphrases": "worlds/domains/paraphrases",
    "vision alignment": "training/vision_alignment", "rubric augmentation": "training/data/rubric_augmentation",
    "single process": "training/processes", "distributed": "training/processes",
    "combined optimizer": "training/optimizer", "micro-batch": "training/data/batches",
}  # fmt: skip


def spelt(term: str) -> re.Pattern[str]:
    """The term in prose, or as a name."""
    return re.compile(re.sub(r"[ -]", r"[ _-]?", term), re.IGNORECASE)


@pytest.mark.parametrize("term", IMPLEMENTED)
def test_what_people_search_for_is_in_the_glossary(term: str) -> None:
    assert term.casefold() in PAGE.casefold()


@pytest.mark.parametrize(("term", "place"), [*IMPLEMENTED.items(), *OF_THE_FIELD.items()])
def test_what_people_search_for_is_said_where_it_is_implemented(term: str, place: str) -> None:
    """In the name of the module, or in a docstring of it."""
    path = SOURCE / f"{place}.py"
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)]
    told = [path.stem, *(ast.get_docstring(node) or "" for node in nodes)]
    assert any(spelt(term).search(each) for each in told), f"say {term!r} in {path}"


def test_each_term_stands_once_and_points_to_a_page() -> None:
    terms = [row[0].strip() for row in ROWS]
    assert len(terms) > 40
    assert len(set(terms)) == len(terms)
    for row in ROWS:
        assert len(row) == 4, row
        for target in re.findall(r"\]\(([^)]+)\)", row[2]):
            page, _, anchor = target.partition("#")
            headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text("utf-8"), re.M)
            assert anchor in {"", *(each.lower().replace(" ", "-") for each in headings)}, target
        assert row[3].strip(), f"{row[0]}: what else is it called?"
