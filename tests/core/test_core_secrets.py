"""Secrets: what is taken for one, and that none is left in any spelling."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.core.secrets import HIDDEN, Scrubber, looks_secret, names_a_secret, whole, without_keys, without_secrets

KEYS = st.text(st.sampled_from("abcXYZ019/+=-_.\"'\\&%<> é€😀"), min_size=8, max_size=48).filter(
    lambda key: key.strip() == key
)
AROUND = st.text(st.sampled_from("ab c%\\&;é/"), max_size=6)


def in_lines(text: str, width: int, end: str = "\n") -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "json": lambda key: json.dumps(key)[1:-1],
    "json, unicode": lambda key: json.dumps(key, ensure_ascii=False)[1:-1],
    "json, slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "json, every character": lambda key: "".join(
        f"\\u{unit:04x}" for unit in memoryview(key.encode("utf-16-le")).cast("H")
    ),
    "json in json": lambda key: json.dumps(json.dumps(key)),
    "percent": lambda key: quote(key, safe=""),
    "percent, every byte": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "percent, twice": lambda key: quote(quote(key, safe=""), safe=""),
    "html": html.escape,
    "html, every character": lambda key: "".join(f"&#{ord(each)};" for each in key),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"user:{key}".encode()).decode().rstrip("="),
    "base64, percent": lambda key: quote(base64.b64encode(f"a{key}".encode()).decode(), safe=""),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal, capitals": lambda key: key.encode().hex().upper(),
    "repr": repr,
    "base64 in lines": lambda key: in_lines(base64.b64encode(f"user:{key}".encode()).decode(), 7),
    "base64 as in mail": lambda key: base64.encodebytes(f"Authorization: Bearer {key}; {key}".encode()).decode(),
    "base64 in lines, escaped": lambda key: in_lines(base64.b64encode(key.encode()).decode(), 5, "\\r\\n"),
    "base64 for addresses in lines": lambda key: in_lines(base64.urlsafe_b64encode(key.encode()).decode(), 4, "\r\n "),
    "base64 for addresses, no padding": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "hexadecimal with blanks": lambda key: key.encode().hex(" "),
    "hexadecimal with colons, capitals": lambda key: key.encode().hex(":").upper(),
    "hexadecimal in fours, in lines": lambda key: in_lines(key.encode().hex(" ", 2), 20),
    "a list of bytes": lambda key: ", ".join(f"0x{byte:02x}" for byte in key.encode()),
    "a string of C": lambda key: "".join(f"\\x{byte:02x}" for byte in key.encode()),
    "octal": lambda key: "".join(f"\\{byte:03o}" for byte in key.encode()),
    "quoted-printable": lambda key: "".join(f"={byte:02X}" for byte in key.encode()),
    "percent, three times": lambda key: quote(quote(quote(key, safe=""), safe=""), safe=""),
    "percent, u": lambda key: "".join(f"%u{unit:04x}" for unit in memoryview(key.encode("utf-16-le")).cast("H")),
    "code points": lambda key: "".join(f"\\u{{{ord(each):x}}}" for each in key),
    "long code points": lambda key: "".join(f"\\U{ord(each):08X}" for each in key),
    "json of percent": lambda key: json.dumps(quote(key, safe="")).replace("%", "\\u0025"),
}


def opened(text: str) -> set[str]:
    """Everything that a text says when escapes are taken off it, one kind after the other, by other means than ours."""
    found = {text}
    for _ in range(4):
        for each in list(found):
            found.add(html.unescape(each))
            found.add(unquote(each))
            try:
                found.add(json.loads(f'"{each}"', strict=False))
            except ValueError:
                continue
    return found


@pytest.mark.soak(20_000)
def test_no_spelling_of_a_key_is_left(tries: int) -> None:
    @settings(max_examples=tries, deadline=None, derandomize=True, database=None)
    @given(key=KEYS, spelling=st.sampled_from(sorted(SPELLINGS)), before=AROUND, after=AROUND)
    def check(key: str, spelling: str, before: str, after: str) -> None:
        spelt = SPELLINGS[spelling](key)
        left = Scrubber([key])(f"{before}{spelt}{after}")
        assert spelt not in left
        assert not any(key in each for each in opened(left))
        assert key.encode().hex() not in re.sub(r"[^0-9a-f]|0x", "", left.lower())
        unbroken = re.sub(r"\s|\\[nr]", "", left).replace("-", "+").replace("_", "/")
        assert not any(core(key, offset) in unbroken for offset in range(3))

    check()


@pytest.mark.soak(20_000)
def test_what_is_passed_over_at_once_is_what_the_whole_search_leaves(tries: int) -> None:
    marks = st.sampled_from(["", "", " ", "\n", "\u200b", "\u2009", "\\n", ":", "Σ", "\u212a"])
    cases = st.sampled_from([str, str.lower, str.upper, str.swapcase, str.casefold])
    keys = KEYS | st.text(st.sampled_from("Kk\u212aΣςsſßẞİ-zq79"), min_size=6, max_size=24)

    @settings(max_examples=tries, deadline=None, derandomize=True, database=None)
    @given(key=keys, spelling=st.sampled_from(sorted(SPELLINGS)), case=cases, mark=marks, at=st.integers(1, 60))
    def check(key: str, spelling: str, case: Callable[[str], str], mark: str, at: int) -> None:
        quick, thorough = Scrubber([key]), Scrubber([key])
        thorough._traces = ("",)  # which is in every text
        text = f"It says {in_lines(case(SPELLINGS[spelling](key)), at, mark)}, quickly."
        assert quick(text) == thorough(text)

    check()


def core(key: str, offset: int) -> str:
    """What is the key's own in base64 of the key behind `offset` bytes."""
    made = base64.b64encode(bytes(offset) + key.encode() + bytes(3)).decode()
    return made[-(-offset * 8 // 6) : (offset + len(key.encode())) * 8 // 6]


def test_prose_around_a_spelling_with_breaks_stays() -> None:
    key = "sk-very/secret+key==0123"
    scrub = Scrubber([key])
    lines = in_lines(base64.b64encode(key.encode()).decode(), 10)
    assert scrub(f"Sent:\n{lines}\nwas it right? Verdict: 4").endswith("\nwas it right? Verdict: 4")
    assert scrub(f"Dump: {key.encode().hex(' ')}, it says.") == f"Dump: {HIDDEN}, it says."
    assert scrub(f"Wrapped: {key[:9]}\n  {key[9:]} here.") == f"Wrapped: {HIDDEN} here."


def test_a_short_key_is_not_found_across_the_words_of_prose() -> None:
    assert Scrubber(["atleast"])("It has at least four.") == "It has at least four."
    assert Scrubber(["thirty"])("This, at 7 4 68 69, is 30.") == "This, at 7 4 68 69, is 30."


def test_a_backslash_before_an_escape_hides_nothing() -> None:
    """Taken off layer by layer, the second layer takes the key's own backslash with it."""
    key = "<00000\\0"
    spelt = "".join(f"\\u{ord(each):04x}" for each in key)
    assert Scrubber([key])("\\" + spelt) == HIDDEN


def test_the_rest_of_a_text_is_kept() -> None:
    scrub = Scrubber(["sk-very/secret+key=="])
    text = "It is 100 % right: \\frac{1}{2} & more. sk-very\\/secret\\u002bkey== was sent."
    assert scrub(text) == f"It is 100 % right: \\frac{{1}}{{2}} & more. {HIDDEN} was sent."
    plain = "Nothing of the kind, %41 &amp; \\u0041."
    assert scrub(plain) == plain


def test_words_that_stand_for_no_key_are_not_looked_for() -> None:
    for key in ("", "x", "none", "EMPTY", "test"):
        assert Scrubber([key])("x none EMPTY test: Verdict: 4") == "x none EMPTY test: Verdict: 4"


def test_a_quotation_that_is_cut_holds_no_part_of_a_key() -> None:
    key = "sk-0123456789abcdef0123456789"
    for at in range(280, 301):
        quoted = Scrubber([key]).quote("." * at + key)
        assert "sk-" not in quoted
        assert len(quoted) <= 300


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "X-Api-Key", "key", "token", "access_token", "Authorization", "password", "client_secret",
     "sig", "hf_token", "secretKey", "subscription-key", "jwt"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "stop_token_ids", "top_k", "prompt_cache_key", "skip_special_tokens", "key_env", "tokenizer",
     "eos_token", "logprobs", "monkey", "return_tokens_as_token_ids", "seed", "user"],
)  # fmt: skip
def test_names_of_what_is_none(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://user:pa/ss@host/v1#m: no", "http://[hidden]@host/v1#m: no"),
        ("htp://user:pass@host/v1#m", "htp://[hidden]@host/v1#m"),
        ("http:/user:pass@host", "http:/[hidden]@host"),
        ("https://host/a.png?X-Amz-Signature=abc&w=3", "https://host/a.png?X-Amz-Signature=[hidden]&w=3"),
        ("https://host/v1?code=abc#m", "https://host/v1?code=[hidden]#m"),
        ("https://host/v1?api-version=2024-06-01#m", "https://host/v1?api-version=2024-06-01#m"),
        ("http://host/v1#m,api_key=abc,retries=2", "http://host/v1#m,api_key=[hidden],retries=2"),
        ("openai:gpt,x=sk-abcdefghijklmnop", "openai:gpt,x=[hidden]"),
        ("export JUDGE_KEY=... and write key_env=JUDGE_KEY", "export JUDGE_KEY=... and write key_env=JUDGE_KEY"),
        ("mail a@b.c, or see hf:org/name@main", "mail a@b.c, or see hf:org/name@main"),
        ("'http://user:pa55@'", "'http://[hidden]@'"),
        ("http://a@b@host/x", "http://[hidden]@host/x"),
        ("http://host:8000/x@y", "http://[hidden]@y"),
        ("http://host/x#m@1", "http://host/x#m@1"),
    ],
)
def test_what_may_be_repeated(text: str, told: str) -> None:
    assert without_secrets(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://u:hunter22@h/x: not there", "https://[hidden]@h/x: not there"),
        ("https:/u:hunter22@h/x: a path has lost a slash", "https:/[hidden]@h/x: a path has lost a slash"),
        ("http://u:hunter/22@h/v1 is down", "http://[hidden]@h/v1 is down"),
        ("http://h:8000/a/@u and http://h/a:b@c", "http://h:8000/a/@u and http://h/a:b@c"),
        ("hf://datasets/ORG/NAME@main has no such file", "hf://datasets/ORG/NAME@main has no such file"),
        ("http://a:8080/v1,http://b:1/v1#m@x", "http://a:8080/v1,http://b:1/v1#m@x"),
        ("http://a:8080,http://b:1/v1#m@x", "http://a:8080,http://b:1/v1#m@x"),
        ("http://a:8080,http://u:hunter22@b:1#m", "http://a:8080,http://[hidden]@b:1#m"),
        ("--out sk-proj-aB3dE5gH7jK9mN1pQ3rS5t is taken", "--out [hidden] is taken"),
        ("export JUDGE_KEY=... and key_env=JUDGE_KEY", "export JUDGE_KEY=... and key_env=JUDGE_KEY"),
        ("https:/h/x?sig=hunter2&w=3: not there", "https:/h/x?sig=[hidden]&w=3: not there"),
        (
            "s3://b/x?X-Amz-Signature=a1, or --map response=says",
            "s3://b/x?X-Amz-Signature=[hidden], or --map response=says",
        ),
        (
            "hf://datasets/o/n?split=trian: did you mean 'train'?",
            "hf://datasets/o/n?split=trian: did you mean 'train'?",
        ),
    ],
)
def test_what_any_message_is_without(text: str, told: str) -> None:
    assert without_keys(text) == told


