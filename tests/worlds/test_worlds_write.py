import hashlib
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from dikast.core.canonical import canonical_json
from dikast.core.errors import UserError
from dikast.core.item import item_to
from dikast.core.records import read_items
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.drawing.font import text_mask
from dikast.worlds.drawing.raster import png
from dikast.worlds.make import Maker, make
from dikast.worlds.peek import peek
from dikast.worlds.sampling.held_out import HELD_OUT_DOMAIN
from dikast.worlds.sampling.rng import Stream, noise_of
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world

GOLDEN = Path(__file__).parent / "golden.json"


def _hashes(domain: str) -> dict[str, str]:
    """What must never change without a new generator version: JSON and decoded pixels of some items of each domain."""
    found = {}
    drawn = [
        (f"{domain}/{split}/{responses}", Settings(domain=domain, split=split, responses=responses, size=64))
        for split in (("train", "all") if domain != HELD_OUT_DOMAIN else ("domain",))
        for responses in (1, 2)
    ]
    split = "fresh" if domain != HELD_OUT_DOMAIN else "domain"
    drawn += [(f"{domain}/version 4", Settings(domain=domain, split=split, version=4, size=64))]
    for name, settings in drawn:
        maker = Maker(settings)
        text, pixels = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        for i in range(20):
            sample = maker.sample(i)
            text.update(canonical_json(item_to(sample.item())))
            for picture in sample.pictures():
                pixels.update(picture.tobytes())
        found[name] = f"{text.hexdigest()} {pixels.hexdigest()}"
    return found


@pytest.mark.parametrize("domain", sorted(DOMAINS))
def test_the_same_seed_gives_the_same_world_everywhere(domain: str) -> None:
    golden = orjson.loads(GOLDEN.read_bytes())
    assert _hashes(domain) == {key: value for key, value in golden.items() if key.startswith(f"{domain}/")}


def test_draws_are_a_function_of_key_and_count() -> None:
    # SplitMix64 from state 0, published with the algorithm: 0xE220A8397B1DCDAF is its first output.
    stream = Stream()
    stream._state = 0
    assert stream.below(1 << 64) == 0xE220A8397B1DCDAF
    assert Stream(1, "a").below(1000) == Stream(1, "a").below(1000)
    assert [Stream(1, 2).below(10**9), Stream(2, 1).below(10**9), Stream(12).below(10**9)] != [0, 0, 0]
    assert noise_of(5, (4, 4)).tolist() == noise_of(5, (16,)).reshape(4, 4).tolist()


def test_png_is_what_others_decode() -> None:
    from PIL import Image

    picture = Maker(Settings(size=48)).sample(0).pictures()[0]
    assert picture.shape == (48, 48, 3)
    assert np.array_equal(np.asarray(Image.open(BytesIO(png(picture)))), picture)


def test_glyphs() -> None:
    mask = text_mask("T1", 1)
    assert mask.shape == (7, 11)
    assert mask[0, :5].all()
    assert mask[:, 2].all()


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_workers_change_nothing(tmp_path: Path) -> None:
    settings = Settings(size=48, seed=2)
    one = write_world(settings, 30, tmp_path / "one", shard=10)
    write_world(settings, 30, tmp_path / "two", shard=10, workers=2)
    assert _contents(tmp_path / "one") == _contents(tmp_path / "two")
    assert [path.name for path in one.files] == ["items-00000.jsonl", "items-00001.jsonl", "items-00002.jsonl"]
    items = [item for path in one.files for item in read_items(path)]
    assert len(items) == 30
    assert all(Path(image.root, image.source).exists() for item in items for image in item.images)


