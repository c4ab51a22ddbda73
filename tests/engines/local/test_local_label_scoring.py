"""Label probabilities against a reference that runs one full forward pass per label and sums by hand."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import tiny_models
from dikast.core.media import load_image
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.label_scoring import place
from dikast.engines.local.prompt import encode

Engines = Callable[[str], LocalEngine]

LABELS = ("1", "2", "10", "100", "0.5", "pass", "fail")
MARKERS = ("\n[RESULT] ", "\nScore:", ' "score": ')
TEXTS = ("good", "The response is good. It cites a source, but one claim is wrong.", "é 中 x")


def picture(width: int, height: int) -> Image:
    from PIL import Image as Pictures

    made = Pictures.effect_noise((width, height), 80).convert("RGB")
    return Image.of(made)


def user(text: str, *images: Image) -> tuple[Message, ...]:
    return (Message("user", (*images, Span("Rate: ", trusted=True), Span(text))),)


def by_hand(
    engine: LocalEngine, text: str, images: Sequence[Image], reply: str, labels: Sequence[str]
) -> dict[str, float]:
    """Each joint string through the model's own processor or tokenizer, alone, unpadded; sums over label tokens."""
    loaded = engine._loaded
    content: Any = [*({"type": "image"} for _ in images), {"type": "text", "text": "Rate: " + text}]
    owner: Any = loaded.processor.vision.processor if loaded.processor.vision else loaded.tokens.tokenizer
    turns = [{"role": "user", "content": content if loaded.processor.template.takes_parts else "Rate: " + text}]
    rendered = owner.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    pictures = [load_image(image).picture for image in images]

    def inputs(string: str) -> Any:
        if not loaded.processor.vision:
            return loaded.tokens.tokenizer(string, add_special_tokens=False, return_tensors="pt")
        return owner(text=[string], images=[pictures] if pictures else None, return_tensors="pt")

    whole = {label: inputs(rendered + reply + label) for label in labels}
    ids = {label: made["input_ids"][0].tolist() for label, made in whole.items()}
    base = inputs(rendered + reply)["input_ids"][0].tolist()
    shared = 0
    while shared < len(base) and all(row[shared] == base[shared] for row in ids.values()):
        shared += 1
    sums = {}
    for label, made in whole.items():
        with torch.inference_mode():
            logits = loaded.model(**{k: v for k, v in made.items() if k != "token_type_ids"}).logits[0].float()
        steps = range(shared, len(ids[label]))
        sums[label] = sum(float(logits[t - 1].log_softmax(-1)[ids[label][t]]) for t in steps)
    found = {}
    for label in labels:
        longer = [other for other in labels if other != label and ids[other][: len(ids[label])] == ids[label]]
        longer = [o for o in longer if not any(m != o and ids[o][: len(ids[m])] == ids[m] for m in longer)]
        found[label] = math.log(math.exp(sums[label]) - sum(math.exp(sums[other]) for other in longer))
    return found


def check(completion: Completion, expected: dict[str, float]) -> None:
    assert completion.error is None
    assert completion.label_logprobs is not None
    assert list(completion.label_logprobs) == list(expected)
    for label, value in expected.items():
        assert completion.label_logprobs[label] == pytest.approx(value, abs=5e-5), label


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
@pytest.mark.parametrize("marker", MARKERS)
def test_score_only_reads_in_a_batch_equal_the_reference(family: str, marker: str, engine: Engines) -> None:
    model = engine(family)
    readout = Readout(LABELS, marker, generate=False)
    asked = [Request(str(i), user(text), readout=readout) for i, text in enumerate(TEXTS)]
    for completion in model.stream(asked):
        check(completion, by_hand(model, TEXTS[int(completion.key)], (), marker, LABELS))
        assert completion.marker == "forced"
        assert completion.text == ""
        assert completion.usage.tokens_out == 0


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_reads_with_images_in_a_batch_equal_the_reference(family: str, engine: Engines) -> None:
    model = engine(family)
    small, wide = picture(64, 64), picture(120, 56)
    shown: dict[str, tuple[str, tuple[Image, ...]]] = {
        "one": (TEXTS[0], (small,)),
        "two": (TEXTS[1], (small, wide)),
        "other": (TEXTS[1], (wide,)),
        "none": (TEXTS[1], ()),
    }
    readout = Readout(LABELS, MARKERS[0], generate=False)
    asked = [Request(key, user(text, *images), readout=readout) for key, (text, images) in shown.items()]
    for completion in model.stream(asked):
        text, images = shown[completion.key]
        check(completion, by_hand(model, text, images, MARKERS[0], LABELS))


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_batched_reads_equal_single_reads(family: str, engine: Engines) -> None:
    model = engine(family)
    readout = Readout(LABELS, MARKERS[0], generate=False)
    asked = [Request(str(i), user("good " * (1 + 7 * i)), readout=readout) for i in range(9)]
    together = {done.key: done.label_logprobs for done in model.stream(asked)}
    for request in asked:
        (alone,) = model.stream([request])
        assert alone.label_logprobs == pytest.approx(together[request.key], abs=5e-5)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_labels_that_end_the_set_sum_to_at_most_one(family: str, engine: Engines) -> None:
    labels = tuple(str(n) for n in range(101))
    (done,) = engine(family).stream([Request("k", user("x"), readout=Readout(labels, "\n[RESULT] ", generate=False))])
    assert done.label_logprobs is not None
    assert 0 < sum(math.exp(value) for value in done.label_logprobs.values()) <= 1 + 1e-6


