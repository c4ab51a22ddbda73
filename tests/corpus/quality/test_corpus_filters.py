"""Filters: language, near-duplicate pictures, refusals, and what `corpus check` reports about them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image as Pillow
from PIL import ImageEnhance

from dikast.core.errors import DataError, UserError
from dikast.core.part import Image
from dikast.corpus.dedup.image_dedup import DISTANCE, NearDuplicateImages, perceptual_hash
from dikast.corpus.pipeline.stage import Rejected, in_language
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.quality.data_card import card
from dikast.corpus.quality.languages import KNOWN, code_of, language_of, wrong_language
from dikast.corpus.sources.image_lists import Listed, readable

SAID = {
    "en": "The answer is clear, but it does not say where the numbers are from and how they were checked.",
    "de": "Die Antwort ist klar, aber sie sagt nicht, woher die Zahlen sind und wie man sie geprüft hat.",
    "fr": "La réponse est claire, mais elle ne dit pas d'où viennent les chiffres ni comment on les a vérifiés.",
    "es": "La respuesta es clara, pero no dice de dónde vienen los números ni cómo se han comprobado.",
    "it": "La risposta è chiara, ma non dice da dove vengono i numeri e come sono stati controllati.",
    "pt": "A resposta é clara, mas não diz de onde vêm os números e como foram verificados pelo autor.",
    "nl": "Het antwoord is duidelijk, maar het zegt niet waar de cijfers vandaan komen en hoe ze zijn gecontroleerd.",
    "sv": "Svaret är tydligt, men det säger inte var siffrorna kommer från och hur man har kontrollerat dem.",
    "fi": "Vastaus on selvä, mutta se ei kerro, mistä luvut ovat ja miten ne on tarkistettu, joten se ei ole hyvä.",
    "pl": "Odpowiedź jest jasna, ale nie mówi, skąd są liczby i jak je sprawdzono, a to jest bardzo ważne.",
    "tr": "Cevap açık, ama bu sayıların nereden geldiği ve nasıl kontrol edildiği için bir şey söylemiyor.",
    "ru": "Ответ понятный, но в нём не сказано, откуда эти числа и как их проверили, а это очень важно.",
    "uk": "Відповідь зрозуміла, але в ній не сказано, звідки ці числа та як їх перевірили, а це дуже важливо.",
    "ar": "الجواب واضح ولكن لا يقول من أين هذه الأرقام ولا كيف كان التحقق من كل ما هو في النص",
    "fa": "پاسخ روشن است اما نمی گوید که این عددها از کجا است و چگونه آن را بررسی شده است",
    "ja": "答えははっきりしていますが、数字がどこから来たのか、どう確かめたのかは書かれていません。",
    "zh": "回答很清楚，但是没有说明这些数字来自哪里，也没有说明是如何核对的，这一点非常重要。",
    "ko": "답은 분명하지만 숫자가 어디에서 왔는지, 어떻게 확인했는지는 말하지 않습니다.",
    "el": "Η απάντηση είναι σαφής, αλλά δεν λέει από πού είναι οι αριθμοί.",
    "hi": "उत्तर साफ है, लेकिन यह नहीं बताता कि संख्याएँ कहाँ से आईं।",
    "th": "คำตอบชัดเจน แต่ไม่ได้บอกว่าตัวเลขมาจากไหนและตรวจสอบอย่างไร",
}


@pytest.mark.parametrize("code", SAID)
def test_languages_are_told_and_none_is_taken_for_another(code: str) -> None:
    assert language_of(SAID[code]) == code
    for other in SAID:
        assert bool(wrong_language(SAID[code], other)) == (other != code), other


def test_what_shows_too_little_is_let_through() -> None:
    for text in ("", "42", "x = 3 * y + 1", "Berlin, 1984", "```python\nprint(x)\n```", "OK."):
        assert wrong_language(text, "German") == ""
        assert language_of(text) == ""
    assert wrong_language(SAID["en"], "Klingon") == ""
    mixed = f"{SAID['de']} In the words of the paper: this is clear. {SAID['de']}"
    assert wrong_language(mixed, "German") == ""
    assert wrong_language("東京都庁舎", "Japanese") == ""


def test_languages_go_by_many_names() -> None:
    names = ("German", "de", "Deutsch", "GERMAN", "German (formal)", "de-AT", "日本語", "Brazilian")
    assert [code_of(name) for name in names] == ["de"] * 6 + ["ja", ""]
    assert all(code_of(name) for name in KNOWN)


def test_a_reply_in_another_language_is_rejected_and_told() -> None:
    with pytest.raises(Rejected, match="the feedback is in english; write it in German"):
        in_language("German", response=SAID["de"], feedback=SAID["en"])
    in_language("", response=SAID["en"])


def picture(seed: int, folder: Path, size: int = 96) -> Pillow.Image:
    rng = np.random.default_rng(seed)
    image = Pillow.new("RGB", (size, size), tuple(int(each) for each in rng.integers(150, 255, 3)))
    for _ in range(5):
        x, y, w, h = (int(each) for each in rng.integers(8, 60, 4))
        image.paste(tuple(int(each) for each in rng.integers(0, 200, 3)), (x, y, min(size, x + w), min(size, y + h)))
    image.save(folder / f"{seed}.png")
    return image


def test_changed_copies_are_found_and_others_are_not(tmp_path: Path) -> None:
    index = NearDuplicateImages()
    for seed in range(40):
        image = picture(seed, tmp_path)
        copies = {
            "small.jpg": image.resize((58, 58)),
            "bright.png": ImageEnhance.Brightness(image).enhance(0.85),
            "same.jpg": image,
        }
        assert index.add(Image(str(tmp_path / f"{seed}.png")), str(seed)) is None
        for name, copy in copies.items():
            copy.save(tmp_path / f"{seed}-{name}")
            match = index.find(Image(str(tmp_path / f"{seed}-{name}")))
            assert match is not None, (seed, name)
            assert match.name == str(seed)
            assert match.likeness >= 1 - DISTANCE / 256
    assert len(index) == 40
    strict = NearDuplicateImages(0)
    strict.add(Image(str(tmp_path / "3.png")), "3")
    assert strict.find(Image(str(tmp_path / "3-small.jpg"))) is None


def test_flat_pictures_match_by_content_alone(tmp_path: Path) -> None:
    for name, colour in (("a", "white"), ("b", "white"), ("c", "black")):
        Pillow.new("RGB", (40, 40), colour).save(tmp_path / f"{name}.png")
    a, b, c = (Image(str(tmp_path / f"{name}.png")) for name in "abc")
    assert perceptual_hash(a) is None
    index = NearDuplicateImages()
    assert index.add(a, "a") is None
    assert index.add(c, "c") is None
    assert (match := index.add(b, "b")) is not None
    assert match.name == "a"
    with pytest.raises(DataError, match="does not exist"):
        index.find(Image("no.png"))


def record(number: int, response: str, feedback: str = "It is so.", **more: Any) -> dict[str, Any]:
    levels = {str(n): f"Level {n}." for n in range(1, 6)}
    return {
        "id": str(number), "instruction": f"Question {number}?", "response": response,
        "rubric": {"criterion": "Is it clear?", "scale": "1-5", "levels": levels},
        "gold": {"score": number % 5 + 1, "feedback": feedback}, **more,
    }  # fmt: skip


def test_check_counts_languages_refusals_pictures_topics_and_families(tmp_path: Path) -> None:
    image = picture(1, tmp_path)
    picture(2, tmp_path)
    image.resize((60, 60)).save(tmp_path / "copy.jpg")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    rows = [
        record(0, SAID["de"], SAID["de"], image="1.png", meta={"families": ["a", "b"]}),
        record(1, SAID["de"], SAID["en"], image="2.png", meta={"families": ["a"]}),
        record(2, SAID["fr"], image="copy.jpg", meta={"families": ["a"]}),
        record(3, "I'm sorry, but I can't help with that.", image="broken.png", meta={"families": ["c"]}),
        record(4, SAID["de"], image="2.png"),
    ]
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (tmp_path / "bench.jsonl").write_bytes(orjson.dumps(record(9, "Else.", image="2.png")))
    found = check_file(
        tmp_path / "items.jsonl", CheckOptions(against=(str(tmp_path / "bench.jsonl"),), language="German", draws=20)
    )
    counts = {name: (each.found, each.n) for name, each in found.findings.items()}
    assert counts["response in another language"] == (2, 5)  # the French one and the refusal
    assert counts["feedback in another language"] == (1, 5)
    assert counts["refusals"] == (1, 5)
    assert counts["near-duplicate images"] == (1, 3)  # 2.png is shown twice and counts once
    assert counts["leaked: image"] == (1, 3)
    assert counts["images that cannot be read"] == (1, 4)
    assert found.languages["de"] == 3
    assert found.topics["instructions"] == 5
    told = {each["name"]: (each["rows"], each["share"], each["mean_score"]) for each in found.families}
    assert told == {"a": (3, 2.5 / 4, 2.0), "b": (1, 0.5 / 4, 1.0), "c": (1, 1 / 4, 4.0)}
    text = card(found)
    assert "| a | 3 | 62.5% | 2.00 |" in text
    assert "| near-duplicate images | 1 of 3 |" in text
    with pytest.raises(UserError, match="'Klingon' cannot be identified"):
        check_file(tmp_path / "items.jsonl", CheckOptions(language="Klingon"))


def test_pictures_that_look_like_another_are_not_built_on(tmp_path: Path) -> None:
    image = picture(1, tmp_path)
    picture(2, tmp_path)
    image.resize((60, 60)).save(tmp_path / "copy.jpg")
    (tmp_path / "again.png").write_bytes((tmp_path / "1.png").read_bytes())
    given = [Listed(str(tmp_path / name)) for name in ("1.png", "2.png", "copy.jpg", "again.png")]
    for near, kept in ((True, ["1.png", "2.png"]), (False, ["1.png", "2.png", "copy.jpg"])):
        dropped: Counter[str] = Counter()
        assert [Path(each.source).name for each in readable(given, dropped, skip=False, near=near)] == kept
        assert (dropped["near-duplicate image"], dropped["the same image twice"]) == (int(near), 1)
