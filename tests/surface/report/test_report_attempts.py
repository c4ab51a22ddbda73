"""What was tried before a verdict was settled."""

from dikast.core.verdict import Attempt, Question, Status, Verdict
from dikast.surface.report.queue import entry_of, kept_of

ROW = {"item": "i", "criterion": "c", "sample": 0, "response": 0, "status": "ok", "line": 1}


def test_every_attempt_before_the_last_is_shown() -> None:
    asked = Attempt("ask", "I would rather not.", Status.UNPARSED, "no verdict in it")
    attempts = (asked, Attempt("continue", "Verdict: 4", Status.OK))
    verdict = Verdict("0" * 32, Question("i", "c"), Status.OK, "4", 4.0, raw="Verdict: 4", attempts=attempts)
    said = entry_of(kept_of(ROW, None), [verdict.to_dict()], {}, redact=False).said[0]
    assert said.earlier == (("ask", "no verdict in it", "I would rather not."),)
    assert (said.attempts, said.raw) == (2, "Verdict: 4")
    assert entry_of(kept_of(ROW, None), [verdict.to_dict()], {}, redact=True).said[0].earlier == ()
