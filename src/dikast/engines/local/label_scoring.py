"""Label scoring: the probability (logprob) of each label at the end of the verdict marker.

Label scoring takes no generated text: labels follow the prompt, or the reply up to its marker.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from dikast.engines.local.batch import TokenRow
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.tokens import Piece, Tokens

# Text after a reply may merge with its last tokens, but not with more; a difference further back means that the model
# did not write its reply as the tokenizer would.
_MOST_MERGED = 4


@dataclass(frozen=True, slots=True)
class Read:
    """Token ids before the labels, and the ids of each label after them; the prompt holds the images."""

    prompt: Prompt
    context: list[int]
    labels: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not all(self.labels):
            raise ValueError("a label without tokens cannot be read")


def place(prompt: Prompt, reply: Sequence[int], text: str, labels: Sequence[str], tokens: Tokens) -> Read:
    """Where to read `labels` after `text`, the reply up to the end of its marker, of which the model wrote `reply`.

    The labels are tokenised together with all the text before them, as the model would see it: "4" after "Score: " may
    be the token " 4", so the context is the tokens that prompt + text and every prompt + text + label share. If the
    model wrote other tokens than the tokenizer would, they are kept; marker and labels are then tokenised together,
    after a character that does not merge with them.
    """
    base = prompt.continued(text, tokens)
    whole = [prompt.continued(text + label, tokens) for label in labels]
    shared = _shared([base, *whole])
    written = [*prompt.ids, *reply]
    agreed = _shared([base[:shared], written])
    if agreed >= min(shared, len(written)) - _MOST_MERGED and agreed >= len(prompt.ids) - _MOST_MERGED:
        return _read(prompt, base[:shared], [ids[shared:] for ids in whole])
    kept, rest = _as_written(prompt, reply, text, tokens)
    base, *whole = behind_anchor([rest, *(rest + label for label in labels)], tokens)
    shared = _shared([base, *whole])
    return _read(prompt, [*prompt.ids, *kept, *base[:shared]], [ids[shared:] for ids in whole])


class LabelRow(NamedTuple):
    """A prefix of labels after the context of read number `read`; logits are needed after its last `keep` ids."""

    read: int
    row: TokenRow
    keep: int


def label_logprobs(
    reads: Sequence[Read], logits: Callable[[Sequence[LabelRow]], Iterable[torch.Tensor]]
) -> list[list[float]]:
    """Natural logarithms of each label's absolute probability, for each read; computed in float32.

    A label's probability is the product over its tokens, less the probability of every longer label of the same read
    that begins with the same tokens. `logits` gives those of each row, (keep, vocabulary) in float32.
    """
    paths = [(i, path) for i, read in enumerate(reads) for path in _paths(read.labels)]
    rows = [LabelRow(i, TokenRow(reads[i].prompt, [*reads[i].context, *path]), len(path) + 1) for i, path in paths]
    found: list[dict[tuple[int, ...], float]] = [{} for _ in reads]
    for (i, path), computed in zip(paths, logits(rows), strict=True):
        logprobs = computed.log_softmax(-1)
        for label in reads[i].labels:
            if label[:-1] == path[: len(label) - 1] and len(label) - 1 <= len(path):
                found[i][label] = _teacher_forced(logprobs, label)
    return [less_longer(read.labels, sums) for read, sums in zip(reads, found, strict=True)]


def _teacher_forced(logprobs: torch.Tensor, label: Sequence[int]) -> float:
    """The sum over the label's tokens; row t of `logprobs` (tokens + 1, vocabulary) is what comes after t of them."""
    steps = torch.arange(len(label), device=logprobs.device)
    return float(logprobs[steps, torch.tensor(label, device=logprobs.device)].sum())


def _paths(labels: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The label prefixes that must go through the model so that every label's last token can be scored."""
    beginnings = {label[:-1] for label in labels}
    return sorted(b for b in beginnings if not any(b != other and other[: len(b)] == b for other in beginnings))


def less_longer(labels: Sequence[tuple[int, ...]], sums: dict[tuple[int, ...], float]) -> list[float]:
    """Log-probabilities of the labels from those of their tokens together, without what goes on into longer labels."""
    found = []
    for label in labels:
        longer = [other for other in sums if len(other) > len(label) and other[: len(label)] == label]
        nearest = [o for o in longer if not any(o != m and o[: len(m)] == m for m in longer)]
        left = 1 - sum(math.exp(sums[other] - sums[label]) for other in nearest)
        found.append(sums[label] + math.log(left) if left > 0 else -math.inf)
    return found


def _read(prompt: Prompt, context: list[int], labels: list[list[int]]) -> Read:
    return Read(prompt, context, tuple(tuple(label) for label in labels))


def _shared(rows: Sequence[list[int]]) -> int:
    """The length of the common prefix of all rows; of several rows, only the first may be used up entirely."""
    low, high = min(rows), max(rows)  # of sorted rows, those in between share what the first and the last do
    return next((n for n, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))


def _as_written(prompt: Prompt, reply: Sequence[int], text: str, tokens: Tokens) -> tuple[list[int], str]:
    """The longest beginning of the reply's ids before the end of `text`, and the text that remains."""
    for n in range(len(reply), 0, -1):
        known = tokens.decode(reply[:n], after=prompt.ids)
        if text.startswith(known):
            return list(reply[:n]), text[len(known) :]
    return [], text


def behind_anchor(texts: Sequence[str], tokens: Tokens) -> list[list[int]]:
    """Token ids of texts in the middle of other text (no mark of a first word)."""
    for anchor in ("\n", ".", "a", "="):
        lead = tokens.encode([Piece(anchor)])
        whole = [tokens.encode([Piece(anchor + text)]) for text in texts]
        if all(ids[: len(lead)] == lead for ids in whole):
            return [ids[len(lead) :] for ids in whole]
    return [tokens.encode([Piece(text)]) for text in texts]
