"""The loss of an example, by hand: the weight of the label's tokens, and what of it other labels get."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import tiny_models
from dikast.training.config import load_config
from dikast.training.data.collate import collate, summed_loss
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.models.model import about, open_model
from dikast.training.processes import SingleProcess

Write = Callable[..., Path]


@pytest.mark.parametrize("pack", ["none", "rows"])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_other_labels_get_their_share_of_the_labels_weight(weight: float, pack: str, write_config: Write) -> None:
    config = load_config(write_config(family=tiny_models.FAMILIES[0], label_loss_weight=weight, label_smoothing=0.2))
    loaded = open_model(config)
    shards = prepare_shards(config, loaded, about(loaded), data_hash(config), SingleProcess())
    part, row = shards.find(0)
    ids, prompt = part.ids(row).astype(int), int(part.rows[row]["prompt"])
    others = part.others(row)
    assert len(others) >= 2
    logits = torch.randn(len(ids) - prompt, loaded.model.config.vocab_size, generator=torch.Generator().manual_seed(0))
    surprise = -logits.log_softmax(-1)  # of each token at each place of the reply, nats

    expected = 0.0
    first, last = part.rows[row]["label"]
    for place in range(prompt, len(ids)):
        counts = weight if weight != 1 and first <= place < last else 1.0
        instead = [int(other["token"]) for other in others if other["place"] == place]
        share = 0.2 / len(others)
        expected += counts * (1 - share * len(instead)) * float(surprise[place - prompt, ids[place]])
        expected += counts * share * sum(float(surprise[place - prompt, token]) for token in instead)

    smooth = collate(shards, [0], loaded, label_weight=weight, label_smoothing=0.2, pack=pack)  # type: ignore[arg-type]
    assert float(summed_loss(logits, smooth)) == pytest.approx(expected, rel=1e-5)
    plain = collate(shards, [0], loaded, label_weight=weight, pack=pack)  # type: ignore[arg-type]
    assert float(smooth.weights.sum()) == pytest.approx(float(plain.weights.sum()))
    assert smooth.learnt == plain.learnt == len(ids) - prompt
    assert [len(each) for each in smooth.replies] == [plain.learnt]
    assert smooth.targets[smooth.replies[0]].tolist() == ids[prompt:].tolist()
