"""Secrets: recognised where they are typed, and removed from everything that is written or shown.

`Scrubber` knows the secrets that were sent to a server and removes them from its replies, in every encoding: plain,
escaped as in JSON and the like, percent-encoded, as HTML entities, in base64 at any place, in hexadecimal, with blanks
and line breaks in between. `without_secrets` knows none: it removes text with the form or in the position of a secret.
"""

import base64
import functools
import html
import html.entities
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import parse_qsl, unquote

LEAST = 6
"""Characters of the shortest key that is looked for: `EMPTY`, `none` and `x` stand for "no key", and are words."""

HIDDEN = "[key]"
_LEFT_OUT = "[left out: this text held the key]"
_LONGEST = 65536  # characters of a quotation that are looked at
_LONGEST_SPELLING = 64  # characters that may encode one of a secret
_MOST_WAYS = 12  # in which a text is read at once
_ROUNDS = 4  # of escaping within escaping
_ESCAPE = re.compile(
    r"\\(?:[uU]\{?[0-9a-fA-F]{2}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[^\sA-Za-z0-9])|%(?:u[0-9a-fA-F]{2})?[0-9a-fA-F]{2}"
    r"|&(?:#|[A-Za-z][A-Za-z0-9]{1,30})"
)
_BACKSLASHED = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|(.))", re.S
)
_PERCENT_U = re.compile(r"%u([0-9a-fA-F]{4})")
_PADDED = re.compile(r"&#0+(?=\d)")
_NO_CHARACTER = re.compile(r"&#\d{8,};?")  # of thousands of digits Python makes no number
_BREAK = r"(?:[\s\u200b]|\\{1,15}[nrt])*"  # what mail, forms and logs put between the letters of long words
_BYTES_APART = r"(?:[\s:;,._-]|\\{1,15}[nrtx]|0x|=){0,8}"  # between the bytes of a dump
_COMMON = bytes(set(range(256)) - set(b"123456789jkqvwz"))  # what stands between the letters of a secret is among them
_LONG = 16  # characters of a key that is looked for with blanks inside: words of prose make shorter ones up
_NAMES = re.compile(
    r"(?:api|app|access|account|private|secret|shared|subscription|master|signing|encryption)[-_ ]?keys?"
    r"|(?:access|api|app|auth|bearer|id|identity|personal|private|refresh|security|session)[-_ ]?token"
    r"|(?:.*[-_ .])?(?:key|token|secret|secrets|sig|signature|pass|passwd|password|passphrase|pwd|auth|authorization"
    r"|authentication|credential|credentials|bearer|cookie|jwt)"
    r"|.*(?:apikey|password|secret|credential).*|(?:x|proxy)[-_]authorization",
    re.I,
)
_NO_NAMES = re.compile(
    r"(?:prompt[-_]?)?cache[-_]?key|(?:eos|bos|pad|stop|mask|sep|cls|unk)[-_]?token|(?:sort|primary)[-_]?key", re.I
)
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}|(?:hf|gsk|ghp|gho|ghs|ghu|r8|fw|tgp)_[A-Za-z0-9]{12,}|github_pat_\w{12,}"
    r"|(?:xai|nvapi|pplx|glpat|xox[abprs])-[A-Za-z0-9_-]{12,}|AIza[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,}|ya29\.[\w-]{12,}"
    r"|eyJ[\w-]{8,500}\.[\w-]{8,}\.?[\w-]*)"
)
_RUN = re.compile(r"[^\s\"'<>]+")  # an address ends where one does; each run is looked at once, however long it is
_USER = re.compile(r"://|(?<=http:)/|(?<=https:)/")
_LOGIN = re.compile(  # a path has one slash of `://` left; digits and a slash or comma are a port
    r"(://|(?<=[a-z0-9]:)/)[^/:@]*:(?!\d{1,5}[/,])(?=[^@])", re.I
)
_QUERY = re.compile(r"([?&;])([^=&;#\s\"'<>]{1,100})=([^&;#\s\"'<>,]+)")
_SCHEME = re.compile(r"(?<=[\w+.-]):/")  # a path has one slash of `://` left
_SECRET = re.compile(
    r"key|token|secret|sig|password|passwd|pwd|auth|credential|jwt|bearer|session|cookie|code|sas", re.I
)
_LONG_VALUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/=_-]{20,}")  # like a key, unlike a version or a word
_PLAIN_QUERY = re.compile(
    r"api-?version|version|deployment|model|region|format|page|limit|width|height|w|h|size|q"
    r"|config|split|revision|download",
    re.I,
)
_TYPED = re.compile(r"(?<![A-Za-z0-9_-])([A-Za-z][A-Za-z0-9_-]{2,40})(\s?=\s?)(?!\.\.\.)(?=\S)[^,&\s]+")


def names_a_secret(name: str) -> bool:
    """Whether a field, an option or a parameter of this name holds a secret: `api_key` does, `max_tokens` does not."""
    spelt = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return _NAMES.fullmatch(spelt) is not None and _NO_NAMES.fullmatch(spelt) is None


