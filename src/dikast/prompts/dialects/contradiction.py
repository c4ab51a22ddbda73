"""Contradictions within a reply: alternatives, a verdict that is withdrawn, prose that says the opposite."""

import re
from dataclasses import replace

from dikast.prompts.dialects import doubts, frame, phrases, statement_end
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.dialects.label import read_label
from dikast.prompts.dialects.pair_scores import scores_against
from dikast.prompts.dialects.prose import concession, firmest, sentences
from dikast.prompts.parsed import Reading, Slot, Stated, Target

_CONNECTED = phrases.compiled(r"(?<!\w)(?:or|and|vs|alternatively|maybe|perhaps|possibly)(?!\w)|[/|&]")
_ALTERNATIVE = phrases.compiled(
    r"[\s*_`\"'”’.,;)(\]}]{0,8}(?:",
    r"(?:and\s?/\s?or|or|and|vs\.?|/|\||&|alternatively|maybe|perhaps|possibly)[\s*_`\"'“‘,:(]{0,8}){0,3}",
    r"(?:(?:so|the|my|a|it\sis)\s){0,3}",
)
# A verdict withdrawn without another one, in words that are not used about a response.
_VERDICT = "(?:verdict|decision|judge?ment|score|rating|grade|label|ranking|result|preference|conclusion)"
_BARE = r"(?:\A\W{0,8}|(?<=[;.!?]\s))"  # where a sentence begins: of what follows a label, or after another one
_WITHDRAWN = phrases.compiled(
    r"(?<!\w)(?:",
    phrases.any_of(
        "just kidding, just joking, only joking, scratch that, strike that, scrap that, forget that,"
        r"(?:sorry|no|rather|wait)\W{1,3}the other way a?round,"
        "(?:that|this|it)(?:['’]s| is| was) the wrong way a?round,"
        "I (?:cannot|can['’]t|could not) (?:decide|choose|tell which), never ?mind, oops, on second thought,"
        r"actually\W{1,3}no(?=\W|$), no\W{1,3}wait(?=\W|$), hard to (?:say|tell)(?=\W|$),"
        r"(?:I(?:['’]m| am| remain| stay) (?:still )?|(?<=[;.!?] )(?:still )?)undecided"
        r"(?=\s*(?:[.;!]|$)|\s(?:between|about)\s(?:the\s(?:two|both|responses|answers)|them|both|these)(?!\w)),"
        r"but so (?:is|was) (?:this|mine)(?=\s*(?:[.;!]|$)),"
        r"I(?:['’]m| am) (?:0 ?%|zero per ?cent|not at all) (?:sure|certain|confident),"
        rf"{_BARE}(?:0 ?%|zero per ?cent|not at all) (?:sure|certain|confident)(?=\s*(?:[.;!]|$)),"
        "on reflection, on closer look, not really, I take (?:it|that) back, I made a mistake, I was wrong, I misread,"
        "I misspoke, I spoke too soon, I (?:have )?changed my mind, I was (?:only |just )?(?:joking|kidding),"
        "that was (?:a joke|sarcasm|sarcastic|irony|ironic), the above is (?:wrong|void|invalid|a mistake|not my),"
        "(?:disregard|ignore) (?:that|this|the (?:above|score|verdict|rating)),"
        "(?:that|this) (?:verdict|score|rating|label|result) (?:is|was) (?:wrong|not|incorrect|a mistake),"
        "(?:verdict|label|score|rating) as void,"
        "the other (?:one |response |answer |assistant |output )?(?:is|was|seems)"
        " (?:\\w{1,12}ly )?(?:better|superior|stronger|preferable)(?=\\W|$),"
        "(?:reverse|invert|flip|swap) (?:it|this|that|them), (?:could|might|may) (?:also |just as well )?be either,"
        "not (?:\\w{1,12} )?(?:confident|sure|certain) (?:in|of|about) (?:this|that|it|my),"
        "(?:verdict|score|rating|label|result|answer) is (?:only )?(?:provisional|tentative|preliminary|a draft)"
    ),
    rf"|{_VERDICT}(?:\sabove)?(?:\s(?:is|was|has|been|should|must|be|now|hereby|therefore)){{0,4}}\s",
    phrases.any_of(
        "reversed, overturned, withdrawn, retracted, revoked, rescinded, void, invalid, annulled, cancel?led,"
        "superseded, overruled, inverted, flipped, struck, no longer (?:stands|holds|applies), does not stand"
    ),
    r"|(?:reverse|invert|flip|withdraw|retract|revoke|rescind|cancel|overturn|swap|rely\son)\s",
    rf"(?:my|the|this|that)\s(?:above\s)?{_VERDICT}",
    r"|I\s(?:have\s)?(?:swapped|confused|mixed\sup|mistook|switched)\s(?:the\stwo|them|A\s(?:with|and|for)\sB"
    r"|B\s(?:with|and|for)\sA|the\s(?:labels|responses|answers|order|slots))",
    r")(?!\w)",
)
# Words that withdraw an announced label: a question, a remark that it is wrong, or that it is preliminary.
_CLOSED = r"[ \t*_`\"'”’)\]}>]{0,8}"
_WRONG = (
    r"(?:\w{1,12}ly\s|too\s|an?\s|far\s|just\s|so\s|simply\s){0,3}(?:not(?!\w)|"
    + phrases.any_of(
        "never, too much, too little, wrong, incorrect, false, mistaken, mistake, error, lie, joke, harsh, high, low,"
        "generous, lenient, strict, unfair, unjust, unjustified, nonsense, undeserved, unwarranted, out of, no longer,"
        "no more, what (?:some|others|many|the user|it would|I (?:would|first))"
    )
    + r"(?!\w))"
)
_DENIED = phrases.compiled(
    rf"{_CLOSED}(?:[ \t]?(?:stars?|points?|marks?)(?!\w))?(?:\?|[ \t,–—(-][^.!?;:\n]{{0,60}}\?",
    r"|[ \t]?[,–—(-]{0,2}[ \t]?or[ \t](?:not|so|lower|higher|less|more|thereabouts)(?!\w)",
    r"|[ \t]?[,–—-][ \t]?[^.,!?\n]{0,30}(?<!\w)(?:I|nobody|no\sone)\s(?:would|could|can|will)\snever(?!\w)",
    r"|,?[ \t](?:but|though|although|yet)[ \t][^.!?\n]{0,30}?(?<!\w)an?\s\d{1,3}",
    rf"|[ \t]?[,;(–—-][ \t]?(?:which\s|that\s|this\s|it\s)(?:is|was|would\sbe|seems|looks|feels)\s{_WRONG}",
    r"|[ \t.]{0,2}[,(–—-]?[ \t]?(?:"
    r"for\s(?:now|the\smoment)|tentativ|provision|preliminar|at\s(?:most|best|the\smost)))",
)
_THAT_IS_WRONG = phrases.compiled(rf"[ \t.,;:!…*_)\]}}–—-]{{0,12}}that(?:['’]s|\sis)\s{_WRONG}")  # on the same line
_NEXT_DENIED = phrases.compiled(
    r"[\s.,;:!…*_)\]}–—-]{1,12}(?:(?:no|actually|but|however|wait|sorry|ha|oh|well|and|yet)[\s,:]{1,3}){0,3}(?:",
    # attribution to somebody else, or to nobody
    r"I\s(?:disagree|beg\sto\sdiffer|think\snot|do(?:n['’]t|\snot)\s(?:agree|think\sso|believe\s(?:it|that|so)))"
    r"(?=\s?(?:[.!;,\n]|$|with\s(?:that|this|it)(?!\w)))",
    r"|(?:at\sleast\s|or\s)?(?:that|this)(?:['’]s|\sis|\swas)\s(?:\w{1,8}\s)?what\s(?!(?:I|we)(?!\w))",
    r"|"
    + phrases.any_of("as if, far from it, my foot, yeah right, or not, just testing, if only, in your dreams, I wish")
    + r"(?=\s*(?:[.!…\n]|$))|yeah,\sright",
    r"|(?:false|wrong|nonsense|untrue|not\sso|hardly)(?=\s*(?:[.!…\n]|$))",
    r"|(?:pigs\s(?:can\s|will\s|might\s)?fly|(?<=and\s)I(?:['’]m|\sam)\s(?:the|an?)\s\w)|",
    rf"that\swas\s{_WRONG}",
    r"|(?:just\s|quite\s|exactly\s)?the\s(?:opposite|reverse|contrary)\s(?:is|holds)",
    r"|(?:it|this|that)(?:['’]s|\sis)\s(?:just\s|quite\s)?(?:the\sother\sway|the\sopposite|the\sreverse)",
    r"|or\s(?:is|was|does|did)\s(?:it|that|this)(?:\s[^.!?\n]{1,40})?\?",
    r"|it(?:['’]s|\sis|\swas)\s(?:\w{1,12}ly\s|the\s){0,2}(?:weaker|worse|worst|inferior|poorer)(?:\s(?:one|response|answer))?"
    r"(?=\s*(?:[.!;\n]|$)))",
)
# A score that is added to, or that is on another scale.
_SUM = phrases.compiled(
    rf"{_CLOSED}[ \t.,;(–—-]{{0,4}}(?:(?:then|with|and|but)\s)?(?:",
    r"(?:minus|plus|less|subtract\w{0,3}|deduct\w{0,3}|add\w{0,3}|times)\s(?:\d|an?(?!\w)|one|two|half)|[-+−*x×]\s?\d|(?:halved|doubled)(?!\w)|and\sa\shalf|½|\d",
    r"|(?:would|could|should|might)\s(?:be|have\sbeen)\s(?:an?\s)?\d",
    r"|\w{1,8}\s(?:points?\s|marks?\s)?(?:deducted|subtracted|added|off)(?!\w))",
)
_ON_SCALE = phrases.compiled(
    rf"{_CLOSED}[ \t.,;(\[]{{0,4}}(?:points?\s)?(?:out\sof(?:\sa\spossible)?|of|/",
    r"|(?:on\s)?(?:an?\s|the\s)?scale(?:\s(?:of|from|to|between))?:?)",
    r"\s?(?:\d{1,3}\s?(?:-|–|to|and)\s?)?(?P<high>\d{1,4})(?!\w)",
)
_SURE = "(?:probability|confidence|certainty|likelihood)"
_PART_SURE = r"(?:0?\.\d{1,3}|\d{1,2}(?:\.\d{1,2})?\s?%)"
_HOW_SURE = phrases.compiled(  # right after a label: "with 20 % confidence", "(confidence: .3)"
    r"[\s,.(*_]{1,6}(?:with\s)?(?:an?\s|only\s|just\s|about\s){0,2}",
    rf"(?:{_SURE}(?:\sof|:)?\s?(?P<after>{_PART_SURE})|(?P<before>{_PART_SURE})\s?{_SURE})(?!\w)",
)
_SENTENCE_OVER = re.compile(r"[.!?…][\"'”’*_)\]]{0,4}\s|[\n。！？]")
_TURNED = phrases.compiled(
    r"(?<!\w)",
    phrases.any_of(
        "no, nope, wait, rather, actually, instead, correction, corrected, make (?:that|it), sorry, I mean, finally,"
        "at first, initially, in the end"
    ),
    r"(?!\w)",
)
_PART_OF_IT = phrases.compiled(
    rf"{_CLOSED}(?:\s(?:for|in|on)\s[^.,;!?\n\d]{{1,40}}|\s?\([^()\n\d]{{1,40}}\))[\s,;]{{1,3}}(?:(?:and|but|while|whereas)\s)?(?:an?\s)?",
    r"(?=(?:\d{1,3}|[AB])(?:\s(?:for|in|on)\s|\s?\())",
)
_SELF = re.compile(r"\[\s?\w|\w")  # a label that begins with a marker of its own: "[RESULT] 4", "Verdict: 4"
_DASH = re.compile(r"\A[ \t]{0,4}[–—-][ \t]{1,4}")  # "[[B]] - A is better" is no list
_FENCES = ("```", "~~~")
_NEAR, _REACH = 60, 2000  # characters between alternatives, and to a correction
_LOOK_BACK, _LOOK_ON = 120, 300


