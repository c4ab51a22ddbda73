"""Pairs of responses to learn a preference from: their configuration, and the examples made of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dikast.core.checking import MOST_COUNT, MOST_NUMBER, option
from dikast.core.errors import DataError
from dikast.core.gold import gold_of_pair
from dikast.core.part import Text, text_of
from dikast.core.rubric import Rubric
from dikast.core.text import counted
from dikast.judging.settling import with_frames
from dikast.prompts.ask import prompt_alone
from dikast.prompts.target import Reply
from dikast.training.config import Config, Data, config_as
from dikast.training.data.examples import Asker, Example, ExampleRow

_UNUSED = ("formats", "images", "one_format", "rubric", "talk")


@dataclass(frozen=True, slots=True)
class PreferenceConfig(Config):
    """A run of direct preference optimisation (Rafailov et al. 2023); the rest as in `Config`.

    `data` are files of items with two responses whose gold says which is better, as `dikast align` and `prefs` make
    them. `batch_size` and `max_tokens` are of pairs and of one response with its prompt.
    beta: how strongly the log-ratios to the reference count. dpo_alpha: the weight of the preference loss. sft_weight:
    of the negative log-likelihood of the better response, in nats a token (0: none; `gamma` of LLaVA-NeXT). dpop: of
    the penalty on a better response that has become less likely than under the reference (DPO-positive, Pal et al.
    2024; 0: none).

    Defaults are those of LLaVA-NeXT's `scripts/train/dpo_ov7b.sh` for the loss, the rate, its schedule and the decay;
    `betas` are AdamW's own.
    """

    pack: Literal["none", "rows", "trees"] = "trees"
    learning_rate: float = option(5e-7, above=0, most=MOST_NUMBER)
    warmup: float = option(0.1, least=0, most=MOST_COUNT)
    betas: tuple[float, float] = option((0.9, 0.999), least=0, below=1)
    batch_size: int = option(8, least=1, most=MOST_COUNT)
    beta: float = option(0.1, above=0, most=MOST_NUMBER)
    dpo_alpha: float = option(1.0, least=0, most=MOST_NUMBER)
    sft_weight: float = option(0.0, least=0, most=MOST_NUMBER)
    dpop: float = option(0.0, least=0, most=MOST_NUMBER)


def load_preference_config(source: str | Path | Mapping[str, Any]) -> PreferenceConfig:
    """A configuration from a YAML file or a mapping; DataError with line, key and cure for every mistake in it."""
    return config_as(PreferenceConfig, source, _check)


def _check(config: PreferenceConfig, wrong: Callable[..., None]) -> None:
    plain = Data()
    for i, data in enumerate(config.data):
        for name in _UNUSED:
            if getattr(data, name) != getattr(plain, name):
                wrong("pairs are shown as they are, from 'items': leave it out", "data", i, name)
    for name in ("augment", "eval", "label_loss_weight", "label_smoothing"):
        if getattr(config, name) != getattr(PreferenceConfig(out="", data=()), name):
            wrong("applies to judges, in `train sft`: leave it out", name)
    if config.dpo_alpha == config.sft_weight == 0:
        wrong("with 'sft_weight: 0' too nothing is learnt: give one of them", "dpo_alpha")


class PairAsker:
    """Makes two examples of each item: its instruction with the better response, then with the worse one."""

    def __init__(self, config: PreferenceConfig) -> None:
        self._config = config

    def about(self) -> list[Any]:
        """Properties besides data and settings that determine the examples."""
        return ["preference", 1]

    def examples(self, row: ExampleRow) -> Iterator[Example]:
        """The two examples of a row. DataError, naming the record, for anything but a pair with a preference."""
        item = row.record
        if len(item.responses) != 2:
            told = f"item {item.id!r} has {counted(len(item.responses), 'response')}, and a preference is between two"
            raise DataError(told, path=item.origin, field="responses")
        rubric = item.rubric
        if rubric is not None and not isinstance(rubric, Rubric):
            told = f"item {item.id!r} has a sheet of several criteria: give its 'gold' as 'a' or 'b' and no rubric"
            raise DataError(told, path=item.origin, field="rubric")
        said = gold_of_pair(item.gold, rubric.name if rubric else "", (0, 1), rubric.scale if rubric else None)
        if said not in ("a", "b"):
            told = f"item {item.id!r}: expected 'a' or 'b', which response is better, got {said!r}"
            cure = "; a tie teaches no preference: leave it out" if said == "tie" else ""
            raise DataError(told + cure, path=item.origin, field="gold")
        replies = [text_of(response) for response in item.responses]
        for place, response in enumerate(item.responses):
            if any(not isinstance(part, Text) for part in response):
                told = f"item {item.id!r}: a model learns to write text, and this response shows a picture or a clip"
                raise DataError(told, path=item.origin, field=f"responses[{place}]")
        if replies[0] == replies[1]:
            told = f"item {item.id!r}: both responses are the same, which teaches no preference: leave it out"
            raise DataError(told, path=item.origin, field="responses")
        try:
            asked = prompt_alone(with_frames(item, (), self._config.frames))
        except DataError as error:
            raise DataError(str(error), path=item.origin) from error
        order = (0, 1) if said == "a" else (1, 0)
        for name, place in zip(("better", "worse"), order, strict=True):
            reply = Reply(replies[place], "")
            yield Example(f"{item.id}/{name}", item.origin, asked, reply, opening=asked)


def asker_of(config: Config) -> Asker | PairAsker:
    """The object that makes examples of the rows of a configuration."""
    return PairAsker(config) if isinstance(config, PreferenceConfig) else Asker(config)
