"""`python -m benchmarks.prefix`: what it takes to judge a round robin whose pairs share their task, on one core.

A random Llama model of 34 million parameters reads the label of all ordered pairs of K responses. Every row is timed by
turns in one process, in CPU seconds, and the ratios are of medians. `logits pair by pair` is one forward pass of
transformers for each pair; `generate` writes 64 tokens for each; `share=no` is the engine in padded batches. The bound
is the ratio of the tokens of all pairs to those of the smallest tree.

    python -m benchmarks.prefix --prefix 600,3000 --k 5,8 --write
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dikast.core.message import Message, Span
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.batch import TokenRow, last_logits
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.execution import Alone
from dikast.engines.local.sharing.trie import Tree

MARKS = ("<!-- prefix -->", "<!-- /prefix -->")
PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "engines.md"
LENGTHS = (30, 38, 45, 52, 60)  # tokens of the responses, in turn
VOCABULARY = 8192
LABELS = ("w3", "w4", "w5")
ROUNDS = 5
TOKENS = 64  # of a reply


@dataclass(frozen=True)
class Row:
    """One measurement of a round robin. Seconds are of CPU and for all pairs, scoring labels unless said otherwise."""

    prefix: int
    k: int
    asked: int  # tokens
    computed: int
    least: int  # tokens of the smallest tree
    shared: float
    alone: float
    padded: float
    replies: float | None  # of 64 tokens, sharing
    generated: float | None  # of 64 tokens, pair by pair by transformers
    difference: float  # the largest of a log-probability from that of the pair alone

    @property
    def cells(self) -> list[str]:
        """The row as text."""
        ratios = [f"{each / self.shared:.2f}x" for each in (self.alone, self.padded)]
        replies = ["", ""]
        if self.generated is not None and self.replies is not None:
            replies = [f"{self.generated / each:.1f}x" for each in (self.shared, self.replies)]
        return [
            f"{self.prefix:,}", str(self.k), f"{self.asked:,}", f"{self.computed:,}", f"{self.asked / self.least:.2f}x",
            f"{self.shared:.2f} s", *ratios, *replies, f"{self.difference:.0e}",
        ]  # fmt: skip


HEADER = (
    "prefix", "K", "tokens asked", "computed", "bound", "CPU", "than logits pair by pair", "than `share=no`",
    f"than writing {TOKENS} tokens pair by pair", "replies than pair by pair", "largest difference",
)  # fmt: skip


def build(folder: Path) -> Path:
    """A random model and a tokenizer in which every word `w17` is a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"<end>": 0, "<pad>": 1, "Score:": 2, **{f"w{n}": n for n in range(3, VOCABULARY)}}
    backend = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, eos_token="<end>", pad_token="<pad>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] + ' <end> ' }}{% endfor %}"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=512, intermediate_size=1280, num_hidden_layers=10, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=16384, eos_token_id=0, pad_token_id=1, tie_word_embeddings=False,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def requests(prefix: int, k: int, *, reply: bool = False) -> list[Request]:
    """All ordered pairs of k responses behind a task of `prefix` tokens."""
    rng = np.random.default_rng(prefix + k)

    def text(tokens: int) -> str:
        return " ".join(f"w{n}" for n in rng.integers(3, VOCABULARY, tokens))

    task, closing = text(prefix), text(10)
    responses = [text(LENGTHS[n % len(LENGTHS)]) for n in range(k)]
    read = None if reply else Readout(LABELS, " Score: ", generate=False)
    return [
        Request(
            f"{i}-{j}",
            (Message("user", (Span(" ".join([task, responses[i], responses[j], closing])),)),),
            readout=read, sampling=Sampling(max_tokens=TOKENS),
        )
        for i in range(k) for j in range(k) if i != j
    ]  # fmt: skip


def spent(run: Callable[[], Any]) -> float:
    """CPU seconds."""
    since = time.process_time()
    run()
    return time.process_time() - since