def test_several_domains_take_turns(tmp_path: Path) -> None:
    worlds = [Settings(domain=domain, size=48) for domain in ("text", "scenes", "clips")]
    one = write_world(worlds, 7, tmp_path / "one", shard=3)
    write_world(worlds, 7, tmp_path / "two", shard=3, workers=2)
    assert _contents(tmp_path / "one") == _contents(tmp_path / "two")
    items = [item for path in one.files for item in read_items(path)]
    assert [(item.meta["domain"], item.meta["index"]) for item in items] == [
        ("text", 0), ("scenes", 0), ("clips", 0), ("text", 1), ("scenes", 1), ("clips", 1), ("text", 2),
    ]  # fmt: skip
    assert orjson.loads((tmp_path / "one" / "world.json").read_bytes())["domain"] == ["text", "scenes", "clips"]
    for wrong in ([], worlds[:1] * 2, [worlds[0], Settings(domain="scenes", seed=1, size=48)]):
        with pytest.raises(UserError, match=r"^domain: "):
            write_world(wrong, 2, tmp_path / "three")
    with pytest.raises(UserError, match=r"^scales, "):
        write_world(Settings(domain="text", scales=("0-10",), claims=(1, 1), form=0), 2, tmp_path / "three")
    assert not (tmp_path / "three").exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    write_world(Settings(size=48), 2, tmp_path / "w")
    write_world(Settings(size=48), 2, tmp_path / "w")
    with pytest.raises(UserError, match="something else"):
        write_world(Settings(size=48, seed=1), 2, tmp_path / "w")
    with pytest.raises(UserError, match=r"^n: "):
        write_world(Settings(), 0, tmp_path / "x")


def _golds(folder: Path) -> list[dict[str, Any]]:
    rows = [orjson.loads(line) for line in (folder / "items-00000.jsonl").read_bytes().splitlines()]
    return [one for row in rows for one in row["gold"]["responses"]]


def test_the_contact_sheet_marks_what_is_wrong(tmp_path: Path) -> None:
    write_world(Settings(size=48, responses=2, split="all"), 6, tmp_path / "w")
    html, picture = peek(tmp_path / "w", tmp_path / "sheet", n=6)
    text = html.read_text("utf-8")
    assert text.count("<article>") == 12
    assert 'class="wrong"' in text
    assert 'class="right"' in text
    assert text.count("data:image/png") == 12
    assert text.count("<dt class=gold>") == 12
    for one, lost in zip(
        _golds(tmp_path / "w"), re.findall(r'class="sum">(\d+) points? lost: gold (\S+?)[ <]', text), strict=True
    ):
        assert lost == (str(one["penalty"]), one["label"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="no items"):
        peek(tmp_path, tmp_path / "none")


@pytest.mark.parametrize("domain", ["scenes", "text", "clips"])
def test_the_contact_sheet_shows_a_response_once_beside_its_rubrics_and_why_a_claim_costs(
    domain: str, tmp_path: Path
) -> None:
    world = Settings(domain=domain, size=48, version=4, seed=5)
    write_world(world, 32, tmp_path / "w")
    text = peek(tmp_path / "w", tmp_path / "sheet", n=32)[0].read_text("utf-8")
    assert text.count("one response under 4 rubrics") == 8
    assert text.count("<article>") == 32
    due = []
    for sample in make(world, 32):
        found = sample.graded[0]
        for claim, finding, cost in zip(sample.responses[0].claims, found.findings, found.costs, strict=True):
            if cost:  # from the claims themselves, which a record does not have
                paid = [(term, term.points(claim, finding.metric)) for term in sample.spec.terms]
                due.append([(term.name, term.weight, n) for term, n in paid if n])
    told = re.findall(r"<b>costs [^<]*</b> \(([^)]*)\)", text)
    assert len(told) == len(re.findall("<b>costs ", text)) == len(due) > 20
    for each, terms in zip(told, due, strict=True):
        rules = [
            (name, int(weight), 2 if twice else 1)
            for name, weight, twice in re.findall(r"(?:^|; )([^;]*): (\d+)( x 2, since)?", each)
        ]
        assert rules == terms or set(rules) < set(terms)  # "once" was paid for before


if __name__ == "__main__":  # writes the golden file; run it only together with a new version number
    GOLDEN.write_bytes(
        orjson.dumps(
            {k: v for domain in sorted(DOMAINS) for k, v in _hashes(domain).items()}, option=orjson.OPT_INDENT_2
        )
    )
