"""Forty questions of a newcomer, each with the term that the field uses: does a search of the source lead to the file?

A file is found if it is among the first five files of `src/dikast` by how often they hold the term (case ignored). Run
with `python -m benchmarks.findability`; it prints the misses with what was found in their place.
"""

from functools import cache
from pathlib import Path

FIRST = 5
SOURCE = Path(__file__).parents[1] / "src" / "dikast"
# where is ...? | term that is searched for | file that answers
QUESTIONS = """
the delay before a retry worked out | retry | engines/http/failure.py
the time-out of a request | timeout | engines/http/transport.py
the number of requests in flight limited | in flight | engines/http/limit.py
load balanced over several servers | load balancing | engines/http/servers/server_pool.py
the health of a server checked | health check | engines/http/servers/server_pool.py
the probability of a label read | label scoring | engines/local/label_scoring.py
a shared prefix of prompts computed once | prefix | engines/local/sharing/trie.py
a special token in user text kept as text | special token | engines/local/tokens.py
a picture downloaded | download | core/media/fetch.py
an API key kept out of files | secret | core/secrets.py
Cohen's kappa computed | kappa | audit/statistics/agreement.py
Krippendorff's alpha computed | krippendorff | audit/statistics/rater_agreement.py
inter-rater agreement reported | inter-rater | audit/sections/raters.py
a bootstrap interval drawn | bootstrap | audit/statistics/intervals.py
prediction-powered inference | prediction-powered | audit/statistics/ppi.py
the alternative annotator test | alternative annotator | audit/statistics/alt_test.py
the expected calibration error | expected calibration error | audit/results.py
a temperature fitted | temperature | audit/statistics/calibration.py
conformal intervals | conformal | audit/statistics/conformal.py
length bias measured | length bias | audit/statistics/length_bias.py
position bias measured | position bias | audit/sections/pairwise.py
the win rate of a player | win rate | audit/statistics/paired_comparison/ranking.py
a Bradley-Terry model fitted | bradley-terry | audit/statistics/paired_comparison/bradley_terry.py
statistical power and sample size | sample size | audit/statistics/sample_size.py
prompt injection prevented | prompt injection | prompts/escape.py
a prompt template rendered | template | prompts/format.py
a reply parsed for its verdict | parse | prompts/parse.py
an ensemble of judges | panel | judging/panel.py
a run resumed | resum | judging/judge_file.py
near duplicates of text found | near duplicate | corpus/dedup/text_dedup.py
contamination by a benchmark | contamination | corpus/dedup/contamination.py
data augmentation of rubrics | augmentation | training/data/rubric_augmentation.py
the loss mask of a prompt | masked in the loss | training/data/encode.py
the learning rate at a step | learning rate | training/schedule.py
the optimizer chosen | optimizer | training/optimizer.py
LoRA adapters added | lora | training/models/model.py
direct preference optimisation | preference optimisation | training/dpo.py
best-of-n chosen | best of n | rewards/best_of_n.py
a perturbation of an item | perturbation | probes/changes.py
a stratified sample of a benchmark | stratified | benches/subset.py
"""


@cache
def texts() -> dict[str, str]:
    """The source by path, in lower case."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text("utf-8").lower() for path in sorted(SOURCE.rglob("*.py"))
    }


def hits(term: str) -> list[str]:
    """Files of the source by how often they hold the term, most first; equal ones by path."""
    counts = {name: text.count(term) for name, text in texts().items()}
    return sorted((name for name, n in counts.items() if n), key=lambda name: (-counts[name], name))


def rows() -> list[tuple[str, str, str]]:
    """Question, term and file, as the table above has them."""
    parts = [[part.strip() for part in line.split("|")] for line in QUESTIONS.strip().splitlines()]
    return [(question, term, file) for question, term, file in parts]


def main() -> None:
    """Print each miss, and how many of the questions are answered within the first hits."""
    found, questions = 0, rows()
    for question, term, file in questions:
        first = hits(term)[:FIRST]
        found += file in first
        if file not in first:
            print(f"missed: where is {question}? {term!r} leads to {', '.join(first) or 'nothing'}, not to {file}")
    print(f"{found} of {len(questions)} found within the first {FIRST} files")


if __name__ == "__main__":
    main()