def settled(text: str, reading: Reading, target: Target, *, prose: bool) -> Reading:
    """The reading, or none with the reason where the reply contradicts the verdict that counts.

    `prose` readings in words have weighed the sentences of the reply already.
    """
    stated = reading.stated
    if stated is None or stated.label is None:
        return reading
    before = None if prose or stated.words else _said_before(text, stated, target)
    reason = (
        _alternatives(text, stated, reading.earlier)
        or (_two_verdicts(text, before, stated) if before and _joined(text, before, stated) else "")
        or _denied(text, stated)
        or _unlikely(text, stated, target)
        or _contradicted(text, stated, target)
        or _recounted(text, stated, target)
        or _divided(text, stated, target)
        or ("" if stated.words else _unframed(text, stated, reading, target))
        or _taken_back(text, stated, reading.remarks, target)
        or _outscored(text, stated, target)
    )
    if not reason and not (prose and stated.words):
        reason = _opposite(f"{reading.remarks}\n{_DASH.sub('', text[stated.end :])}", stated, target)
    if reason:
        return replace(reading, stated=None, reason=reason, earlier=())
    return reading if before is None else replace(reading, earlier=(*reading.earlier, before))


def _said_before(text: str, stated: Stated, target: Target) -> Stated | None:
    """The sentence before the label that says the opposite: in the same clause, or as a conclusion."""
    slot, begin = _slot(stated.label, target), max(0, stated.start - _LOOK_ON)
    if slot is None:
        return None
    found = [
        each for each in sentences(text[begin : stated.start]) if each.grade in ("plain", "concluding", "announced")
    ]
    if not found or found[-1].slot == slot:
        return None
    last = found[-1]
    said = Stated(
        last.slot, text[begin + last.start : begin + last.end], begin + last.start, begin + last.end, words=True
    )
    return said if last.concludes or _joined(text, said, stated) else None


