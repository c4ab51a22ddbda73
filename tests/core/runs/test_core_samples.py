"""Several samples of one question as one verdict, by hand; runs and audits join them by the same rule."""

import pytest

from dikast.core.runs.samples import Vote, join_votes
from dikast.core.verdict import Question, Status, Verdict
from dikast.judging.label_scores import combine_samples

LABELS = ("a", "b", "tie")


def test_votes_by_hand() -> None:
    # .8/.2 for a and a plain choice of b: .4 a, .6 b; the plain one has no distribution of its own
    found = join_votes([Vote("a", {"a": 0.8, "b": 0.2}, False, False), Vote("b", None, False, False)], LABELS)
    assert found.distribution == pytest.approx({"a": 0.4, "b": 0.6, "tie": 0.0})
    assert (found.read, found.forced, found.conflict) == (False, False, False)
    both = [Vote("a", {"a": 0.8, "b": 0.2}, True, False), Vote("b", {"b": 1.0}, False, True)]
    found = join_votes(both, LABELS)
    assert (found.read, found.forced, found.conflict) == (True, True, True)


def test_a_contradicted_sample_marks_the_joint_verdict_whichever_sample_it_stands_for() -> None:
    question = Question("i", "c", (0, 1))
    samples = [
        Verdict("1", question, Status.OK, "a", marker="own"),
        Verdict("2", question, Status.OK, "a", marker="own"),
        Verdict("3", question, Status.OK, "b", marker="forced", conflict=True),
    ]
    both = combine_samples(samples, None)
    assert (both.label, both.marker, both.conflict) == ("a", "forced", True)
