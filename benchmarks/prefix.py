"""`python -m benchmarks.prefix`: what it takes to judge a round robin whose pairs share their task, on one core.

A random Llama model of 34 million parameters reads the label of all ordered pairs of K responses. Every row is timed by
turns in one process, in CPU seconds, and the ratios are of medians. `logits pair by pair` is one forward pass of
transformers for each pair; `generate` writes 64 tokens for each; `share=no` is the engine in padded batches. The first
two are timed on a few pairs (`--pairs`) and count for all by their tokens. The bound is the ratio of the tokens of all
pairs to those of the smallest tree, and beside it that of the operations of their layers: a token of a response attends
to the whole prefix, one of the prefix to half of it, so that less is saved than tokens. `--bounds` prints both ratios
for each prefix and K and measures nothing. With `--replies`, where the prefix is at most 600 and K is 5: replies of 64
tokens, of one round robin and of three that are asked together.

    python -m benchmarks.prefix --prefix 600,3000 --k 5,8 --replies --write
    python -m benchmarks.prefix --prefix 300,600,3000,8000 --k 2,5,8,16 --bounds
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
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
TOGETHER = 3  # round robins whose replies are written together
LAYERS, WIDTH, INNER, HEADS, KEY_HEADS = 10, 512, 1280, 8, 2  # of the model


@dataclass(frozen=True)
class Row:
    """One measurement of a round robin. Seconds are of CPU and for all pairs, scoring labels unless said otherwise."""

    prefix: int
    k: int
    asked: int  # tokens
    computed: int
    least: int  # tokens of the smallest tree
    operations: float  # those of all pairs over those of the smallest tree
    shared: float
    alone: float
    padded: float | None  # where the prefix is at most 600
    bytes: int  # of keys and values held at once, scoring labels
    replies: float | None  # of 64 tokens, sharing
    together: float | None  # the same of one of three round robins that are asked together
    generated: float | None  # of 64 tokens, pair by pair by transformers
    difference: float  # the largest of a log-probability from that of the pair alone

    @property
    def cells(self) -> list[str]:
        """The row as text."""

        def times(one: float | None, other: float | None) -> str:
            return "" if one is None or other is None else f"{one / other:.2f}x"

        bound = self.asked / self.least
        return [
            f"{self.prefix:,}", str(self.k), f"{self.asked:,}", f"{self.computed:,}", f"{self.bytes / 1e6:.1f} MB",
            f"{bound:.2f}x", f"{self.operations:.2f}x", f"{self.shared:.2f} s", times(self.alone, self.shared),
            f"{self.alone / self.shared / bound:.0%}", times(self.padded, self.shared),
            times(self.generated, self.shared), times(self.generated, self.replies),
            times(self.generated, self.together), f"{self.difference:.0e}",
        ]  # fmt: skip


HEADER = (
    "prefix", "K", "tokens asked", "computed", "keys and values", "bound", "by operations", "CPU",
    "than logits pair by pair", "of the bound", "than `share=no`", f"than writing {TOKENS} tokens pair by pair",
    "replies than pair by pair", f"of {TOGETHER} together", "largest difference",
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
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, max_position_embeddings=16384, eos_token_id=0,
        pad_token_id=1, tie_word_embeddings=False,
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


def bounds(rows: Sequence[Sequence[int]]) -> tuple[Tree, float]:
    """The smallest tree of rows, and how many times fewer operations its layers take than those of each row alone."""

    def operations(tree: Tree) -> float:
        weights = 2 * WIDTH * WIDTH * (1 + KEY_HEADS / HEADS) + 3 * WIDTH * INNER
        found, before, begin = 0.0, list[int](), 0
        for end, parent in zip(tree.ends, tree.parents, strict=True):
            tokens, known = end - begin, before[parent] if parent >= 0 else 0
            seen = tokens * known + tokens * (tokens + 1) / 2  # keys of all of its tokens
            found += 2 * weights * tokens + 4 * WIDTH * seen
            before.append(known + tokens)
            begin = end
        return found

    tree = Tree([np.array(row) for row in rows], least=1)
    return tree, sum(operations(Tree([np.array(row)])) for row in rows) / operations(tree)


def print_bounds(prefix: int, k: int) -> None:
    """Both bounds of a round robin, from its tokens alone."""
    texts = (request.messages[0].text for request in requests(prefix, k))
    rows = [[*(int(word[1:]) for word in text.split()), 0, 2] for text in texts]
    tree, operations = bounds(rows)
    tokens = sum(map(len, rows)) / tree.tokens
    print(f"{prefix:,} | {k} | {tokens:.2f}x | {operations:.2f}x | {operations / tokens:.0%}", flush=True)


def spent(run: Callable[[], Any]) -> float:
    """CPU seconds."""
    since = time.process_time()
    run()
    return time.process_time() - since


class Run:
    """One round robin, and all that is timed of it."""

    def __init__(self, engine: LocalEngine, prefix: int, k: int, pairs: int) -> None:
        self.engine, self.loaded, self.prefix, self.k = engine, engine._loaded, prefix, k
        self.asked = requests(prefix, k)
        marker = self.loaded.tokens.tokenizer("Score:")["input_ids"]
        prompts = [engine._job(request).prompt for request in self.asked]
        self.rows = [TokenRow(prompt, [*prompt.ids, *marker]) for prompt in prompts]
        few = np.unique(np.linspace(0, len(self.rows) - 1, pairs).astype(int))
        self.few = [self.rows[i] for i in few]
        self.share = sum(len(row.ids) for row in self.few) / sum(len(row.ids) for row in self.rows)

    def shared(self) -> float:
        """Labels by the tree."""
        return self._streamed(self.asked)

    def alone(self) -> float:
        """Labels pair by pair, by transformers alone."""
        return float(spent(lambda: [last_logits([row], self.loaded, 1) for row in self.few]) / self.share)

    def padded(self) -> float:
        """Labels with `share=no`."""
        trees = self.engine._execution
        self.engine._execution = Alone(self.loaded, 8)
        try:
            return self._streamed(self.asked)
        finally:
            self.engine._execution = trees

    def replies(self) -> float:
        """Replies of 64 tokens over the tree."""
        return self._streamed(requests(self.prefix, self.k, reply=True))

    def together(self) -> float:
        """The same, a round robin of three that are asked together."""
        several = [
            replace(request, key=f"{n} {request.key}")
            for n in range(TOGETHER) for request in requests(self.prefix + n, self.k, reply=True)
        ]  # fmt: skip
        return self._streamed(several) / TOGETHER

    def generated(self) -> float:
        """Replies pair by pair, by transformers alone."""
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, max_new_tokens=TOKENS, min_new_tokens=TOKENS, pad_token_id=1
        )

        def pair_by_pair() -> None:
            for row in self.few[: max(1, len(self.few) // 2)]:
                ids = torch.tensor([list(row.ids)])
                self.loaded.model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)

        part = sum(len(row.ids) for row in self.few[: max(1, len(self.few) // 2)])
        return spent(pair_by_pair) * sum(len(row.ids) for row in self.rows) / part

    def difference(self) -> float:
        """The largest difference of a log-probability from that of the pair by itself, over the few pairs."""
        found = {done.key: done.label_logprobs for done in self.engine.stream(self.asked)}
        ids = [self.loaded.tokens.tokenizer(label)["input_ids"][0] for label in LABELS]
        far: list[float] = []
        for request, row in zip(self.asked, self.rows, strict=True):
            if not any(row is each for each in self.few):
                continue
            logprobs = found[request.key]
            assert logprobs is not None
            exact: list[float] = last_logits([row], self.loaded, 1)[0, -1].log_softmax(-1)[ids].tolist()
            far += [abs(logprobs[label] - value) for label, value in zip(LABELS, exact, strict=True)]
        return max(far)

    def _streamed(self, asked: list[Request]) -> float:
        done: list[Completion] = []
        time = spent(lambda: done.extend(self.engine.stream(asked)))
        wrote = [each.usage.tokens_out for each in done if each.finish != "error"]
        assert len(wrote) == len(asked)
        assert asked[0].readout is not None or sum(wrote) >= 0.9 * TOKENS * len(asked)
        return time


def measure(engine: LocalEngine, prefix: int, k: int, rounds: int, *, replies: bool, pairs: int) -> Row:
    """All that is measured of one round robin."""
    run = Run(engine, prefix, k, pairs)
    counts = engine._execution.trees.counts  # type: ignore[attr-defined]
    counts.peak_bytes = counts.tokens_computed = 0
    difference = run.difference()
    computed, held = counts.tokens_computed, counts.peak_bytes
    timed = [run.shared, run.alone]
    if prefix <= 600 and k <= 5:
        timed.append(run.padded)
    if replies and prefix <= 600:
        timed += [run.replies, run.together, run.generated]
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for each in timed:
            times.setdefault(each.__name__, []).append(each())
    medians: dict[str, Any] = {name: median(values) for name, values in times.items()}
    tree, operations = bounds([row.ids for row in run.rows])
    asked = sum(len(row.ids) for row in run.rows)
    optional = {name: medians.get(name) for name in ("padded", "replies", "together", "generated")}
    return Row(
        prefix, k, asked, computed, tree.tokens, operations, medians["shared"], medians["alone"], bytes=held,
        difference=difference, **optional,
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def written(page: str, table: str, marks: tuple[str, str] = MARKS) -> str:
    """The page with a table between its marks."""
    begin, end = page.index(marks[0]) + len(marks[0]), page.index(marks[1])
    return f"{page[:begin]}\n{table}\n{page[end:]}"


def numbers(text: str) -> list[int]:
    """`600,3000` as numbers."""
    return [int(part) for part in text.split(",")]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prefix", description=__doc__)
    parser.add_argument("--prefix", type=numbers, default=[600, 3000], help="tokens that all pairs share")
    parser.add_argument("--k", type=numbers, default=[5], help="responses")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--pairs", type=int, default=6, help="pairs that are timed by themselves, for all")
    parser.add_argument("--quick", action="store_true", help="one row: prefix 600, K=5, one round, no replies")
    parser.add_argument("--replies", action="store_true", help="also replies, where the prefix is 600 or shorter")
    parser.add_argument("--bounds", action="store_true", help="print the bounds alone")
    parser.add_argument("--json", action="store_true", help="rows as JSON lines")
    parser.add_argument(
        "--write", action="store_true", help=f"write the table into {PAGE.relative_to(PAGE.parents[1])}"
    )
    given = parser.parse_args(argv)
    if given.quick:
        given.prefix, given.k, given.rounds = [600], [5], 1
    if given.bounds:
        for prefix, k in product(given.prefix, given.k):
            print_bounds(prefix, k)
        return
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        engine = LocalEngine(str(build(Path(folder))), device="cpu")
        for prefix in given.prefix:
            for k in given.k:
                rows.append(
                    measure(engine, prefix, k, given.rounds, replies=given.replies and k == 5, pairs=given.pairs)
                )
                print(json.dumps(asdict(rows[-1])) if given.json else " | ".join(rows[-1].cells), flush=True)
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), table(rows)), "utf-8")


if __name__ == "__main__":
    main()