def measure(engine: LocalEngine, prefix: int, k: int, rounds: int, *, replies: bool) -> Row:
    """All that is measured of one round robin."""
    asked = requests(prefix, k)
    loaded = engine._loaded
    marker = loaded.tokens.tokenizer("Score:")["input_ids"]
    prompts = [engine._job(request).prompt for request in asked]
    rows = [TokenRow(prompt, [*prompt.ids, *marker]) for prompt in prompts]
    trees, padded = engine._execution, Alone(loaded, 8)

    def alone() -> list[torch.Tensor]:
        return [last_logits([row], loaded, 1) for row in rows]

    def with_padding() -> None:
        engine._execution = padded
        list(engine.stream(asked))
        engine._execution = trees

    def shared() -> list[Completion]:
        return list(engine.stream(asked))

    before = engine.work["tokens_computed"]
    found = {done.key: done.label_logprobs for done in shared()}
    computed = engine.work["tokens_computed"] - before
    ids = [loaded.tokens.tokenizer(label)["input_ids"][0] for label in LABELS]
    far = []
    for request, logits in zip(asked, alone(), strict=True):
        logprobs = found[request.key]
        assert logprobs is not None
        exact = logits[0, -1].log_softmax(-1)[ids].tolist()
        far += [abs(logprobs[label] - value) for label, value in zip(LABELS, exact, strict=True)]
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for run in (shared, alone, with_padding):
            times.setdefault(run.__name__, []).append(spent(run))
    least = Tree([np.array(row.ids) for row in rows], least=1).tokens
    written, generated = _replies(engine, prefix, k, rows) if replies else (None, None)
    return Row(
        prefix, k, sum(len(row.ids) for row in rows), computed, least, median(times["shared"]), median(times["alone"]),
        median(times["with_padding"]), written, generated, max(far),
    )  # fmt: skip


def _replies(engine: LocalEngine, prefix: int, k: int, rows: Sequence[TokenRow]) -> tuple[float, float]:
    """CPU seconds of replies of 64 tokens: together, and pair by pair by transformers."""
    asked, model = requests(prefix, k, reply=True), engine._loaded.model
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=TOKENS, min_new_tokens=TOKENS, pad_token_id=1
    )

    def pair_by_pair() -> None:
        for row in rows:
            ids = torch.tensor([list(row.ids)])
            model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)

    done: list[Completion] = []
    together = spent(lambda: done.extend(engine.stream(asked)))
    assert sum(each.usage.tokens_out for each in done) >= 0.9 * TOKENS * len(asked)
    return together, spent(pair_by_pair)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def written(page: str, rows: Sequence[Row]) -> str:
    """The page with the rows between its marks."""
    begin, end = page.index(MARKS[0]) + len(MARKS[0]), page.index(MARKS[1])
    return f"{page[:begin]}\n{table(rows)}\n{page[end:]}"


def numbers(text: str) -> list[int]:
    """`600,3000` as numbers."""
    return [int(part) for part in text.split(",")]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prefix", description=__doc__)
    parser.add_argument("--prefix", type=numbers, default=[600, 3000], help="tokens that all pairs share")
    parser.add_argument("--k", type=numbers, default=[5], help="responses")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="one row: prefix 600, K=5, one round, no replies")
    parser.add_argument("--replies", action="store_true", help="also replies, once, where the prefix is 600 or shorter")
    parser.add_argument("--json", action="store_true", help="rows as JSON lines")
    parser.add_argument(
        "--write", action="store_true", help=f"write the table into {PAGE.relative_to(PAGE.parents[1])}"
    )
    given = parser.parse_args(argv)
    if given.quick:
        given.prefix, given.k, given.rounds = [600], [5], 1
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        engine = LocalEngine(str(build(Path(folder))), device="cpu")
        for prefix in given.prefix:
            for k in given.k:
                rows.append(measure(engine, prefix, k, given.rounds, replies=given.replies and prefix <= 600))
                print(json.dumps(asdict(rows[-1])) if given.json else " | ".join(rows[-1].cells), flush=True)
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), rows), "utf-8")


if __name__ == "__main__":
    main()
