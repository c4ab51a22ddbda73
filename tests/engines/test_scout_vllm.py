"""The judge that ships inside, served by vLLM: the same scores as through the local engine."""

from pathlib import Path

import pytest

from dikast.core.records.items import read_items
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples

servers = pytest.importorskip("engines.live_servers")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]


def test_vllm_gives_the_same_scores(tmp_path: Path) -> None:
    from dikast.engines.scout import folder

    servers.vllm_python()  # skips without an environment
    file = write_samples(make(Settings(split="fresh", seed=41), 4), tmp_path / "items", {"test": 1}).files[0]
    own = {v.question.item: v for v in Judge("scout").grade_many(read_items(str(file)))}
    with servers.vllm_server(folder(), tmp_path / "home", name="scout") as address:
        engine = open_engine(f"{address}/v1#scout,retries=1,timeout=120,top_logprobs=100,continues=yes")
        served = {v.question.item: v for v in Judge(engine, format="scout").grade_many(read_items(str(file)))}
    assert own.keys() == served.keys()
    for item, verdict in own.items():
        other = served[item]
        assert (other.status, other.label) == (verdict.status, verdict.label)
        assert other.claims == verdict.claims
        assert verdict.distribution is not None
        assert other.distribution is not None
        for label, probability in verdict.distribution.items():
            assert other.distribution[label] == pytest.approx(probability, abs=1e-3)
