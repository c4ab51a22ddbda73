"""Label probabilities from the token log-probabilities of a reply.

A server returns, for every token that the model wrote, the likeliest alternatives at that place. The labels follow the
verdict marker, after blanks and markdown if the model wrote any. There a label's probability is the sum over
alternatives that spell it, whatever blank they begin with. A label of several tokens can be followed only along what
the model wrote: "10" behind a written "1" is the probability of "1" times that of "0" after it, and "1" keeps the rest.
If the probability that cannot be resolved (prefixes that were not written, labels beyond the alternatives) is not
small, nothing is read: unknown is not zero. Numbers that cannot be probabilities raise `NoDistribution`, and the caller
parses the text. Nothing inside a model's thinking is read.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dikast.core.distribution import ROUNDING, NoDistribution, flaw_of_logprobs
from dikast.core.thinking import answer_begins

UNKNOWN = 0.02  # probability that may be unaccounted for among the labels
_GAP = re.compile(rb"[\s*_`~\"'(\[]*")
_FLOOR = 1e-12


class Place(NamedTuple):
    """One token as written, and the log-probabilities of the alternatives there, its own included.

    `flaw` says why these cannot be read, if the reply's data on this token are invalid.
    """

    text: bytes
    options: Mapping[bytes, float]
    flaw: str = ""


@dataclass(slots=True)
class Spellings:
    """Label spellings seen as single tokens of this server's model: such a label is not spelt in pieces."""

    whole: set[bytes] = field(default_factory=set)


def places_of(value: Any) -> list[Place]:
    """The tokens of a reply's `logprobs` object; empty if it is not one."""
    content = value.get("content") if isinstance(value, dict) else None
    found: list[Place] = []
    for entry in content if isinstance(content, list) else ():
        if not isinstance(entry, dict):
            return []
        found.append(_place(entry))
    return found if any(place.options for place in found) else []


class TooFewListed(NoDistribution):
    """The tokens that a server lists do not tell the labels' probabilities."""


def read_after_marker(
    text: str, places: Sequence[Place], marker: str, labels: Sequence[str], seen: Spellings
) -> dict[str, float] | None:
    """Log-probabilities of the labels after the last marker that a label follows, or after the last marker; None if
    they do not match the text. `TooFewListed` if the server lists too few tokens.
    """
    whole = text.encode("utf-8", "surrogatepass")
    base = _where(whole, places)
    spelt = marker.encode().rstrip()
    if base is None or not spelt:
        return None
    begin = len(text[: answer_begins(text)].encode("utf-8", "surrogatepass"))
    ends = [match.end() for match in re.compile(re.escape(spelt)).finditer(whole, begin)]
    if not ends:
        return None
    stripped = [label.strip().encode() for label in labels]

    def stated(end: int) -> bool:
        at = _gap(whole, end)
        return any(
            whole.startswith(label, at) and not whole[at + len(label) : at + len(label) + 1].isalnum()
            for label in stripped
        )

    end = next((end for end in reversed(ends) if stated(end)), ends[-1])
    return _read(places, base + end, base + _gap(whole, end), labels, seen)


def read_at_start(places: Sequence[Place], labels: Sequence[str], seen: Spellings) -> dict[str, float] | None:
    """Log-probabilities of the labels at the beginning of the reply, for a reply that continues after the marker."""
    whole = b"".join(place.text for place in places)
    return _read(places, 0, _gap(whole, 0), labels, seen)


def mass_of(logprobs: Mapping[str, float]) -> float:
    """The probability that fell on the labels, in [0, 1]."""
    return min(1.0, math.fsum(math.exp(value) for value in logprobs.values()))


def _gap(whole: bytes, at: int) -> int:
    match = _GAP.match(whole, at)
    return match.end() if match else at


def _where(text: bytes, places: Sequence[Place]) -> int | None:
    """At which byte of the joined tokens the reply's text begins; text before it is thinking, even if alike."""
    joined = b"".join(place.text for place in places)
    at = joined.rfind(text) if text else -1
    return at if at >= 0 else None


