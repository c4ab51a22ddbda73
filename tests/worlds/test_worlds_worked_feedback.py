"""Worked feedback agrees with the gold, its points add up, and each step follows from what is shown."""

import re
from dataclasses import replace

import pytest

from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.domains.text_only import GivenText
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import LAYOUTS, Response, Sentence
from dikast.worlds.scoring.terms import Term
from dikast.worlds.settings import Settings
from dikast.worlds.worked_feedback import NOT_WEIGHED, seen, worked, worked_sum


@pytest.mark.parametrize("domain", ["scenes", "text", "plates", "clips"])
def test_running_totals_lead_to_the_penalty(domain: str) -> None:
    for sample in make(Settings(domain=domain, seed=5), 60):
        text = worked(sample)
        lost = [int(n) for n in re.findall(r", (\d+) lost, \d+ in all", text)]
        totals = [int(n) for n in re.findall(r" lost, (\d+) in all", text)]
        assert totals == [sum(lost[: i + 1]) for i in range(len(lost))]
        assert text.endswith(f"Lost: {sample.graded[0].penalty}")
        assert sum(lost) == sample.graded[0].penalty


def test_findings_quote_the_rubric() -> None:
    told = set()
    for sample in make(Settings(seed=9), 80):
        findings = re.findall(r"^Finding: .*", worked(sample, quote=True), re.M)
        for claim, finding in zip(sample.gold()["claims"], findings, strict=True):
            about, *quote = re.sub(r"^Finding: \w+( far)?, |, \d+ lost, \d+ in all$", "", finding).split(", ")
            assert about.split()[0] == claim["aspect"]
            told.add(bool(sample.spec.entries))
            if quote == [NOT_WEIGHED]:
                assert not claim["cost"]
            else:
                assert all(name in sample.rubric.criterion for name in quote), quote
    assert told == {True, False}


def test_each_claim_is_checked_by_each_rule() -> None:
    things = [
        Thing("star", "green", "small", "plain", 0, 0),
        Thing("ring", "red", "large", "dotted", 3, 1),
        Thing("cross", "orange", "medium", "striped", 2, 3),
    ]
    sentences = [
        Sentence(f"The {shape} is red.", "claim", Claim("colour", "colour", (shape, "red")))
        for shape in ("star", "ring", "cross")
    ]
    terms = (Term("colour", "star", "double", 2, "hues of a star"), Term("", "red", "once", 1, "claims naming red"))
    sample = next(make(Settings(seed=9, version=4), 1))
    spec = replace(sample.spec, terms=terms, weights=(), names=())
    response = Response(tuple(sentences), 0)
    made = replace(sample, graph=Scene(4, things), spec=spec, responses=(response,), rivals=())
    lines = worked(made, quote=True).split("\n")
    assert lines[:2] == [
        "Rule: hues of a star: colour star double 2",
        "Rule: claims naming red: all red once 1",
    ]
    assert [line for line in lines if line.startswith("Finding")] == [
        "Finding: wrong far, colour star red, colour star double 2 counts 4, all red once 1 counts 1, 5 lost, 5 in all",
        "Finding: right, colour ring red, colour star double 2 no, all red once 1 counts 0",
        "Finding: wrong, colour cross red, colour star double 2 no, all red once 1 counts 0",
    ]
    assert lines[-1] == "Lost: 5"


@pytest.mark.parametrize("domain", ["scenes", "text"])
def test_what_the_rules_cost_is_what_gold_charges(domain: str) -> None:
    for sample in make(Settings(domain=domain, seed=12, version=4), 60):
        text = worked(sample, quote=True)
        assert len(re.findall(r"^Rule: ", text, re.M)) == len(sample.spec.terms) + len(sample.spec.names)
        findings = re.findall(r"^Finding: .*", text, re.M)
        for claim, finding in zip(sample.gold()["claims"], findings, strict=True):
            assert sum(map(int, re.findall(r" counts (\d+)", finding))) == claim["cost"]
            assert (NOT_WEIGHED in finding) == (" counts " not in finding)


def test_evidence_names_what_a_claim_is_about() -> None:
    things = [
        Thing("star", "red", "small", "plain", 0, 0),
        Thing("ring", "blue", "large", "dotted", 3, 1),
        Thing("star", "teal", "medium", "striped", 2, 3),
    ]
    scene = Scene(4, things, covers=[(3, 0)])
    stars, ring = "star a 1 small red plain star, d 3 medium teal striped star", "b 4 large blue dotted ring"
    for kind, args, told in (
        ("colour", ("star", "red"), stars),
        ("count", ("star", 2), stars),
        ("exists", ("heart", "red"), "heart nothing"),
        ("shape", ("blue", "star"), f"blue {ring}"),
        ("relation", ("star", "ring", "above"), f"{stars} against ring {ring}"),
        ("sure", ("top left", "star"), "a 1 small red plain star"),
        ("sure", ("top right", "star"), "a 4 covered"),
        ("sure", ("bottom left", "star"), "d 1 empty"),
    ):
        assert seen(Claim(kind, "any", args), scene) == told, kind


def test_evidence_on_sums_is_worked() -> None:
    notes = GivenText(numbers={"K": 21, "L": 83})
    assert worked_sum(Claim("minus", "sum", ("L", "K", 59)), notes) == "83 minus 21 is 62"
    assert worked_sum(Claim("plus", "sum", ("K", "L", 59)), notes) == "21 plus 83 is 104"
    assert worked_sum(Claim("age", "sum", ("Ann", "age", 59)), notes) == ""


