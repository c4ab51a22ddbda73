"""The patterns of `statements`: sentences that name a response, call it better, or call two equal.

Every repetition is bounded or possessive, so that reading stays linear however long or strange a reply is.
"""

import re
from functools import cached_property
from typing import Any, cast

from dikast.prompts.dialects.label import NOUN

_COMMA = re.compile(r",(?!\d)")  # but not that of a repetition such as {1,20}


def any_of(listed: str) -> str:
    """A group of alternatives, listed with commas; a space matches any white space."""
    return "(?:" + "|".join(each.strip().replace(" ", r"\s") for each in _COMMA.split(listed)) + ")"


class _WhenUsed:
    """A pattern that is compiled at its first use. `match.re` of its matches is the compiled one: compare `.pattern`.

    Most runs use few of the patterns, and compiling all of them takes longer than anything else at the start of a run.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._text, re.I)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pattern, name)
        setattr(self, name, found)  # so that this method is called once for each name
        return found


def compiled(*parts: str) -> re.Pattern[str]:
    """The parts in a row as one pattern, without regard to case, which is compiled at its first use."""
    return cast(re.Pattern[str], _WhenUsed("".join(parts)))


# --- Responses by name
LEAD = r"[*_`\"'“‘(\[]{0,4}+"
SHUT = r"(?>(?:[*_`\"”)\]]|['’](?!s(?!\w))){0,6})"
WHOLE = any_of("response, answer, output, reply, solution, one, choice, option, completion")
OPTIONS = (  # any of the two, without saying which
    rf"(?:(?:{NOUN}\s{{0,3}}+{LEAD}|[*_`\"'“‘(\[]{{1,4}}+)[AB12]|(?-i:[AB12]))(?!\w){SHUT}"
)
_OF_IT = r"(?:['’]s(?:\s(?:overall\s|own\s)?(?:response|answer|output|reply|solution|completion))?(?!\w))?"
_OPTION = (
    rf"(?:(?P<noun>{NOUN})\s{{0,3}}+{LEAD}(?P<letter>[AB12])(?!\w|\.\d){SHUT}"
    rf"|(?P<ordinal>first|second)\s{{1,3}}+(?:\w{{1,12}}['’]s\s)?(?P<kin>{NOUN}|one)(?!\w){SHUT}"
    rf"|(?<![\w(.])(?P<bare>(?-i:[AB])(?![\w-])|[ab](?=[*_.)\]\"]{{0,4}}+\s{{0,9}}+\Z)){SHUT})"
)
_OPTION_OF = rf"{_OPTION}{_OF_IT}{SHUT}"
NAME = compiled(rf"(?<!\w)(?P<noun>{NOUN})\s{{0,3}}+{LEAD}(?P<letter>[AB12])(?!\w|\.\d)")
RESPONSES = frozenset({"assistant", "response"})  # these always name the compared responses

# --- One is better
HOW_MUCH = r"(?:slightly|somewhat|marginally|narrowly|clearly|strongly|much)(?:\sbetter)?"
_NOT_FULLY = any_of(
    "hardly, scarcely, rarely, supposedly, allegedly, potentially, possibly, nearly, initially, originally, partly,"
    "partially, only, equally, seemingly, reportedly, arguably, apparently"
)
_SKIP = (
    rf"(?:\s{{1,3}}+(?!{_NOT_FULLY}(?!\w))"
    + any_of(
        r"\w{1,20}ly, a, the, far, much, somewhat, even, still, just, bit, little, overall, also, thus, therefore,"
        "deemed, considered, judged, rated, more, clear, obvious, definite"
    )
    + ")"
)
_BETTER = "better|best|superior|preferable|preferred|stronger|winner"
_WORSE = "worse|worst|inferior|weaker"
_EITHER = rf"{LEAD}(?:(?P<better>{_BETTER})|(?P<worse>{_WORSE}))(?!\w)"
_IS = (
    any_of(
        "is, was, being, would be, seems, appears, becomes, remains, should be, did, does, performs, performed, fares,"
        "fared"
    )
    + r"(?:\sto\sbe)?"
)
_GIVES = any_of(
    "provide[sd]?, gives?, gave, offer(?:s|ed)?, has, had, produce[sd]?, deliver(?:s|ed)?, present(?:s|ed)?"
)
_CHOOSE = any_of(
    "prefer, choose, chose, pick(?:ed)?, select(?:ed)?, favou?r, voted? for, go with, take, opt for, side with,"
    "lean (?:towards?|to), give (?:the|my) (?:win|vote|nod|edge) to"
)
_DESERVES = (
    r"(?:deserves|earns|takes|gets)\s(?:to\swin|(?:the|my)\s(?:clear\s|narrow\s|overall\s)?(?:win|victory|vote))"
)
VERDICT = any_of(
    "verdict, decision, judge?ment, preference, winner, vote,"
    "(?:final|overall) (?:answer|choice|assessment|evaluation|conclusion|pick)"
)
_FOR_ALL = (
    any_of(
        "because, since, as, by(?! default), over, overall, here, and, due, this, out,the (?:comparison|day|vote|match)"
    )
    + r"(?!\w)"
)
_IS_NAMED = rf"(?:\s{any_of('is, was, would be, goes to, favou?rs, remains')}(?:\sthat)?(?!\w))?"

OPTION = compiled(_OPTION)  # positions at which COMPARED, WINS and HAS_BETTER can begin
COMPARED = compiled(_OPTION_OF, rf"\s{{1,3}}+{_IS}{_SKIP}{{0,4}}\s{{1,3}}+", _EITHER)
WINS = compiled(
    _OPTION_OF,
    # possibly the second of two predicates: "A is short and thus deserves the win"
    r"(?:(?:(?!\s[\"'“(\[*]{0,3}[ab][\s\"'”)\]*.,])[^.,;:!?\n]){1,80}?\sand(?=\s))?",
    rf"{_SKIP}{{0,2}}\s{{1,3}}+(?:(?:wins|won|should\swin)(?={SHUT}\s{{0,3}}(?:[.,;:!)\n—–-]|$|{_FOR_ALL}))",
    rf"|(?:outperforms|beats|surpasses|outshines|exceeds|trumps)\s(?:the\s)?(?:{OPTIONS}|(?:other|its|it|second|first|latter|former)(?!\w)(?:\s{NOUN})?)"
    rf"|edges\sout\s(?:the\s)?(?:{OPTIONS}|(?:other|second|first|latter|former)(?!\w)(?:\s{NOUN})?)"
    r"|gets\smy\svote|comes\sout\s(?:on\stop|ahead)|"
    rf"{_DESERVES}|(?P<worse>loses)(?=\s?(?:[.!;\n]|$|to\s)))(?!\w)",
)
HAS_BETTER = compiled(
    _OPTION,
    rf"{_SKIP}?\s{{1,3}}+(?:{_GIVES}|does|did){_SKIP}{{0,3}}\s{{1,3}}+(?P<better>better|best|superior|stronger)"
    rf"\s(?:overall\s)?(?:{WHOLE}(?!\w)|job(?={SHUT}\s{{0,3}}(?:[.!;\n]|$|overall)))",
)
MADE = compiled(
    rf"(?<!\w)(?:mak(?:es|ing)|(?:I|we)\s(?:\w{{1,12}}ly\s)?(?:find|found|consider|deem|judge|rate|call|rank))\s{{1,3}}+(?:the\s)?{LEAD}",
    _OPTION_OF,
    rf"(?:\sto\sbe)?{_SKIP}{{0,4}}\s{{1,3}}+",
    _EITHER,
)
CHOSEN = compiled(
    rf"(?<!\w)(?:I|we)(?:['’]d|['’]ll|\swould|\swill|\shave)?{_SKIP}{{0,2}}\s{_CHOOSE}\s{{1,3}}+(?:the\s)?{LEAD}",
    _OPTION_OF,
)
NAMED = compiled(
    rf"(?<!\w)(?<!less\s)(?<!least\s)(?P<kind>(?:better|best|superior|preferred|preferable|stronger|winning|chosen|(?P<worse>loser|(?:worse|weaker|inferior|losing)(?=\s(?:one|{NOUN}))))",
    rf"(?:\s(?:overall\s)?(?:one|choice|{NOUN}))?|{VERDICT}|(?<=my\s)(?:choice|pick)){SHUT}{_IS_NAMED}\s{{0,2}}+:?{SHUT}\s{{0,4}}+{SHUT}",
    rf"(?:for\s)?(?:the\s)?{LEAD}{_OPTION_OF}",
)
ANNOUNCED_MORE = compiled(
    rf"(?<!\w){VERDICT}\sis{SHUT}[ \t]{{0,2}}+:?[ \t]{{0,2}}+(?:that\s)?(?:the\s)?{LEAD}{_OPTION_OF}{_SKIP}?",
    rf"\s{{1,3}}+(?:{_IS}|{_GIVES})(?:{_SKIP}){{0,3}}\s{{1,3}}+(?P<better>more|better)(?!\w)",
)
LOST = compiled(
    rf"{SHUT}(?:{_SKIP}){{0,3}}\s{{1,3}}+(?:{_WORSE}|behind|beaten|outperformed|trails|lags|loses|lost)(?!\w)"
)
BUT_LESS = compiled(r"[^.!?\n]{0,120}?(?<!\w)(?:but|yet)\s(?:also\s)?(?:less|not|worse)(?!\w)")
# The last line, if it only announces: "Overall: A", "Selected response: B (slightly)", "The better response is 2."
ANNOUNCED_LINE = compiled(
    r"(?:\A|\n)[\s*_`#>(-]{0,12}+(?:(?:my|the)\s)?",
    rf"(?:final|overall|(?:(?:better|best|preferred|superior|stronger|winning|chosen|selected)(?:\s(?:one|{NOUN}))?)",
    rf"|(?:(?:final|overall)\s)?(?:choice|pick|preference|winner)){SHUT}(?:\s{{0,2}}+:|\sis(?!\w)){SHUT}\s{{0,2}}+",
    rf"(?:the\s)?{LEAD}(?:{_OPTION_OF}|(?P<digit>[12])(?!\w|\.\d){SHUT})",
    rf"(?:\s?\({HOW_MUCH}\))?[*_`)\].!\s]{{0,8}}+\Z",
)
ABOUT_VERDICT = compiled("verdict|decision|judge?ment|preference|winner|vote")

# --- Both are alike
_ABOUT = any_of(
    "relatively, roughly, about, essentially, basically, practically, virtually, more or less, pretty much, all,"
    "fairly, very, quite, largely, simply, generally, overall, thus, therefore"
)
_EQUALLY = r"equally\s" + any_of(
    "good, strong, well, helpful, valid, effective, matched, correct, accurate, bad, poor, suitable, useful,"
    "satisfactory, deserving, capable, competent, acceptable, unhelpful, wrong, incorrect, weak, flawed"
)
_SAME_KIND = rf"(?:{NOUN}s|of\s(?:them|these)|contenders|sides\sof\sthe\scomparison|replies|poems|texts|stories|essays)"
_BOTH = (
    rf"(?:(?:both|the\stwo|these|these\stwo)\s(?:of\s)?(?:the\s|these\s)?{_SAME_KIND}|both|they|the\stwo|the\s{NOUN}s"
    rf"|{OPTIONS}\s(?:and|&)\s(?:the\s)?{OPTIONS}(?:['’]s\s\w{{1,20}})?)"
)
_EVEN = (
    rf"(?:equal(?!ly|\w)|{_EQUALLY}(?!\w)"
    r"|(?:a\s)?(?:tie|tied|draw|toss-?up|dead\sheat)(?![\w-]|\s(?:break|to\s|up\s|with\sa))"
    r"|on\s(?:a\s)?par(?!\w)|evenly\smatched|comparable(?!\w)|equivalent(?!\w)"
    r"|(?:of\s)?(?:the\ssame|equal|equivalent|comparable)\squality"
    r"|the\ssame(?=[\s*_]*(?:[.,;!:)\n\]]|$|overall|in\s(?:overall\s)?quality)))"
)
_RULED = any_of("consider, call, declare, rate, judge, deem, score, rule, say")
_THEM = any_of("it, this, that, these, them, the two, the comparison, both")
_COMES_TO = any_of("it['’]s, that['’]s, this is, we have, calls? for, result(?:s|ing)? in, end(?:s|ing)? in")
TIE = compiled(
    rf"(?<!\w)(?:{_BOTH}{SHUT}\s{any_of('are, is, was, were, seem, appear, would be, ends? in')}",
    rf"(?:\s{_ABOUT}){{0,3}}\s{LEAD}{_EVEN}",
    rf"|{_EQUALLY}(?!\w)",
    r"|neither(?:\s[\w()]{1,20}){0,4}\s(?:is|was)\s(?:\w{1,12}\s)?(?:better|superior|preferable)(?!\w)",
    rf"|(?:I|we)(?:['’]d|\swould|\swill)?(?:\s\w{{1,12}}ly)?\s{_RULED}\s{_THEM}",
    rf"(?:['’]s|\sis|\sto\sbe|\sas|\sresponses|\sanswers){{0,2}}(?:\s{_ABOUT})?\s{LEAD}{_EVEN}",
    rf"|(?:I|we)(?:['’]d|\swould|\swill|\scould)?(?:\s\w{{1,12}}ly)?\s{_CHOOSE}\s(?:either|neither|both)(?!\w)",
    rf"|(?:overall\s)?quality\sis\s(?:{_ABOUT}\s){{0,2}}(?:equal|the\ssame|comparable)(?!\w)",
    rf"|{_COMES_TO}(?:\s{_ABOUT})?\s{LEAD}a\s(?:tie|draw)(?![\w-]|\sbreak)",
    rf"|there\sis\sno\s(?:clear\s|real\s|single\s)?(?:winner|better\s{WHOLE})(?!\w))",
)
TIE_ANNOUNCED = compiled(
    rf"(?<!\w)(?:{VERDICT}|outcome|result|(?:final|overall)(?=[*_]{{0,3}}:)){SHUT}(?:\s(?:is|was|would\sbe|remains))?{SHUT}",
    rf"\s{{0,2}}+:?{SHUT}\s{{0,4}}+{LEAD}(?:that\s)?",  # "Winner: A (tie)" names a response, which is no article
    rf"(?:(?:it\sis|it['’]s|there\sis|{_BOTH}\s(?:are|is))\s)?(?:{_ABOUT}\s){{0,2}}(?:an?\s(?![(\[]))?{LEAD}",
    rf"(?:{_EVEN}|neither(?=[\s*_]*(?:[.,;!]|$))|no\s(?:clear\s)?winner(?!\w)|even(?=[\s*_]*[.\n]|$))",
)
TIE_LINE = compiled(
    r"(?:^|\n)[\s*_`#(-]{0,12}+(?:overall[,:]\s|therefore,\s|so\s)?(?:it['’]?s\s|it\sis\s)?(?:a\s)?(?:tied?|draw)",
    r"(?:,?\s(?:relatively|roughly|about)\s(?:the\ssame|equal))?[*_`):.!\s]{0,8}+(?=\n|$)",
)

# --- `A > B`
_ALL_OF_IT = any_of("this, overall, general, every, all, my, most, executing, following, answering, fulfilling")
SIGN = compiled(
    rf"(?<![\w>=<\[])(?P<noun>{NOUN}\s{{0,2}}+)?(?P<one>(?-i:[AB])|(?(noun)[12]|(?!)))",
    r"\s{0,3}+(?P<sign>>{1,3}|<{1,3}|={1,2}|≈|~)\s{0,3}+",
    rf"(?P<other>{NOUN}\s{{0,2}}+)?(?P<two>(?-i:[AB])|(?(other)[12]|(?!)))(?![\w>=<\]]|\s{{0,3}}[>=<+/]|\.\d)",
)
SIGN_LIMITED = compiled(
    rf"{SHUT}\s{{0,3}}+(?:in|on|for|at|by|with|when|where|if|regarding|as\sto|unless|but)"
    rf"\s(?!(?:the\s)?(?:{_ALL_OF_IT}|(?:final|whole|total))(?!\w))"
)
# Words before "I prefer A" that limit it: "For a beginner", "On style", "Purely on tone", "Stylistically"
LIMITED_LEAD = compiled(
    r"(?:^|[.;:!?\n]|,\s?(?:but|and|while))[\s*_\"'>-]{0,8}(?:(?:but|and|so|while)\s)?(?:",
    r"for\s(?!me(?!\w)|(?:\w{1,12}\s){0,3}reasons?)\w",
    r"|on\s(?!balance|the\s(?:whole|other\shand)|(?:\w{1,8}\s)?reflection|(?:second|closer|all|every|this|that))\w",
    rf"|as\san?\s(?!{any_of('result, consequence, judge, evaluator, grader, whole, neutral, fair, impartial')})\w",
    r"|(?:purely|only|solely|strictly|just|merely)\s(?:on|for|in|by|from|as)\s\w",
    r"|(?:styl|linguist|grammat|factu|techn|visu|struct|ton|aesthet)\w{0,10}ly(?=,)"
    r"|(?:[^.;!?\n]{0,40}(?<!\w))?based\son\s[^.;!?\n]{1,40}\s(?:alone|only)(?!\w))[^.;!?\n]{0,60}\Z",
)
SIGN_DUE = compiled(
    rf"(?:{VERDICT}|ranking|overall){SHUT}(?:\s(?:is|was))?{SHUT}\s{{0,2}}+:?{SHUT}\s{{0,4}}+[*_`(\[\s]{{0,6}}+$"
)

# --- Words without which the patterns above cannot match; for text in small letters
_OUTCOMES = "verdict|decision|judgment|judgement|preference|winner|vote"
CUE_BETTER = re.compile(
    r"better|best|superior|prefer|stronger|winner|worse|worst|inferior|weaker|wins|won|outperform|beat|surpass|outshine"
    r"|exceed|trump|my\svote|on\stop|ahead|win(?=[\s.,!])|serves\s(?:to|the|my)"
    r"|(?<!\w)edges\sout"
)
CUE_CHOSEN = re.compile(
    r"prefer|choose|chose|pick|select|favor|favour|vote|go\swith|\stake\s|opt\sfor|side\swith|lean\sto"
    r"|the\s(?:win|nod|edge)"
)
CUE_NAMED = re.compile(
    r"better|best|superior|prefer|stronger|winning|chosen|selected|los(?:er|ing)|worse|weaker|inferior|choice|pick|final|overall"
    rf"|{_OUTCOMES}"
)
CUE_RATED = re.compile(r"(?<!\w)(?:rate|rank|score|place)\s")
CUE_EVEN = re.compile(
    r"equal|tie(?:d|$|[^a-z])|draw|toss|dead\sheat|on\s(?:a\s)?par|evenly|comparable|equivalent|same|either|winner|even|no\s"
)
CUE_SIGN = re.compile(r"[AB12]\s{0,3}[><=≈~]")

# --- Words after "better" if the whole response is meant; other words limit it ("better written") or deny it.
_A_REASON = r"an?\s(?:\w{1,12}\s){0,2}(?:reasons?|number)"
# What both were asked to do, as against "at following the format"
_TASK = any_of("instructions?, questions?, tasks?, prompt, request, query")
_AT_THE_TASK = rf"at\s(?:following|executing|answering|fulfilling)\s(?:\w{{1,12}}(?:['’]s)?\s){{0,2}}{_TASK}"
_GOES_ON = any_of(
    r"overall, because, as(?! an? ), since, due, of (?:the (?:two|pair|comparison)|these|them|both|all), here, and,"
    "but, given, when, although, though, while, by, with, to,"
    "compared, between, among, not, so, it, both, even, despite, from, based, or equal, option, thanks, which, who,"
    rf"that, I, the, on (?:the whole|balance), {_AT_THE_TASK}, in (?:terms|its),"
    rf"for (?:being|its|the (?:following )?reasons?|this|these|providing|giving|{_A_REASON}|addressing),"
    "for the (?:user|task|question|instruction|prompt|given)"
)
_THAN = rf"than\s(?:the\s)?(?:other|its|that|{LEAD}{OPTIONS}|first|second|former|latter|{NOUN})"
RATED = compiled(
    rf"(?<!\w)(?:I|we)(?:['’]d|\swould|\swill)?{_SKIP}{{0,2}}\s(?:rate|rank|score|place)\s{{1,3}}+(?:the\s)?{LEAD}",
    rf"{_OPTION_OF}{_SKIP}{{0,2}}\s{{1,3}}+(?:(?P<better>higher|first)|(?P<worse>lower|last|second))",
    rf"(?={SHUT}\s{{0,3}}(?:[.!;\n]|$|(?:{_THAN}|overall|because|since)(?!\w)))",
)
WHOLE_MEANT = compiled(
    rf"{SHUT}\s{{0,3}}+(?:$|[.,;:!)\[\]*\n—–-]|\((?!in\s)|(?:{WHOLE}|{NOUN}|{_GOES_ON}|in\s{_ALL_OF_IT}|{_THAN})(?!\w))"
)
# Words after a response that was named or chosen: "I prefer A over B", but not "I prefer A's tone" or "A provides".
NAME_ENDS = compiled(
    rf"{SHUT}(?!['’]|\s{{0,3}}(?:!?[=<>?~&|/+≠≤≥≯≮→]|-+>))\s{{0,3}}+(?:$|[.,;!)\]*\n—–]",
    rf"|:(?=[\s*_]*(?:\n|$|\[))|-\s(?!\d)|\({HOW_MUCH}\)",
    "|"
    + any_of(
        rf"as (?:the )?{OPTIONS},"
        "over, because, as (?:it|its|they|my|both|the (?:better|best|winner|superior|preferred|stronger|other)), since,"
        r"due, for (?:its|it|being|the (?:reasons?|following)|this|that|these|\w{2,12}ing), by, overall, here, based,"
        "given, in this, and not, which is, slightly,"
        "somewhat, marginally, narrowly, clearly, strongly, a (?:bit|little), in the end, after all, on the whole"
    ),
    r"(?!\w))",
)
COLON = compiled(SHUT, r"\s?:")
AFTER_OR = compiled(
    rf"[\s\"'”’*_`)\]]{{0,8}}(?:(?:or|vs\.?|/|versus)(?!\w)|,\s?(?:{OPTIONS}|tie),?\s?(?:or|and)(?!\w))"
)

# --- Only one aspect
_FOR_THE_WHOLE = any_of(
    r"the (?:user|task|question|instruction|prompt|given|following|reasons?|same), its, being, me, this, these, that,"
    rf"several, two, three, many, all, both, {_A_REASON}, \w{{2,12}}ing"
)
ASPECT_AFTER = compiled(
    rf"{SHUT}\s{{0,3}}+(?:{WHOLE}\s)?(?:{_THAN}{_OF_IT}{SHUT}\s{{1,3}}+)?(?:in\s(?!{_ALL_OF_IT}(?!\w))",
    rf"|(?!{_AT_THE_TASK}(?!\w))at\s",
    r"|on\s(?!(?:the\swhole|balance|all|every))|with\s(?:respect|regard)|when\sit\scomes|if(?!\w)|had(?!\w)",
    r"|only(?!\w)|as\s(?:far|regards)|regarding|concerning|,?\s?\w{3,20}-wise(?!\w)"
    rf"|for\s(?!{_FOR_THE_WHOLE}(?!\w))|when\s\w{{1,15}}\s(?:(?:is|are)\s(?:consider|concern)ed|matters?|counts?)(?!\w)"
    r"|(?:styl|linguist|grammat|factu|techn|visu|struct|ton)\w{0,8}ly(?=\s*(?:[.,;!)\n]|$)))",
)
ASPECT_OF_TIE = compiled(
    SHUT,
    rf"\s{{1,2}}(?!for\s{_FOR_THE_WHOLE}(?!\w))",
    r"(?:in|at|on|for|with)\s(?!(?:overall\s)?(?:quality|all|every|this|general|both)(?!\w))",
)
_OUTCOME = any_of(
    "verdict, conclusion, decision, judge?ment, winner, summary, result, comparison, overall, evaluation, assessment,"
    "final, therefore, preference, answer, output, response, reason, reasoning, explanation, justification, rationale"
)
ASPECT_BEFORE = compiled(
    r"(?:^|\n)[\s>]{0,8}(?:[-*•+]|\d{1,2}[.)])\s[^\n]{0,100}$",  # an entry of a list
    r"|(?<!\w)(?:in\sterms\sof|regarding|with\s(?:respect|regard)\sto|when\sit\scomes\sto|as\sfar\sas",
    r"|from\s(?:a|the)\s\w{1,20}\s(?:perspective|standpoint|point)",
    r"|on\s(?:style|accuracy|clarity|length|tone|the\sone\shand))[^.;!?\n]{0,80}$",
    rf"|(?:^|\n)[\s>*_#-]{{0,8}}(?:\d{{1,2}}[.)]\s)?[*_]{{0,3}}(?!(?:(?:final|overall|my|the)?\s?{_OUTCOME}s?|(?:please\s)?(?:note|remark|remember)|P\.?S\.?)(?!\w))",
    r"[A-Z][\w &/-]{2,40}[*_]{0,3}:[*_]{0,3}[^\n]{0,60}$",  # "Relevance: ..."
)
OF_SOMETHING = compiled(
    r"(?<!\w)(?P<what>\w{1,20})(?:\s(?:given|provided|made|written|found))?\s(?:in|of|by|from|for)\s(?:the\s)?",
    r"[*_`(\[]{0,4}$",
)

# --- Outcomes and the ends of sentences
CONCLUDES = compiled(
    r"(?<!\w)",
    any_of(
        "therefore, thus, hence, overall, so, in (?:conclusion|summary|short|the end|total), to (?:conclude|sum up),"
        "final(?:ly)?, verdict, conclusion, consequently, all in all, all things considered, on balance"
    ),
    r"(?!\w)",
)
END_OF_SENTENCE = re.compile(r"[.!;]\s|[.!]$|\n|\?")
BREAK = re.compile(r"(?:[.!?][\"'”’*_)\]]{0,4})\s|\n")
