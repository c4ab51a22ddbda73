"""The same findings for a pull request (Markdown), for machines (JSON), and for CI (JUnit)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree as Xml

from dikast.audit.rendering import Table, shown
from dikast.core.text import counted, markdown, printable
from dikast.surface.report import headline
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusion import conclusion, of_judges
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.gates import Gate
from dikast.surface.report.page import side_by_side
from dikast.surface.report.subject import subject

_MOST_GAPS = 10  # of the queue, in Markdown
_MOST_CASES = 1000  # verdicts that failed, in JUnit


def to_json(pages: Sequence[RunPage], gates: Sequence[Gate]) -> dict[str, Any]:
    """Every number of the report."""
    return {
        "runs": [
            {
                "run": str(page.folder),
                "judge": page.judge,
                "judged": _judged(page),
                "conclusion": conclusion(page)._asdict(),
                "headline": headline.opening(page),
                "kind": page.kind,
                "rows": page.rows,
                "differing": page.differing,
                "failed": page.failed,
                "missing": page.missing,
                "labels_of": headline.labels_told(page),
                "labels": {name: {"judge": said, "gold": true} for name, (said, true) in page.labels.items()},
                "length_slope": page.length.to_dict() if page.length is not None else None,
                "by_length": [
                    {"length": each.name, "judge": each.judge.to_dict(), "gold": each.gold and each.gold.to_dict()}
                    for each in page.by_length
                ],
                "slot_shifts": dict(page.shifts),
                "preferences": page.summary.get("preferences"),
                "usage": page.summary.get("usage"),
                "audit": page.audit.to_dict() if page.audit is not None else None,
                "queue": [_gap(entry) for entry in page.entries],
            }
            for page in pages
        ],
        "gates": [asdict(gate) | {"met": gate.met} for gate in gates],
    }


def to_markdown(pages: Sequence[RunPage], gates: Sequence[Gate], title: str) -> str:
    """A comment for a pull request: the first screen, gates, and the largest gaps."""
    lines = [f"## {markdown(title)}", ""]
    for gate in gates:
        lines.append(f"- {'met' if gate.met else '**not met**'}: {markdown(str(gate))}")
    lines += [""] if gates else []
    if beside := side_by_side(pages):
        lines += _table(["", *(f"{page.name} ({page.judge})" for page in pages)], beside)
    if best := of_judges(pages):
        lines += [f"**{markdown(best.text)}.** {best.light.capitalize()}: {markdown(best.why)}.", ""]
    for page in pages:
        found = conclusion(page)
        lines += [f"### {markdown(page.name)} ({markdown(page.judge)})", ""]
        lines += [f"**{markdown(found.text)}.** {found.light.capitalize()}: {markdown(found.why)}.", ""]
        lines += [markdown(headline.opening(page)), ""]
        lines += [f"> {markdown(each)}" for each in page.missing] + [""]
        cards = headline.cards(page)
        lines += _table(["", "", ""], [[c.title, c.value, "; ".join(filter(None, c.notes))] for c in cards])
        for name in ("panel", "leaderboard"):
            lines += _audit_table(page.audit[name]) if page.audit is not None and name in page.audit else []
        if page.audit is not None and "rival" in page.audit:
            lines += [f"Paired with {markdown(page.compared_with)}:", "", *_audit_table(page.audit["rival"])]
        gaps = [entry for entry in page.entries if entry.gap > 0 or entry.status != "ok"][:_MOST_GAPS]
        if gaps:
            lines += ["Largest gaps:", ""]
            rows = [[entry.item, entry.criterion, entry.told, entry.gold, entry.status] for entry in gaps]
            lines += _table(["item", "criterion", "said", "gold", "status"], rows)
    return "\n".join(lines).rstrip() + "\n"


def to_junit(pages: Sequence[RunPage], gates: Sequence[Gate]) -> str:
    """Gates as test cases, and the verdicts of the queue that failed as errors (at most 1,000); all are counted.

    The output of each suite opens with the conclusion of its run, that of the gates with which judge is best.
    """
    suites = Xml.Element("testsuites", name="dikast")
    suite = Xml.SubElement(suites, "testsuite", name="gates", tests=str(len(gates)))
    suite.set("failures", str(sum(not gate.met for gate in gates)))
    for gate in gates:
        named = gate.text if len(pages) < 2 else f"{gate.run}: {gate.text}"  # one test case, one name
        case = Xml.SubElement(suite, "testcase", classname="gates", name=_xml(named))
        if not gate.met:
            Xml.SubElement(case, "failure", message=_xml(str(gate)))
    if best := of_judges(pages):
        Xml.SubElement(suite, "system-out").text = _xml(_concluded(best))
    for page in pages:
        failed = [entry for entry in page.entries if entry.status != "ok"][:_MOST_CASES]
        more = max(0, page.failed - len(failed))
        suite = Xml.SubElement(suites, "testsuite", name=_xml(page.name), tests=str(page.rows))
        suite.set("errors", str(len(failed) + more))
        for entry in failed:
            case = Xml.SubElement(suite, "testcase", classname=_xml(entry.criterion), name=_xml(entry.item))
            reasons = "; ".join(said.reason for said in entry.said if said.reason)
            Xml.SubElement(case, "error", message=_xml(f"{entry.status}: {reasons}")).text = _xml(
                "\n".join(said.raw for said in entry.said)
            )
        out = Xml.SubElement(suite, "system-out")
        unlisted = [f"{counted(more, 'error')} without a test case: --queue N shows more"] if more else []
        out.text = _xml("\n".join([_concluded(conclusion(page)), headline.opening(page), *page.missing, *unlisted]))
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _concluded(found: Conclusion) -> str:
    return f"{found.text}. {found.light.capitalize()}: {found.why}."


def _judged(page: RunPage) -> dict[str, str]:
    """What the first screen says was judged: the data, how many rows, and the day."""
    about = subject(page, redacted=True)
    return {"data": about.data, "rows": about.rows, "date": about.date}


def _gap(entry: Any) -> dict[str, Any]:
    gap = None if entry.gap != entry.gap else entry.gap
    names = ("item", "criterion", "sample", "response", "status", "verdict", "joint", "gold")
    return {name: getattr(entry, name) for name in names} | {
        "gap": gap,
        "said": [{"shown": said.shown, "expected": said.expected, "mass": said.mass} for said in entry.said],
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(markdown, head)) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(markdown, row)) + " |" for row in rows), ""]


def _audit_table(table: Table) -> list[str]:
    return _table(table.columns, [[shown(cell) for cell in cells] for cells in table.rows])


def _xml(text: str) -> str:
    """Without what XML 1.0 cannot hold; control characters as escapes."""
    return printable(text).replace("\ufffe", "").replace("\uffff", "")