def _joined(text: str, before: Stated, stated: Stated) -> bool:
    return _of_one_sentence(text[before.end : stated.start])


def _two_verdicts(text: str, before: Stated, stated: Stated) -> str:
    return f"one sentence states two verdicts: {text[before.start : stated.end][:120]!r}"


def _unframed(text: str, stated: Stated, reading: Reading, target: Target) -> str:
    since = max((each.end for each in reading.earlier if each.end <= stated.start and not each.words), default=0)
    return frame.unframed(text, stated, target, marked=_marked(text, stated), since=since)


def _alternatives(text: str, stated: Stated, earlier: tuple[Stated, ...]) -> str:
    before = max((each for each in earlier if each.end <= stated.start), key=lambda each: each.end, default=None)
    if before is None or before.label in (stated.label, None):
        return ""
    gap = text[before.end : stated.start]
    own = _SELF.match(text, stated.start) or (text[stated.start] == "{" and not gap.strip())
    if _commented(text, before) and _commented(text, stated):
        return f"each label has a remark of its own: {text[before.start : stated.end][:120]!r}"
    if _of_one_sentence(gap) and not (stated.words or before.words or own):
        return _two_verdicts(text, before, stated)
    if _in_one_block(text, before, gap):
        return f"one block of code holds two verdicts: {text[before.start : stated.end][:120]!r}"
    if len(gap) > _NEAR or _ALTERNATIVE.fullmatch(gap) is None:
        return ""
    bare = not gap.strip(" *_`.;")
    if _CONNECTED.search(gap) is None and (
        "\n" in gap or text[stated.start] == "{" or (bare and _SELF.match(text, stated.start))
    ):
        return ""  # on separate lines, in two objects, or with a marker each: the last one counts
    return f"two verdicts stand side by side: {text[before.start : stated.end][:120]!r}"