def test_a_longer_label_is_taken_off_the_shorter(engine: Engines) -> None:
    """Read alone, "1" holds what goes on to "10"; together with "10" it does not, and "100" comes off "10" alone."""
    model = engine("qwen")  # its tokenizer splits every digit

    def read(*labels: str) -> list[float]:
        (done,) = model.stream([Request("k", user("x"), readout=Readout(labels, "\nScore:", generate=False))])
        assert done.label_logprobs is not None
        return [math.exp(value) for value in done.label_logprobs.values()]

    (one,), (ten,), (hundred,) = read("1"), read("10"), read("100")
    assert read("1", "10", "100") == pytest.approx([one - ten, ten - hundred, hundred], rel=1e-4)
    assert ten > 0


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_forced_marker_follows_what_the_model_wrote(family: str, engine: Engines) -> None:
    """Choices make the model end in text that its tokenizer would write, so the reference can join it."""
    model = engine(family)
    readout = Readout(LABELS, MARKERS[0])
    (done,) = model.stream([Request("k", user("good"), readout=readout, choices=("The response is good.",))])
    assert (done.text.strip(), done.finish, done.marker) == ("The response is good.", "stop", "forced")
    check(done, by_hand(model, "good", (), done.text + MARKERS[0], LABELS))


@pytest.mark.parametrize("lead", ["\n", " "])
def test_a_forced_marker_is_led_in(lead: str, engine: Engines) -> None:
    model = engine("llama")
    readout = Readout(LABELS, "Score:", lead=lead)
    (done,) = model.stream([Request("k", user("good"), readout=readout, choices=("The response is good.",))])
    check(done, by_hand(model, "good", (), f"{done.text}{lead}Score:", LABELS))


def test_a_prefill_that_ends_with_the_marker_gets_no_other(engine: Engines) -> None:
    model = engine("llama")
    readout = Readout(LABELS, "Score:", generate=False)
    (done,) = model.stream([Request("k", user("good"), prefill="It is fine.\nScore:", readout=readout)])
    check(done, by_hand(model, "good", (), "It is fine.\nScore:", LABELS))


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_an_own_marker_stops_the_reply_and_is_read_there(family: str, engine: Engines) -> None:
    model = engine(family)
    whole = "The response is good.\n[RESULT] 4 and more"
    readout = Readout(LABELS, "[RESULT] ")
    (done,) = model.stream([Request("k", user("good"), readout=readout, choices=(whole,))])
    assert (done.marker, done.finish) == ("own", "stop")
    assert done.text.lstrip() == "The response is good.\n[RESULT] "
    check(done, by_hand(model, "good", (), done.text, LABELS))


def test_a_reply_in_unusual_tokens_is_kept_as_written(engine: Engines) -> None:
    """The tokenizer would write "good" as one token; a model that spelled it is read behind its own spelling."""
    loaded = engine("llama")._loaded
    prompt = encode(user("x"), loaded.processor)
    spelled = [
        loaded.tokens.tokenizer.convert_tokens_to_ids(letter) for letter in "The answer is good".replace(" ", "Ġ")
    ]
    read = place(prompt, spelled, "The answer is good\nScore: ", ("4", "5"), loaded.tokens)
    assert read.context[: len(prompt.ids) + len(spelled)] == [*prompt.ids, *spelled]
    rest = [loaded.tokens.decode([*read.context[len(prompt.ids) + len(spelled) :], *label]) for label in read.labels]
    assert rest == ["\nScore: 4", "\nScore: 5"]


def test_nothing_is_read_at_the_token_limit(engine: Engines) -> None:
    (done,) = engine("llama").stream(
        [Request("k", user("x"), Sampling(max_tokens=3), readout=Readout(LABELS, "\n[RESULT] "))]
    )
    assert (done.finish, done.label_logprobs, done.marker) == ("length", None, None)