def test_forms_of_keys() -> None:
    for key in ("sk-proj-0123456789abcdef", "hf_abcdefghijklmnop", "ghp_0123456789abcdef", "AKIA0123456789ABCDEF"):
        assert looks_secret(f"here: {key}!"), key
    for word in ("sk-short", "risk-assessment-of-everything", "meta-llama/Llama-3-8B", "gpt-4o-2024-08-06"):
        assert not looks_secret(word), word


def test_what_cannot_be_written_down_is_replaced() -> None:
    assert whole("a\ud800b") == "a\ufffdb"
    assert whole("\ud83d\ude00") == "😀"
    assert whole("plain €") == "plain €"


def test_a_key_that_the_longest_quotation_would_cut_is_not_shown() -> None:
    key = "sk-AbQ9zzKpx70LmN2ZqRt5"
    scrub = Scrubber([key])
    for spelt in (key, key.encode().hex(), "".join(f"\\u{ord(each):04x}" for each in key)):
        for shown in range(1, len(spelt), 7):
            assert scrub.quote(" " * (65536 - shown) + spelt) == ""


@pytest.mark.parametrize("unit", ["\\", "%25", "&amp;", "s\\", "73 ", "\\u0073", "&#0", "s ", "\\n"])
def test_long_runs_of_what_begins_an_escape_end(unit: str) -> None:
    """20,000 backslashes once took 7 s: each of them was looked at from each before it."""
    key = "sk-very/secret+key=="
    assert key not in Scrubber([key])(unit * (100_000 // len(unit)) + key)


def test_a_key_behind_more_backslashes_than_any_escaping_makes() -> None:
    key = "sk-very/secret+key=="
    spelt = "".join(f"\\u{ord(each):04x}" for each in key)
    assert Scrubber([key])("\\" * 99 + spelt) == "\\" * 85 + HIDDEN


LONG_KEY = "sk-AbCdEf0123456789/+xyz"


def test_a_reference_to_a_character_may_have_any_number_of_digits() -> None:
    """Python makes no number of more than 4,300 digits, and a reply with such a reference was lost."""
    scrub = Scrubber([LONG_KEY])
    text = f"fine &#{'1' * 6_000}; and &#x{'1' * 6_000}; too"
    assert scrub(text) == text
    assert "AbCdEf" not in scrub("".join(f"&#{'0' * 6_000}{ord(each)};" for each in LONG_KEY))
    assert LONG_KEY not in html.unescape(scrub("".join(f"&#{'0' * 6_000}{ord(each)};" for each in LONG_KEY)))


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase])
def test_a_key_in_letters_of_the_other_case_is_taken_out(change: Callable[[str], str]) -> None:
    scrub = Scrubber([LONG_KEY])
    assert scrub(f"your key {change(LONG_KEY)} is wrong") == f"your key {HIDDEN} is wrong"
    assert HIDDEN in scrub(f"{change(LONG_KEY)} İ")  # a letter that is longer in the other case
    assert Scrubber(["Judge-1"])("judge-1 says") == "judge-1 says"  # short ones are words


@pytest.mark.parametrize("of", ["://", "a:/", "a:/b:c", "http:/", "eyJ-", "eyJaaaaaaaa.", "sk-", "a.", "x", "a:/?b=c&"])
def test_a_long_text_is_searched_in_a_time_that_grows_with_its_length(of: str) -> None:
    """65 kB took half a minute; these would take hours."""
    text = of * (500_000 // len(of)) + " https://user:pa55@host/x?token=abc end"
    assert without_secrets(text).endswith(" https://[hidden]@host/x?token=[hidden] end")
    assert without_keys(text).endswith(" https://[hidden]@host/x?token=[hidden] end")