def harmless(parameter: str) -> bool:
    """Whether an address's parameter of this name is known to hold no secret: a version, a size, a page."""
    return _PLAIN_QUERY.fullmatch(parameter) is not None


def secret_parameter(query: str) -> str:
    """The name of the first parameter of an address that looks like a secret; "" if none does."""
    for name, value in parse_qsl(query, keep_blank_values=True):
        if _SECRET.search(name) or looks_secret(value) or (not harmless(name) and _LONG_VALUE.fullmatch(value)):
            return name
    return ""


def looks_secret(value: str) -> bool:
    """Whether a text has the form of a key that some service hands out."""
    return _FORMS.search(value) is not None


def without_secrets(text: str) -> str:
    """`text` as it may be repeated in a message.

    Without names and passwords in addresses, values of their parameters (versions and the like excepted), values of
    options that are named like secrets, and anything that has the form of a key.
    """
    text = _without_values(_RUN.sub(lambda run: "#".join(map(_without_user, run[0].split("#"))), text))
    text = _TYPED.sub(lambda m: f"{m[1]}{m[2]}[hidden]" if names_a_secret(m[1]) else m[0], text)
    return _FORMS.sub("[hidden]", text)


def without_keys(text: str) -> str:
    """`text` without logins and values of parameters in addresses, and what has the form of a key: for any message."""
    text = _RUN.sub(lambda run: _without_parameters("@".join(_without_logins(run[0].split("@")))), text)
    return _FORMS.sub("[hidden]", text)


def _without_user(run: str) -> str:
    """A piece of an address without all that stands before its last `@`."""
    begin, (head, at, rest) = _USER.search(run), run.rpartition("@")
    if begin is None or not at or begin.end() > len(head):
        return run
    return f"{head[: begin.end()]}[hidden]@{rest}"


def _without_logins(parts: list[str]) -> Iterator[str]:
    """What stands between the `@` of a text, each but the last without the login that it ends with."""
    for part in parts[:-1]:
        login = _LOGIN.search(part)
        yield f"{part[: login.end(1)]}[hidden]" if login else part
    yield parts[-1]


def _without_parameters(run: str) -> str:
    begin = _SCHEME.search(run)
    if begin is None or run.find("?", begin.end()) < 0:
        return run
    return run[: begin.end()] + _without_values(run[begin.end() :])


def _without_values(text: str) -> str:
    return _QUERY.sub(lambda m: m[0] if harmless(m[2]) else f"{m[1]}{m[2]}=[hidden]", text)


def whole(text: str) -> str:
    """`text` with pairs of surrogates joined and lone ones replaced: it can be written down."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Scrubber:
    """Removes known secrets from texts. Secrets shorter than `LEAST` are not searched for."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({each for each in secrets if len(each) >= LEAST}, key=len, reverse=True)
        self._plain = tuple(known)
        encoded = dict.fromkeys(spelt for each in known for spelt in (*_base64(each), *_hexadecimal(each)))
        self._encoded = tuple(spelt for spelt in encoded if len(spelt) >= LEAST)
        self._dumped = tuple(re.compile(_BYTES_APART.join(_hex_bytes(each))) for each in known)
        unbroken = ("".join(each.split()) for each in known)
        self._broken = tuple(each for each in unbroken if len(each) >= _LONG) + self._encoded
        self._cases = tuple((each.lower(), re.compile(re.escape(each), re.I)) for each in known if len(each) >= _LONG)
        self._traces = tuple({_trace(spelt) for spelt in (*known, *self._encoded)})

    def __bool__(self) -> bool:
        return bool(self._plain)

    def __repr__(self) -> str:
        return f"Scrubber({len(self._plain)} secrets)"

    def __call__(self, text: str) -> str:
        """`text` with every secret replaced; left out as a whole if one cannot be separated from its context."""
        if not text or not self._plain:
            return text
        text = self._direct(text)
        if not ("%" in text or "\\" in text or "&" in text) or not _ESCAPE.search(text):
            return text
        for secret in self._plain:
            text = _any_spelling(secret).sub(HIDDEN, text)
        return _LEFT_OUT if self._hidden_in(text) else text

    def quote(self, text: str, most: int = 300) -> str:
        """A server's words as a message may hold them: on one line, shortened, and without secrets, cut ones too."""
        shown = self(whole(text[:_LONGEST]))
        if len(text) > _LONGEST:  # a secret that is cut in two here is not recognised
            shown = shown[: max(0, len(shown) - _LONGEST_SPELLING * max(map(len, self._plain), default=0))]
        return " ".join(shown.split())[:most]

    def _direct(self, text: str) -> str:
        """Without secrets that are not hidden by escapes."""
        if not self._may_hold(text):
            return text
        for secret in self._plain:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        lower = text.lower() if self._cases else ""
        for small, spelling in self._cases:
            if small in lower:
                text = spelling.sub(HIDDEN, text)
                if small in text.lower():
                    return _LEFT_OUT
        for spelt in self._encoded:
            if spelt in text:
                text = re.sub(rf"[A-Za-z0-9+/_-]?{re.escape(spelt)}[A-Za-z0-9+/_-]{{0,2}}=*", HIDDEN, text)
        for dumped in self._dumped:
            text = dumped.sub(HIDDEN, text)
        unbroken = _unbroken(text)
        if unbroken is not text and any(spelt in unbroken for spelt in self._broken):
            for spelt in self._broken:
                text = re.sub(_BREAK.join(map(re.escape, spelt)), HIDDEN, text)
            unbroken = _unbroken(text)
            if any(spelt in unbroken for spelt in self._broken):
                return _LEFT_OUT
        return text

    def _may_hold(self, text: str) -> bool:
        """Whether a secret may be in a text without escapes: of most replies it is known at once that none is.

        In the few characters that `_trace` leaves of a text those of a secret stand next to each other, however it is
        written: in letters of the other case, in base64 or hexadecimal, or with blanks and other marks inside.
        """
        found = _trace(text)
        return any(trace in found for trace in self._traces)

    def _hidden_in(self, text: str) -> bool:
        """Whether a secret appears when escapes are removed, one layer after the other, in any order."""
        seen, layer = {text}, [text]
        for _ in range(_ROUNDS):
            opened = {way(each) for each in layer for way in _ways(each)} - seen
            if any(self._direct(each) != each for each in opened):
                return True
            seen |= opened
            layer = sorted(opened, key=len)[: _MOST_WAYS if len(text) < _LONGEST else 1]
        return False