def _in_one_block(text: str, before: Stated, gap: str) -> bool:
    """Whether one block of code holds both labels, the second with nothing or the same words before it."""
    if not any(text.count(fence, 0, before.start) % 2 and fence not in gap for fence in _FENCES):
        return False
    lead = text[: before.start].rpartition("\n")[2].strip()
    between, _, own = gap.rpartition("\n")
    return not between.strip() and own.strip() in ("", lead)


def _commented(text: str, stated: Stated) -> bool:
    """Whether the label opens its line and a remark follows it: "[[A]]: 6"."""
    line = text[stated.end : stated.end + _LOOK_ON].partition("\n")[0]
    before = text[: stated.start].rpartition("\n")[2].strip(" \t*_`>-")
    return (not before or (before[-1] in ".;" and line.lstrip(" *_")[:1] == ":")) and re.search(r"\w", line) is not None


def _marked(text: str, stated: Stated) -> bool:
    """Whether the label comes with a marker of its own: "[RESULT] 4", a JSON object."""
    return text[stated.start] == "{" or _SELF.match(text, stated.start) is not None


def _of_one_sentence(gap: str) -> bool:
    """Whether nothing between two labels ends a sentence or turns from the first one to the second."""
    return len(gap) < _REACH and _SENTENCE_OVER.search(gap) is None and _TURNED.search(gap) is None


