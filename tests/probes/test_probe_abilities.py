"""Verdicts on abilities by hand, and mock judges of known faults under the whole suite."""

from pathlib import Path

import pytest

from dikast.audit.estimate import Estimate
from dikast.core.errors import UserError
from dikast.core.item import Item, item_from
from dikast.core.records import read_items
from dikast.core.verdict import Question, Status, Verdict
from dikast.judging.judge import Judge
from dikast.probes.abilities import abilities, follows, resists
from dikast.probes.judge_proof import Proof, prove
from dikast.worlds.ability_items import RUBRICS, ability_items, write_abilities


def item(name: str, ability: str, group: str, variant: str, score: float, wrong: int = 0) -> Item:
    claims = [{"text": "x", "verdict": "wrong" if i < wrong else "right"} for i in range(4)]
    value = {
        "id": name,
        "instruction": "Say it.",
        "response": "x",
        "rubric": {"name": "r", "criterion": "r", "scale": "1-5", "levels": {str(i): str(i) for i in range(1, 6)}},
        "gold": {"score": score, "claims": claims},
        "meta": {"ability": ability, "set": group, "variant": variant},
    }
    return item_from(value)


def said(name: str, score: float) -> Verdict:
    return Verdict(name, Question(name, "r"), Status.OK, str(round(score)), score)


def test_right_orders_by_hand() -> None:
    # Three sets: right (2 < 5 as gold 1 < 4), tied, wrong. The share is (1 + .5 + 0) / 3. A fourth lost an answer.
    items = [item(f"{g}{k}", "counts", g, str(k), 1 + 3 * k) for g in "abcd" for k in (0, 1)]
    scores = {"a0": 2, "a1": 5, "b0": 3, "b1": 3, "c0": 4, "c1": 1, "d0": 2}
    found, _ = abilities(items, [said(name, score) for name, score in scores.items()], [])
    [counts] = [each for each in found if each.name == "counts"]
    assert counts.found.value == pytest.approx(0.5)
    assert (counts.found.n, counts.lost, counts.floor) == (3, 1, 0.5)
    assert {each.told for each in found if each.name != "counts"} == {"not asked"}


def test_agreement_centred_by_response_by_hand() -> None:
    # One response under rubrics whose gold is 1 and 5: goodness 0 and 1, centred -.5 and .5; scores 2 and 4 the same
    # way: .25 and .75, centred -.25 and .25. A second response turned round: +-.5 against -+.25. Together: 0.
    items = [item(f"{g}{k}", "reads rubrics", g, str(k), 1 + 4 * k, wrong=2) for g in "ab" for k in (0, 1)]
    verdicts = [said("a0", 2), said("a1", 4), said("b0", 4), said("b1", 2)]
    _, agreement = abilities(items, verdicts, [])
    assert agreement.centred.value == pytest.approx(0)
    assert agreement.centred.n == 4
    assert (agreement.over_rubrics.value, agreement.over_rubrics.n) == (agreement.centred.value, 4)
    assert agreement.combinations == 1  # all have the rubric "r"
    _, agreement = abilities(items[:2], verdicts[:2], [])
    assert agreement.centred.note == "too few answers"
    _, agreement = abilities(items, [said(f"{g}{k}", s) for g, s in (("a", 2), ("b", 5)) for k in (0, 1)], [])
    assert agreement.centred.value == 0  # one score for each response, whatever the rubric
    assert agreement.centred.note


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.8, 0.9, "yes"), (0.6, 0.9, "partly"), (0.4, 0.7, "no"), (0.1, 0.3, "no"), (0.4, 0.8, "cannot tell")],
)
def test_the_verdict_on_a_share(low: float, high: float, verdict: str) -> None:
    assert follows(Estimate((low + high) / 2, 20, low, high)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.05, 0.08, "yes"), (0.12, 0.3, "no"), (-0.3, -0.2, "no"), (0.02, 0.2, "partly"), (-0.02, 0.2, "cannot tell")],
)
def test_the_verdict_on_a_change(low: float, high: float, verdict: str) -> None:
    assert resists(Estimate((low + high) / 2, 20, low, high), 0.1) == verdict


def test_without_answers_nothing_is_told() -> None:
    items = [item(f"a{k}", "counts", "a", str(k), 1 + k) for k in (0, 1)]
    found, agreement = abilities(items, [], [])
    assert next(each for each in found if each.name == "counts").told == "cannot tell"
    assert agreement.gold.note == "too few answers"