def _trace(text: str) -> str:
    """The digits and the rare letters of a text, in small letters."""
    return text.casefold().encode("utf-8", "surrogatepass").translate(None, _COMMON).decode()


def _unbroken(text: str) -> str:
    """The text without blanks and line breaks, also escaped ones."""
    if "\\" in text:
        text = re.sub(r"(?<!\\)\\++[nrt]", " ", text)  # each run of backslashes is looked at once
    if "\u200b" in text:
        text = text.replace("\u200b", " ")
    return "".join(words) if len(words := text.split()) > 1 else text


def _without_backslashes(text: str) -> str:
    return whole(_BACKSLASHED.sub(_character, text)) if "\\" in text else text


def _without_percents(text: str) -> str:
    return unquote(whole(_PERCENT_U.sub(lambda match: chr(int(match[1], 16)), text)) if "%u" in text else text)


def _without_entities(text: str) -> str:
    return html.unescape(_NO_CHARACTER.sub("\ufffd", _PADDED.sub("&#", text)))


def _in_turn(text: str) -> str:
    return _without_entities(_without_percents(_without_backslashes(text)))


_WAYS: dict[str, Callable[[str], str]] = {"\\": _without_backslashes, "%": _without_percents, "&": _without_entities}


def _ways(text: str) -> list[Callable[[str], str]]:
    """The ways of unescaping that may change the text."""
    found = [way for mark, way in _WAYS.items() if mark in text]
    return [*found, _in_turn] if len(found) > 1 else found


def _character(match: re.Match[str]) -> str:
    if match[6]:
        return match[6]
    code = int(match[5], 8) if match[5] else int(match[1] or match[2] or match[3] or match[4], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _base64(secret: str) -> Iterator[str]:
    """What all encodings share that have the secret somewhere inside: six bits a character, at three offsets."""
    raw = secret.encode()
    for offset in range(3):
        first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        spelt = base64.b64encode(bytes(offset) + raw + bytes(3)).decode()[first:last]
        yield spelt
        yield spelt.replace("+", "-").replace("/", "_")


def _hexadecimal(secret: str) -> Iterator[str]:
    yield secret.encode().hex()
    yield secret.encode().hex().upper()


def _hex_bytes(secret: str) -> Iterator[str]:
    for byte in secret.encode():
        yield "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in f"{byte:02x}")


@functools.lru_cache(maxsize=16)
def _any_spelling(secret: str) -> re.Pattern[str]:
    """Every character plain or under any escape."""
    return re.compile("".join(map(_any_character, secret)))


@functools.cache
def _entities() -> dict[str, list[str]]:
    """The names of each character that has any, as HTML knows them."""
    found: dict[str, list[str]] = {}
    for name, character in html.entities.html5.items():
        found.setdefault(character, []).append(name)
    return found


def _any_character(character: str) -> str:
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    utf16 = "".join(rf"(?:\\{{1,15}}|%)(?i:u{units[i : i + 4]})" for i in range(0, len(units), 4))
    point = rf"\\{{1,15}}(?i:u\{{0*{code:x}\}}|U{code:08x})"
    utf8 = character.encode("utf-8", "surrogatepass")
    percent = "".join(rf"(?i:%(?:25)*{byte:02x})" for byte in utf8) + "|"
    percent += "".join(rf"\\{{1,15}}(?:(?i:x{byte:02x})|{byte:03o})" for byte in utf8)
    named = sorted(_entities().get(character, ()), key=len, reverse=True)
    entity = "|".join([f"#0*{code};?", f"#(?i:x0*{code:x});?", *map(re.escape, named)])
    short = rf"|\\{{1,15}}(?i:x{code:02x}|{code:03o})" if code < 256 else ""
    return rf"(?:\\{{0,15}}{re.escape(character)}|{utf16}|{point}{short}|{percent}|(?i:&(?:amp;)*)(?:{entity}))"