def _read(
    places: Sequence[Place], free: int, at: int, labels: Sequence[str], seen: Spellings
) -> dict[str, float] | None:
    """Read the labels at byte `at`; the token that holds it may begin earlier, though not before `free`."""
    start = i = 0
    while i < len(places) and start + len(places[i].text) <= at:
        start += len(places[i].text)
        i += 1
    if i == len(places) or start < free:
        return None
    place = places[i]
    lead = place.text[: at - start].strip()
    spelt = {label.strip().encode(): label for label in labels}
    if len(spelt) < len(labels):
        return None
    _check(place)
    options: dict[bytes, float] = {}
    for option, logprob in place.options.items():
        rest = option.strip()
        if lead:
            rest = rest[len(lead) :] if rest.startswith(lead) else b""
        if rest:
            options[rest] = options.get(rest, 0.0) + math.exp(min(logprob, 0.0))
    seen.whole.update(spelt.keys() & options.keys())
    found, unknown = _summed(options, place.text[at - start :].strip(), places[i + 1 :], list(spelt), seen)
    smallest = math.exp(min(place.options.values()))
    left = max(0.0, 1.0 - math.fsum(math.exp(min(value, 0.0)) for value in place.options.values()))
    absent = [label for label in spelt if label not in found]
    most = min(smallest, left / len(absent)) if absent else 0.0
    if (hidden := unknown + most * len(absent)) > UNKNOWN:
        raise TooFewListed(
            f"the {len(place.options)} tokens that the server lists leave {min(hidden, 1.0):.2f} of the probability"
            f" of the labels open (at most {UNKNOWN:g})"
        )
    for label in absent:
        found[label] = most
    return {spelt[label]: math.log(max(share, _FLOOR)) for label, share in found.items()}


def _summed(
    options: Mapping[bytes, float],
    written: bytes,
    after: Sequence[Place],
    labels: Sequence[bytes],
    seen: Spellings,
) -> tuple[dict[bytes, float], float]:
    """Probabilities by label, and how much probability is on label prefixes that could not be resolved."""
    found: dict[bytes, float] = {}
    unknown = 0.0
    for option, share in options.items():
        fits = [label for label in labels if label.startswith(option)]
        pieces = [label for label in fits if label != option and not (label in seen.whole and option in labels)]
        if not pieces:
            if option in fits:
                found[option] = found.get(option, 0.0) + share
        elif option and option == written and after:
            _check(after[0])
            inner = {other: math.exp(min(value, 0.0)) for other, value in after[0].options.items()}
            rests = [label[len(option) :] for label in pieces]
            further, lost = _summed(inner, after[0].text, after[1:], rests, Spellings())
            for rest, part in further.items():
                found[option + rest] = found.get(option + rest, 0.0) + share * part
            unknown += share * lost
            if option in fits:
                kept = max(0.0, 1.0 - math.fsum(further.values()) - lost)
                found[option] = found.get(option, 0.0) + share * kept
        else:
            unknown += share
            if option in fits:
                found[option] = found.get(option, 0.0) + share
    return found, unknown


def _check(place: Place) -> None:
    flaw = place.flaw or flaw_of_logprobs(place.options.values())
    if flaw:
        raise NoDistribution(flaw)


def _place(entry: Mapping[str, Any]) -> Place:
    """One token; invalid probabilities become its flaw, and its text is kept, so that the others still align."""
    text, others, flaw = _spelt(entry), entry.get("top_logprobs"), ""
    options: dict[bytes, float] = {}
    if not isinstance(others, list | None):
        flaw = f"alternatives that are no list ({others!r:.40})"
    for each in (entry, *(others if isinstance(others, list) else ())):
        if not isinstance(each, dict):
            flaw = flaw or f"an alternative that is none ({each!r:.40})"
            continue
        logprob = each.get("logprob")
        if isinstance(logprob, bool) or not isinstance(logprob, int | float) or logprob != logprob:
            flaw = flaw or f"a log-probability of {logprob!r:.40}"
            continue
        spelt = _spelt(each)
        logprob = max(-1e9, min(float(logprob), 1e9))
        known = options.setdefault(spelt, logprob)
        if known != logprob and _names(spelt) and _apart(known, logprob):
            flaw = flaw or f"the token {spelt.decode('utf-8', 'replace')!r} twice, at {known:.6g} and at {logprob:.6g}"
    return Place(text, options, flaw)


def _names(spelt: bytes) -> bool:
    """Whether a spelling names one token: parts of characters all look alike, and so do tokens without a text."""
    return bool(spelt) and b"\xef\xbf\xbd" not in spelt


def _apart(one: float, other: float) -> bool:
    """Whether two log-probabilities differ by more than rounding."""
    return one > ROUNDING or other > ROUNDING or abs(math.exp(one) - math.exp(other)) > ROUNDING


def _spelt(entry: Mapping[str, Any]) -> bytes:
    raw = entry.get("bytes")
    if isinstance(raw, list):
        try:
            return bytes(raw)
        except (TypeError, ValueError):
            pass
    token = entry.get("token")
    return token.encode("utf-8", "surrogatepass") if isinstance(token, str) else b""