def _denied(text: str, stated: Stated) -> str:
    """Why not, if the words right before or after the label say that it is not the verdict."""
    line = text[max(0, stated.start - _LOOK_BACK) : stated.start].rpartition("\n")[2]
    rest = text[stated.end : stated.end + _LOOK_ON]
    clause = phrases.BREAK.split("\n" + line)[-1]
    if not stated.words and doubts.under(clause, "") == "doubted":
        return f"the verdict is denied or in doubt: {(clause + text[stated.start : stated.end]).strip()[-120:]!r}"
    end = phrases.END_OF_SENTENCE.search(rest)
    following = rest[end.start() :] if end else ""
    if (
        _DENIED.match(rest)
        or _THAT_IS_WRONG.match(rest)
        or _NEXT_DENIED.match(rest)
        or _NEXT_DENIED.match(following)
        or doubts.taken_away(rest)
    ):
        return f"the verdict {stated.said.strip()!r} is denied or made to depend: {rest.strip()[:80]!r}"
    return ""


def _unlikely(text: str, stated: Stated, target: Target) -> str:
    """Why not, if the reply gives the response that it names a chance of less than a half."""
    sure = _HOW_SURE.match(text, stated.end) if _slot(stated.label, target) in ("first", "second") else None
    if sure is None:
        return ""
    said = sure["after"] or sure["before"]
    share = float(said.rstrip("% ")) / (100 if said.endswith("%") else 1)
    return f"the verdict {stated.said.strip()!r} is held to be unlikely: {said!r}" if share < 0.5 else ""


def _contradicted(text: str, stated: Stated, target: Target) -> str:
    slot = _slot(stated.label, target)
    said = statement_end.contradicted(text[stated.end : stated.end + _LOOK_ON], slot) if slot else ""
    return (
        f"the verdict {stated.said.strip()!r} is contradicted or limited by what follows it: {said!r}" if said else ""
    )


def _recounted(text: str, stated: Stated, target: Target) -> str:
    """Why not, if a score is added to or subtracted from, or is on another scale."""
    if target.scale is None:
        return ""
    scale = _ON_SCALE.match(text, stated.end)
    whole = scale is None or target.scale.match(scale["high"]) == target.scale.labels[-1]
    if whole and (scale is not None or _SUM.match(text, stated.end) is None):
        return ""
    return f"the score {stated.said.strip()!r} is not the last word: {text[stated.end : stated.end + 60].strip()!r}"


def _taken_back(text: str, stated: Stated, remarks: str, target: Target) -> str:
    rest = text[stated.end : stated.end + _REACH]
    withdrawn = _WITHDRAWN.search(rest) or _WITHDRAWN.search(remarks)
    if withdrawn:
        return f"the verdict {stated.said.strip()!r} is taken back: {withdrawn[0]!r}"
    other = frame.restated(rest, stated.label, target) or frame.restated(remarks, stated.label, target)
    return f"the verdict {stated.said.strip()!r} is followed by another one: {other[-80:]!r}" if other else ""


def _divided(text: str, stated: Stated, target: Target) -> str:
    """Why not, if each label is about a part: "4 for style and 2 for facts", "1 (terrible), 5 (perfect)"."""
    part = _PART_OF_IT.match(text, stated.end)
    other = read_label(text, part.end(), target, next_line=False) if part else None
    if part is None or other is None or other.kind != "label" or other.label == stated.label:
        return ""
    return f"each verdict is about a part: {text[stated.start : other.end][:120]!r}"


def _outscored(text: str, stated: Stated, target: Target) -> str:
    slot = _slot(stated.label, target)
    said = scores_against(text, slot) if slot else ""
    return f"the scores of the reply say the opposite of {stated.said.strip()!r}: {said[:80]!r}" if said else ""


def _opposite(rest: str, stated: Stated, target: Target) -> str:
    slot = _slot(stated.label, target)
    said = (concession(rest) or firmest(rest, limited=True)) if slot is not None else None
    if said is None or said.slot == slot:
        return ""
    excerpt = rest[said.start : said.end]
    return f"what follows the verdict {stated.said.strip()!r} says the opposite: {excerpt!r}"


def _slot(label: str | None, target: Target) -> Slot | None:
    """The slot that won, where the verdict is about a pair."""
    if target.scale is None:
        return label  # type: ignore[return-value]  # a pair's labels are slots
    if label not in ARENA.labels or set(target.scale.labels) - set(ARENA.labels):
        return None
    return "tie" if "=" in label else "first" if label[0] == "A" else "second"