def test_items_of_the_suite() -> None:
    sets: dict[tuple[str, str], list[float]] = {}
    ids = set()
    for made, _ in ability_items(share=0.2):
        assert made.id not in ids
        ids.add(made.id)
        if len(made.responses) == 1:
            sets.setdefault((made.meta["ability"], made.meta["set"]), []).append(made.gold["score"])
    for (ability, _), scores in sets.items():
        assert (len(set(scores)) == 1) == (ability == "edits")
        assert len(scores) == (3 if ability == "edits" else RUBRICS if ability == "reads rubrics" else 2)


def test_the_reference_alone_tells_what_withheld_notes_say() -> None:
    found = [made for made, _ in ability_items(share=0.2) if made.meta["ability"] == "follows references"]
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one.instruction == other.instruction
        assert one.responses == other.responses
        assert one.reference != other.reference


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_abilities(tmp_path_factory.mktemp("prove") / "suite", calls=600)


def proved(spec: str, files: list[Path], out: Path) -> Proof:
    return prove(Judge(spec), files, out)


def verdicts(proof: Proof) -> dict[str, str]:
    return {each.name: each.told for each in proof.abilities}


def test_a_perfect_judge_can_do_all(files: list[Path], tmp_path: Path) -> None:
    proof = proved("mock:oracle,r=1", files, tmp_path)
    assert set(verdicts(proof).values()) == {"yes"}
    assert proof.calls <= 600
    assert proof.agreement.gold.value > 0.99
    assert proof.agreement.ignoring < 0.8


def test_a_judge_that_ignores_the_rubric(files: list[Path], tmp_path: Path) -> None:
    proof = proved("mock:rubric-blind,r=1", files, tmp_path)
    assert verdicts(proof).pop("reads rubrics") == "no"
    assert proof["reads rubrics"].found.value == 0.5
    assert proof.agreement.centred.value == 0
    assert proof["counts"].told == proof["reads pictures"].told == "yes"


def test_a_constant_judge_can_do_nothing(files: list[Path], tmp_path: Path) -> None:
    proof = proved("mock:constant", files, tmp_path)
    assert {told for told in verdicts(proof).values() if told == "yes"} == set()
    assert proof["reads pictures"].found.value == 0.5
    assert "do not follow gold" in proof["resists length"].note


def test_a_judge_that_takes_the_first_slot(files: list[Path], tmp_path: Path) -> None:
    order = proved("mock:first-slot", files, tmp_path)["resists order"]
    assert order.told == "no"
    assert order.found.value == 1


def test_domains_and_a_split_of_ones_own(tmp_path: Path) -> None:
    written = write_abilities(tmp_path, calls=200, split="fresh", domains=("text", "scenes"))
    items = [item for file in written for item in read_items(file)]
    assert {item.meta["domain"] for item in items} == {"scenes", "text"}
    every = {made.meta["ability"] for made, _ in ability_items(share=0.1)}
    assert every - {item.meta["ability"] for item in items} == {"binds"}  # that operator is held out of `fresh`
    assert 150 < sum(len(item.responses) for item in items) <= 200
    assert write_abilities(tmp_path, calls=200, split="fresh", domains=("scenes", "text")) == written
    with pytest.raises(UserError, match="holds something else"):
        write_abilities(tmp_path, calls=200, split="fresh", domains=("scenes",))


def test_abilities_that_a_domain_has_no_items_for_are_not_asked(tmp_path: Path) -> None:
    proof = proved("mock:oracle,r=1", write_abilities(tmp_path / "suite", calls=200, domains=("text",)), tmp_path)
    told = verdicts(proof)
    assert {name for name in told if told[name] == "not asked"} == {"reads pictures", "counts", "binds", "places"}
    assert "no items" in proof["counts"].note
    assert (proof.domains, proof.split) == (("text",), "all")
    assert proof["reads notes"].told == proof["reads rubrics"].told == "yes"


@pytest.mark.parametrize(
    ("domains", "split", "match"),
    [(("pictures",), "all", "no ability is about pictures; there are scenes"), (("charts",), "fresh", "held out")],
)
def test_domains_that_cannot_be_asked_about_are_refused(
    domains: tuple[str, ...], split: str, match: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=match):
        write_abilities(tmp_path, calls=200, split=split, domains=domains)


def test_too_few_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="calls"):
        write_abilities(tmp_path, calls=50)
