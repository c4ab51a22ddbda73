"""Scorecards of benches as one HTML file: no script, no network, all text from models escaped."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from markupsafe import Markup

from dikast.audit.rendering import shown
from dikast.audit.results import Accuracy
from dikast.benches.scorecard import Scorecard
from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import Conclusion
from dikast.surface.report.conclusions.of_judge import of_judge
from dikast.surface.report.headline import main_figure
from dikast.surface.report.page import ROOM
from dikast.surface.report.subject import judged_on


def cards_page(cards: Sequence[Scorecard]) -> str:
    """The page of scorecards: the conclusion of each, then each with the tables of its audit."""
    style = asset(ROOM, "page.css")
    return template_environment("dikast.surface.benching").get_template("cards.html.j2").render(
        cards=[(card, card_conclusion(card), judged_on(Path(card.audit.source))) for card in cards],
        style=Markup(style), style_hash=asset_hash(style), version=version("dikast"), shown=shown,
    )  # fmt: skip


def card_conclusion(card: Scorecard) -> Conclusion:
    """Whether the judge of a scorecard can be used, by the rules of the report; grey where the bench measures no
    agreement with gold.
    """
    kind = "pairwise" if card.audit.result(Accuracy) is not None else "absolute"
    page = RunPage(Path(card.audit.source), card.judge, kind, audit=card.audit)
    if main_figure(page) is not None:
        return of_judge(page)
    why = "this bench measures no agreement of single verdicts with gold, so that no rule says whether it is good"
    if not card.official:
        return Conclusion("grey", "Not known whether the judge is right", why)
    first = card.official[0]
    return Conclusion("grey", f"{first.name}: {first.value:.3f} (n {first.value.n:,})", why)
