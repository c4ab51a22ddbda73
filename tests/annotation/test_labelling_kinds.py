"""Claims, marks in texts and on pictures, feedback and clips: what is asked, kept, written, and by which keys."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

import axe
import runs
from annotation.labelling_here import Served, press, table
from browser import Browser
from dikast.annotation.label_store import Labelled
from dikast.annotation.labelling_questions import Kind, ToLabel, claims_of, read_questions
from dikast.annotation.marks import box_alike, boxes_from, most_marked, span_alike, spans_from, words_of
from dikast.annotation.precision import Left, left_to_label, progress
from dikast.annotation.session import Shares, opened
from dikast.audit.statistics.intervals import share
from dikast.core.errors import UserError
from dikast.core.gold import gold_of_response
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.core.rubric import load_rubric
from dikast.testing.hostile import HOSTILE
from dikast.training.config import Config, Data
from dikast.training.data.examples import Asker, ExampleRow
from videos import make_video

TEXT = "Sydney is  the capital.\nIt lies inland."


def test_words_become_spans_of_characters() -> None:
    assert [TEXT[start:end] for start, end in words_of(TEXT)] == TEXT.split()
    assert spans_from(["1", "0", "3"], TEXT) == "[[0,9],[15,23]]"  # neighbours are one span
    assert [len(words_of(text)) for text in ("首都はシドニー", "", " \n")] == [7, 0, 0]
    for wrong in (["7"], ["-1"], ["x"], ["²"], ["9" * 5000]):
        with pytest.raises(ValueError, match="no such word"):
            spans_from(wrong, TEXT)


def test_boxes_are_lines_of_five_numbers() -> None:
    assert boxes_from("2 0 0 100 50\n\n1, 10.5, 20, 30, 40\n", 2) == "[[0,0.105,0.2,0.3,0.4],[1,0.0,0.0,1.0,0.5]]"
    for wrong in ("1 0 0 10", "3 0 0 1 1", "1 60 0 50 10", "1 -1 0 5 5", "1 0 0 0 5", "1 nan 0 5 5", "x 0 0 5 5",
                  "1 a 0 5 5", "1 0 0 5 5%", "1.5 0 0 5 5", "nan 0 0 5 5"):  # fmt: skip
        with pytest.raises(ValueError, match=r"^a box "):
            boxes_from(wrong, 2)
    with pytest.raises(ValueError, match="at most 100"):
        boxes_from("1 0 0 10 10\n" * 101, 1)


def test_how_alike_marks_are() -> None:
    # characters 0-9 and 5-14: 5 of 15 are in both; areas .5 x 1 and 1 x .5: .25 of .75
    assert span_alike("[[0,10]]", "[[5,15]]") == pytest.approx(5 / 15)
    assert span_alike("[]", "[]") == 1
    assert box_alike("[[0,0,0,0.5,1]]", "[[0,0,0,1,0.5]]") == pytest.approx(1 / 3)
    assert box_alike("[[0,0,0,1,1]]", "[[1,0,0,1,1]]") == 0
    assert most_marked(["[[0,4]]", "[[2,6]]", "[[3,9]]"]) == "[[2,6]]"  # at least two of three: 2-5
    assert most_marked(["[[0,4]]", "[]"]) == "[]"


def test_claims_are_those_given_or_sentences() -> None:
    assert claims_of(Item.of("?", TEXT), 0) == [("Sydney is  the capital.", ""), ("It lies inland.", "")]
    given = Item.of(
        "?", TEXT, gold={"score": 2, "claims": [{"text": "x", "verdict": "wrong"}, {"text": "y", "verdict": "so"}]}
    )
    assert claims_of(given, 0) == [("x", "wrong"), ("y", "")]
    two = Item.of("?", responses=["a. b.", "c."], meta={"claims": [["one"], ["two", "three"]]})
    assert [claims_of(two, i) for i in (0, 1)] == [[("one", "")], [("two", ""), ("three", "")]]


def labelled(tmp_path: Path, kind: Kind, rows: list[dict[str, Any]], said: list[dict[str, str]]) -> dict[str, Any]:
    """The files after each rater of `said` has answered: by claim or id."""
    questions = read_questions(str(runs.write_jsonl(tmp_path / "i.jsonl", rows)), {}, load_rubric("helpfulness"), kind)
    with opened(tmp_path / "labels", questions, Shares(raters=len(said))) as session:
        for rater, answers in enumerate(said, 1):
            while (due := session.store.due(rater)) is not None:
                question = session.questions[due.question]
                session.store.keep(due.id, answers[question.claim or question.item.id])
        found = progress(session.questions, session.store.labels())
    taught = list(read_items(tmp_path / "labels" / "labelled.jsonl"))
    return {"rows": table(tmp_path / "labels" / "labels.csv"), "gold": [item.gold for item in taught], "found": found}


def test_claims_of_a_response_become_one_item(tmp_path: Path) -> None:
    rows = [{"id": "one", "instruction": "?", "response": "It is. It was."}]
    said = [{"It is.": "right", "It was.": "wrong"}, {"It is.": "right", "It was.": "unclear"}]
    made = labelled(tmp_path, "claims", rows, said)
    assert [(row["claim"], row["gold"], row["human_2"]) for row in made["rows"]] == [
        ("It is.", "right", "right"), ("It was.", "", "unclear"),
    ]  # fmt: skip
    assert made["gold"] == [{"claims": [{"text": "It is.", "verdict": "right"}]}]
    assert made["found"]["raters agree"].value == 0.5  # on one claim of two
    assert made["found"]["mean (0 to 1)"].value == 0.5  # claims called right: 1 and 0


def test_the_claims_of_a_response_are_one_observation_of_agreement(tmp_path: Path) -> None:
    # two raters, four responses of three claims: they agree on every claim of two responses and on none of the others
    rows = [{"id": f"i{k}", "instruction": "?", "response": f"One {k}. Two {k}. Three {k}."} for k in range(4)]
    first = {f"{word} {k}.": "right" for k in range(4) for word in ("One", "Two", "Three")}
    made = labelled(
        tmp_path, "claims", rows, [first, {name: "wrong" if name[-2] in "23" else "right" for name in first}]
    )
    found = made["found"]["raters agree"]
    # 6 of 12 claims, of 4 items: the interval is that of 2 of 4, as Wilson's with the effective n of whole items
    assert (found.value, found.n, found.method) == (0.5, 12, "Wilson, by cluster")
    assert found == share([1, 1, 1] * 2 + [0, 0, 0] * 2, 0.95, np.repeat([0, 1, 2, 3], 3))
    assert found.half_width > 1.4 * share([1, 0] * 6, 0.95).half_width
    questions = read_questions(str(tmp_path / "i.jsonl"), {}, load_rubric("helpfulness"), "claims")
    by_key = {each.key: each for each in questions}
    keys = [each.key for each in questions]
    labels = [Labelled("1", key, "item", "right", "") for key in (*keys[:2], keys[3])]
    # two items are labelled in part, two not at all; of the last nobody is asked any more
    assert left_to_label(by_key, labels, [keys[2], *keys[4:9]]) == Left("item", 2, 3, 1)
    assert left_to_label(by_key, labels, []) == Left("item", 2, 0, 0)
    # of which the judge failed on the whole second item: its label has no part in the mean
    judged = dict.fromkeys(keys[:3] + keys[6:], 1.0)
    assert left_to_label(by_key, labels, [keys[2], *keys[4:9]], judged) == Left("item", 1, 2, 1)


def test_marks_are_written_as_the_audit_reads_them(tmp_path: Path) -> None:
    rows = [{"id": "one", "instruction": "?", "response": TEXT}]
    made = labelled(tmp_path, "spans", rows, [{"one": "[[0,9]]"}, {"one": "[[0,6]]"}, {"one": "[]"}])
    assert made["gold"] == [{"spans": [[0, 6]]}]
    assert made["rows"][0]["gold"] == "[[0,6]]"
    assert made["found"]["raters agree"].value == pytest.approx((6 / 9 + 0 + 0) / 3)
    judged = [{"item": "one", "marked": [[0, 9]], "score": 1, "human_score": 1}]
    runs.write_jsonl(tmp_path / "judged.jsonl", judged)
    said = runs.dikast_here(
        "audit", tmp_path / "judged.jsonl", "--score", "score", "--gold", "human_score", "--scale", "1-5",
        "--spans", "marked", "--gold-spans", f"gold@{tmp_path / 'labels' / 'labels.csv'}", "--id", "item",
    )  # fmt: skip
    assert "0.8000" in said.stdout, said.stdout + said.stderr  # F1 of 9 and 6 characters: 2 * 6 / 15


@pytest.mark.parametrize(
    ("kind", "said", "claims"),
    [
        ("claims", {"one": "right", "Sydney is  the capital.": "wrong", "It lies inland.": "right"},
         [("Sydney is the capital.", "wrong"), ("It lies inland.", "right")]),
        ("spans", {"one": "[[0,6],[32,38]]"}, [("Sydney", "wrong"), ("inland", "wrong")]),
        ("spans", {"one": "[]"}, [("Sydney is the capital. It lies inland.", "right")]),
    ],
)  # fmt: skip
def test_findings_and_marks_teach_beside_the_score_of_the_item(
    kind: Kind, said: dict[str, str], claims: list[tuple[str, str]], tmp_path: Path
) -> None:
    """What people graded first and then marked is one lesson: claims with their findings, then the score."""
    labelled(tmp_path, kind, [{"id": "one", "instruction": "?", "response": TEXT, "gold": 2}], [said])
    (item,) = read_items(tmp_path / "labels" / "labelled.jsonl")
    config = Config("out", (Data(items=("x",), formats=("claims",)),))
    (example,) = Asker(config).examples(ExampleRow(0, 0, item))
    lines = [f"Claim: {text}\nFinding: {verdict}" for text, verdict in claims]
    assert example.reply.text == "\n".join([*lines, "Verdict: 2"])
    assert gold_of_response(item.gold, "helpfulness", 0) == 2


def test_the_audit_of_a_run_reads_labelled_claims(tmp_path: Path) -> None:
    """`labelled.jsonl` is of items, whose responses are texts: it is joined to a run by their ids alone."""
    rows = [{"id": f"i{k}", "instruction": "?", "response": TEXT, "gold": k % 5 + 1} for k in range(10)]
    labelled(tmp_path, "claims", rows, [{"Sydney is  the capital.": "wrong", "It lies inland.": "right"}])
    done = runs.dikast_here("grade", tmp_path / "i.jsonl", "--judge", "mock:oracle,r=.9", "--rubric", "helpfulness",
                            "--out", tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    labels = tmp_path / "labels" / "labelled.jsonl"
    named = ("--claims", "claims", "--gold-claims", f"gold.claims@{labels}", "--by", f"gold.score@{labels}")
    audited = runs.dikast_here("audit", tmp_path / "run", *named, "--draws", 10, "--json")
    assert audited.returncode == 0, audited.stderr
    found = orjson.loads(audited.stdout)
    assert "partner" not in str(found["notes"])
    assert [row["total"] for row in found["tables"]["by gold.score"]["rows"]] == [2] * 5
    assert found["tables"]["feedback"]["rows"][0]["value"]["value"] == 0  # this judge names no claim, and people two


def test_feedback_of_two_runs_is_compared_blind(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    for judge in ("oracle,r=.9", "oracle,r=.5"):
        done = runs.dikast_here(
            "grade", items, "--judge", f"mock:{judge}", "--rubric", "helpfulness", "--out", tmp_path / judge
        )
        assert done.returncode == 0, done.stderr
    both = [tmp_path / "oracle,r=.9", tmp_path / "oracle,r=.5"]
    found = read_questions(str(items), {}, load_rubric("helpfulness"), "feedback", both)
    assert [each.labels for each in found] == [("a", "b", "tie")] * 3
    assert all(len(each.about) == 2 and all(each.about) for each in found)
    with pytest.raises(UserError, match="there is nothing to label on which both runs have feedback"):
        read_questions(str(items), {}, load_rubric("Is it kind?"), "feedback", both)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--ask", "feedback"), "give --feedback twice"), (("--feedback", "x"), "give --feedback twice"),
        (("--pairs", "--ask", "spans"), "do not go together"),
        (("--ask", "claims", "--order", "active"), "give its run"),
    ],
)  # fmt: skip
def test_flags_that_do_not_go_together(more: tuple[str, ...], told: str, tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(1))
    done = runs.dikast_here("annotate", items, "--out", tmp_path / "labels", *more)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_clips_must_be_clips(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no clip")
    rows = [
        {"id": name, "instruction": [{"type": "video", "video": name}], "response": "x"}
        for name in ("text.mp4", "gone.mp4", "https://example.org/a.mp4")
    ]
    with pytest.raises(UserError, match=r"text\.mp4.*gone\.mp4.*web address") as told:
        read_questions(str(runs.write_jsonl(tmp_path / "i.jsonl", rows)), {}, load_rubric("helpfulness"), "absolute")
    assert "i.jsonl:1" in str(told.value)


def hostile(folder: Path, kind: str) -> Path:
    """Items of hostile strings with a picture; the first has a clip."""
    Image.effect_noise((200, 150), 40).convert("RGB").save(folder / "noise.png")
    make_video(folder / "clip.mp4")
    texts = [each.replace("\x00", "") for each in HOSTILE if each.strip()][:: 1 if kind == "spans" else 4]
    rows: list[dict[str, Any]] = [
        {"id": f"{k} {text}", "instruction": text, "response": text, "image": "noise.png", "meta": {"claims": [text]}}
        for k, text in enumerate(texts)
    ]
    if kind == "pairs":
        rows = [{**row, "response": None, "responses": [row["response"], "No."]} for row in rows]
    rows[0]["context"] = [{"type": "video", "video": "clip.mp4"}]
    return runs.write_jsonl(folder / "items.jsonl", rows)


@pytest.mark.parametrize("kind", ["pairs", "claims", "spans", "boxes", "feedback"])
def test_every_kind_by_keyboard(kind: str, tab: Browser, tmp_path: Path) -> None:
    more: list[object] = ["--rubric", "helpfulness", *(["--pairs"] if kind == "pairs" else ["--ask", kind])]
    items = hostile(tmp_path, kind)
    if kind == "feedback":
        for seed in (1, 2):
            out = tmp_path / f"run-{seed}"
            done = runs.dikast(
                "grade", items, "--judge", f"mock:constant,label={seed}", "--rubric", "helpfulness", "--out", out
            )
            assert done.returncode == 0, done.stderr
            more += ["--feedback", out]
    served = Served(items, tmp_path / "labels", *more).start()
    try:
        sizes = [(390, False), (390, True), (1440, False), (1440, True)] if axe.SCRIPT else []
        for width, dark in sizes:
            tab.visit(served.links["1"], width=width, dark=dark)
            assert axe.violations(tab) == []
            assert tab.run("document.documentElement.scrollWidth") <= width
        tab.visit(served.links["1"])
        asked = {"pairs": "Which response is better?", "feedback": "Which feedback on the response is better?"}
        assert asked.get(kind, "") in tab.run("document.querySelector('h1').textContent")
        n = int(tab.run("document.title").split()[-1])
        clips = 0
        for k in range(n):
            assert tab.run("document.title") == f"{k + 1} of {n}"
            assert tab.said == []
            assert tab.run("document.querySelectorAll('script').length") == 1
            clips += tab.run("document.querySelectorAll('video').length")
            if kind == "spans":
                tab.run("document.querySelector('[data-words] input').focus()")
                tab.press(" ")
                assert tab.run("document.querySelectorAll('[data-words] input:checked').length") == 1
            elif kind == "boxes" and k % 2 == 0:
                tab.press("b")
                tab.press("ArrowRight")
            press(
                tab,
                {"claims": "w", "feedback": "a", "pairs": "a"}.get(kind, "n" if kind == "boxes" and k % 2 else "Enter"),
            )
        assert tab.run("document.title") == "All done"
        assert clips == 1
        tab.visit(served.links["progress"])
        assert "so far" in tab.run("document.body.innerText")
    finally:
        assert served.stop() == 0
    rows = table(tmp_path / "labels" / "labels.csv")
    assert len(rows) == n
    said = [row["human_1"] for row in rows]
    if kind == "spans":
        assert all(orjson.loads(each) for each in said)
    elif kind == "boxes":
        assert sorted(set(said)) == ["[[0,0.41,0.4,0.2,0.2]]", "[]"]
    else:
        assert set(said) <= ({"wrong"} if kind == "claims" else {"a", "b"})


def test_one_key_for_each_question(tmp_path: Path) -> None:
    """Kinds are questions of their own; those of grades and pairs have the keys that they have always had."""
    items = str(runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2)))
    kinds: tuple[Kind, ...] = ("absolute", "claims", "spans", "boxes")
    found: list[ToLabel] = [
        each for kind in kinds for each in read_questions(items, {}, load_rubric("helpfulness"), kind)
    ]
    assert len({each.key for each in found}) == len(found)