def test_what_is_left_out_is_named() -> None:
    settings = Settings(seed=8, aspects=("completeness", "colour"))
    samples = [s for s in make(settings, 60) if "completeness" in dict(s.spec.weights) and not s.spec.entries]
    assert samples
    for sample in samples:
        line = next(line for line in worked(sample).split("\n") if line.startswith("Omissions: "))
        left = re.sub(r", \d+ lost.*", "", line.partition("left out: ")[2])
        named = [] if left == "nothing" else left.split(" and ")
        assert len(named) == sample.graded[0].counts["completeness"]


def _lines(aspect: str, domain: str = "scenes", n: int = 160) -> list[tuple[Sample, str]]:
    """Samples whose rubrics weigh an aspect of the whole response, and what the worked feedback says of it."""
    found = []
    for sample in make(Settings(domain, seed=12, version=4, form=100), n):
        for name, (weighed, _) in zip(sample.spec.names, sample.spec.weights, strict=True):
            if weighed == aspect:
                start = f"{name.capitalize()}: "
                line = next(each for each in worked(sample, quote=True).split("\n") if each.startswith(start))
                found.append((sample, re.sub(r", \d+ lost, \d+ in all$", "", line.removeprefix(start))))
    assert len({sample.graded[0].counts[aspect] for sample, _ in found}) > 1
    return found


def _sentences(sample: Sample) -> list[str]:
    """The sentences of a response, read off its text: layout and emphasis taken away."""
    text = re.sub(r"^(- |\d+\. )", "", sample.responses[0].text.replace("**", ""), flags=re.M).replace("\n", " ")
    return re.split(r"(?<=[.]) (?=[A-Z])", text)


@pytest.mark.parametrize("domain", ["scenes", "text"])
def test_words_are_counted_sentence_by_sentence(domain: str) -> None:
    for sample, told in _lines("length", domain):
        asked = re.match(r"Use at most (\d+) words\.", told)
        assert asked
        assert asked[0] in sample.instruction
        limit = int(asked[1])
        *steps, beside, verdict = told.removeprefix(f"{asked[0]} ").split("; ")
        words = 0
        for step, sentence in zip(steps, _sentences(sample), strict=True):
            here = sum(any(letter.isalpha() for letter in word) for word in sentence.split())
            words += here
            assert step == f"{sentence} {here}, {words}"
        assert (beside, verdict) == (f"{words} of {limit}", "broken" if words > limit else "kept")


@pytest.mark.parametrize("domain", ["scenes", "text"])
def test_a_repeated_sentence_stands_there_as_said_again(domain: str) -> None:
    for sample, told in _lines("concision", domain):
        *steps, count = told.split("; ")
        before, again = set[str](), 0
        for step, sentence in zip(steps, _sentences(sample), strict=True):
            again += sentence in before  # fillers too stand there once
            assert step == f"{sentence} {f'again {again}' if sentence in before else 'new'}"
            before.add(sentence)
        assert count == str(again) == str(sample.graded[0].counts["concision"])


def test_the_layout_given_stands_beside_the_one_that_is_asked_for() -> None:
    seen_layouts = set()
    for sample, told in _lines("format"):
        asked, given, verdict = re.fullmatch(r"(.*\.) Given: (\w+); (\w+)", told).groups()  # type: ignore[union-attr]
        assert asked in sample.instruction
        text = sample.responses[0].text.replace("**", "")
        marks = {"dashes": text.startswith("- "), "numbers": text.startswith("1. "), "lines": "\n" in text}
        assert given == next((name for name, there in marks.items() if there), "text")
        wanted = {"one sentence per line": "lines", "a list with dashes": "dashes", "Number the": "numbers"}
        due = next(layout for words, layout in wanted.items() if words in asked)
        assert verdict == ("kept" if given == due else "broken")
        seen_layouts.add(given)
    assert len(seen_layouts) == len(LAYOUTS)


def test_sentences_off_the_topic_are_quoted() -> None:
    for sample, told in _lines("relevance"):
        quoted, count = told.split("; ")
        listed = [] if quoted == "nothing" else re.split(r"(?<=[.]) ", quoted)
        assert len(listed) == int(count) == sample.graded[0].counts["relevance"]
        assert set(listed) <= set(_sentences(sample))


def test_each_thing_is_named_or_left_out() -> None:
    for sample, told in _lines("completeness"):
        things, count = told.split("; ")
        left = [" ".join(each.split()[3:6:2]) for each in things.split(", ") if "left out" in each]
        assert [int(n) for n in re.findall(r"left out (\d+)", things)] == list(range(1, len(left) + 1))
        assert len(left) == int(count) == sample.graded[0].counts["completeness"]
        assert len(things.split(", ")) == len(sample.graph.things)
        text = sample.responses[0].text.lower()
        for thing in left:
            colour, shape = thing.split()
            assert not re.search(rf"\b{shape}s?\b", text), text
            assert f"{colour} thing" not in text


def test_what_the_second_response_of_a_pair_leaves_out_is_its_own() -> None:
    checked = 0
    for sample in make(Settings(seed=12, responses=2, aspects=("completeness", "colour")), 200):
        if "completeness" in dict(sample.spec.weights) and not sample.spec.entries:
            for which, graded in enumerate(sample.graded):
                left = re.search(r"left out: (.*?)(, \d+ lost.*)?$", worked(sample, which), re.M)
                assert left
                named = [] if left[1] == "nothing" else left[1].split(" and ")
                assert len(named) == graded.counts["completeness"]
                checked += which
    assert checked
