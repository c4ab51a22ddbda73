"""Pictures of a window are prepared side by side, and nothing else changes."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from dikast.core.media import media_files
from dikast.core.media.decoding import decode
from dikast.core.media.media_files import forget
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine

Engines = Callable[[str], LocalEngine]
READ = Readout(("1", "2"), "\n[RESULT] ", generate=False)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many processors the machine has."""
    return lambda count: monkeypatch.setattr(os, "cpu_count", lambda: count)


def pictures(folder: Path, count: int) -> list[Image]:
    """Files of noise."""
    found = []
    for n in range(count):
        pixels = np.random.default_rng(n).integers(0, 255, (56, 84, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{n}.png")
        found.append(Image(str(folder / f"{n}.png")))
    return found


def ask(key: str, *shown: Image | Video) -> Request:
    """A question about pictures."""
    return Request(key, (Message("user", (*shown, Span("Which is good?"))),), Sampling(max_tokens=2), readout=READ)


def answers(made: LocalEngine, asked: list[Request]) -> list[tuple[object, ...]]:
    """All that completions say but their seconds, in their order, with nothing remembered from before."""
    forget()
    vision = made._loaded.processor.vision
    assert vision is not None
    vision.remembered.clear()
    return [_said(done) for done in made.stream(asked)]


def _said(done: Completion) -> tuple[object, ...]:
    error = None if done.error is None else (done.error.kind, str(done.error))
    return done.key, done.text, done.finish, done.label_logprobs, done.usage.tokens_in, error


def counted(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None) -> Counter[str]:
    """Decoded files by name from now on; `before` is called at each."""
    found = Counter[str]()

    def counting(raw: bytes, name: str) -> PIL.Image.Image:
        found[Path(name.split()[-1]).name] += 1
        before()
        return decode(raw, name)

    monkeypatch.setattr(media_files, "decode", counting)
    return found


@pytest.mark.parametrize("family", ["llava", "llava_onevision", "qwen_vl"])
def test_answers_and_errors_are_those_of_one_picture_after_the_other(
    family: str, engine: Engines, tmp_path: Path, threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pictures(tmp_path, 6)
    damaged = Path(shown[1].source)
    damaged.write_bytes(damaged.read_bytes()[:-3000])
    Path(shown[4].source).unlink()
    clip = Video((shown[2], shown[3]), (0.0, 1.0))
    asked = [ask(f"{again}-{n}", picture) for again in range(2) for n, picture in enumerate(shown)]
    asked += [ask("text"), ask("clip", clip), ask("both", shown[5], shown[0])]
    made = engine(family)
    threads(1)
    alone = answers(made, asked)
    threads(4)
    decoded = counted(monkeypatch)
    running = threading.active_count()
    assert answers(made, asked) == alone
    assert threading.active_count() == running
    failed = {str(key): error for key, *_, error in alone if error is not None}
    assert set(failed) == {"0-1", "1-1", "0-4", "1-4"}
    assert {name: n for name, n in decoded.items() if name != "1.png"} == dict.fromkeys(
        ("0.png", "2.png", "3.png", "5.png"), 1
    )


def test_pictures_are_decoded_side_by_side(
    engine: Engines, tmp_path: Path, threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(4)
    meeting = threading.Barrier(4, timeout=60)
    decoded = counted(monkeypatch, meeting.wait)
    asked = [ask(str(n), picture) for n, picture in enumerate(pictures(tmp_path, 4))]
    assert all(error is None for *_, error in answers(engine("llava"), asked))
    assert set(decoded.values()) == {1}


def test_a_picture_of_several_prompts_is_decoded_once(
    engine: Engines, tmp_path: Path, threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(8)
    decoded = counted(monkeypatch, lambda: time.sleep(0.1))  # long enough for others to come
    shown = pictures(tmp_path, 5)
    asked = [ask(f"{i}-{j}", a, b) for i, a in enumerate(shown) for j, b in enumerate(shown) if i != j]
    answers(engine("llava_onevision"), asked)
    assert set(decoded.values()) == {1}
    answers(engine("llava_onevision"), [ask("again", shown[0])])
    with_it = decoded["0.png"]
    assert with_it == 2, "nothing was remembered"
    list(engine("llava_onevision").stream([ask("known", shown[0]), ask("other", shown[1])]))
    assert decoded["0.png"] == with_it


def test_no_thread_stays_where_a_stream_is_left(
    engine: Engines, tmp_path: Path, threads: Callable[[int], None]
) -> None:
    threads(8)
    forget()
    running = threading.active_count()
    asked = [ask(str(n), picture) for n, picture in enumerate([Image("/no/such.png"), *pictures(tmp_path, 5)])]
    stream = engine("qwen_vl").stream(asked)
    assert next(iter(stream)).error is not None
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert threading.active_count() == running


def test_a_long_picture_that_a_processor_would_make_huge_costs_its_item(engine: Engines, tmp_path: Path) -> None:
    """The shorter side of each is made as long as the model wants it: 130 kB of one colour took gigabytes."""
    PIL.Image.new("RGB", (28, 1_500_000)).save(tmp_path / "long.png")
    PIL.Image.new("RGB", (28, 60_000)).save(tmp_path / "strip.png")
    asked = [ask(name, Image(str(tmp_path / f"{name}.png"))) for name in ("long", "strip")]
    done = {each.key: each for each in engine("llava").stream(asked)}
    error = done["long"].error
    assert error is not None
    assert error.kind == "bad_media"
    assert "makes the shorter side of each picture 56 pixels long, and one of 28 x 1500000 would be too" in str(error)
    assert done["strip"].error is None


_GROWTH = """
import sys
from pathlib import Path
from dikast.core.part import Image
from dikast.engines.local.processor import load_processor
from dikast.engines.local.seeing.shown import Media, see
from dikast.engines.local.source import locate
from dikast.engines.local.trusted import model_config
from dikast.engines.scout import folder
import PIL.Image

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

source = locate(str(folder()))
processor = load_processor(source, model_config(source.folder), sees=True)
path = Path(sys.argv[1])
before = resident()
for n in range(2000):
    PIL.Image.new("RGB", (96, 96), (n % 256, n // 256, 7)).save(path / f"{n}.png")
    see(Media((Image(str(path / f"{n}.png")),), ()), processor)
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_thousands_of_small_pictures_stay_within_bounds(tmp_path: Path) -> None:
    """Their tensors alone would take 221 MB, and what is decoded of them 74 MB."""
    done = subprocess.run([sys.executable, "-c", _GROWTH, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 250
