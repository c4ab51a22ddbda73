"""Text to token ids and back, with control tokens acting only where a template wrote them.

A control token (special token) is one that steers a model: every token that its tokenizer flags as a special token,
every media placeholder of its processor, and every other added token that its chat template writes (`<tool_call>`,
`<think>`). A prompt is a list of pieces, each a control token or plain text. Plain text never becomes a control token:

- Where no plain text contains the spelling of a control token, the joined text is encoded by the model's own
  tokenizer, as `apply_chat_template(tokenize=True)` does.
- Otherwise it is encoded by a copy of the tokenizer that knows the same control tokens under private names. The
  template's control tokens are written by those names, so the spellings in plain text mean nothing and are split into
  ordinary pieces; normaliser, pre-tokeniser and merges see exactly the text around them.
- A tokenizer that is not backed by `tokenizers` cannot be copied so: there a zero-width space goes in after the first
  character of each spelling in plain text. The text the model sees is then one character longer.

After either, the control ids are counted; a count that differs from the template's is an error, not a prompt.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dikast.core.errors import EngineError
from dikast.core.machine.bounded import Bounded
from dikast.engines.local.trusted import panics_caught

ZERO_WIDTH_SPACE = "\u200b"
_SHORT = 256  # characters of pieces whose token ids are remembered
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt: one control token by its spelling, or plain text."""

    text: str
    control: bool = False


class Tokens:
    """A tokenizer with its control tokens. `placeholders` are the spellings of media."""

    def __init__(self, tokenizer: Any, *, template: str = "", placeholders: Iterable[str] = ()) -> None:
        self.tokenizer = tokenizer
        self.placeholders = frozenset(placeholders)
        self.controls = _control_tokens(tokenizer, template, self.placeholders)
        self.special_ids = frozenset(tokenizer.all_special_ids) | frozenset(self.controls.values())
        self._unknown = tokenizer.unk_token_id
        self._spelling = _any_of(self.controls)
        self._known: Bounded[tuple[Piece, ...], tuple[int, ...]] = Bounded(_REMEMBERED, lambda ids: 1)
        self._copies: dict[str, tuple[Any, dict[int, int]]] = {}
        self._texts: dict[int, str] = {}  # of single tokens

    def spellings(self, text: str) -> Iterator[re.Match[str]]:
        """Where control tokens are spelled out in `text`, leftmost and longest first."""
        return self._spelling.finditer(text)

    def pieces(self, text: str) -> list[Piece]:
        """Split rendered text at every control token."""
        found: list[Piece] = []
        at = 0
        for match in self.spellings(text):
            if match.start() > at:
                found.append(Piece(text[at : match.start()]))
            found.append(Piece(match.group(), control=True))
            at = match.end()
        if at < len(text):
            found.append(Piece(text[at:]))
        return found

    def encode(self, pieces: Sequence[Piece]) -> list[int]:
        """Token ids of the joined pieces, without any that the tokenizer would add around them.

        Short ones are remembered: the end of a chat template with each label behind it comes with every prompt.
        """
        if sum(len(piece.text) for piece in pieces) > _SHORT:
            return self._encoded(pieces)
        key = tuple(pieces)
        known = self._known.get(key)
        if known is None:
            known = tuple(self._encoded(pieces))
            self._known.put(key, known)
        return list(known)

    def _encoded(self, pieces: Sequence[Piece]) -> list[int]:
        expected = Counter(self.controls[piece.text] for piece in pieces if piece.control)
        joined = "".join(piece.text for piece in pieces)
        if sum(1 for _ in self.spellings(joined)) == expected.total():
            ids = self._plainly(joined)
            if self._control_count(ids) == self._countable(expected):
                return ids
        if getattr(self.tokenizer, "backend_tokenizer", None) is not None:
            ids = self._by_private_names(pieces, joined)
        else:
            broken = [piece if piece.control else Piece(self._broken(piece.text)) for piece in pieces]
            ids = self._plainly("".join(piece.text for piece in broken))
        if self._control_count(ids) != self._countable(expected):
            raise EngineError(
                "the tokenizer turns plain text of this prompt into control tokens, and no way was found to stop it",
                kind="tokenizer",
            )
        return ids

    def decode(self, ids: Sequence[int], after: Sequence[int] = ()) -> str:
        """The text of `ids` as it continues `after` (the space that begins a word is kept), control tokens left out."""
        anchor = [token for token in after[-8:] if token not in self.special_ids][-4:]
        lead, whole = self._text(anchor), self._text([*anchor, *ids])
        return whole[len(lead) :] if anchor and whole.startswith(lead) else self._text(ids)

    def text_of(self, token: int) -> str:
        """The text of one token behind other text; with U+FFFD where it is a part of a character."""
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self.decode([token], after=[token])
        return text

    def _text(self, ids: Sequence[int]) -> str:
        kept = [token for token in ids if token not in self.special_ids]
        with _told():
            return str(self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _plainly(self, text: str) -> list[int]:
        with _told():
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _control_count(self, ids: Iterable[int]) -> Counter[int]:
        known = set(self.controls.values())
        return self._countable(Counter(token for token in ids if token in known))

    def _countable(self, counts: Counter[int]) -> Counter[int]:
        """Without the unknown token, which ordinary characters may become."""
        return Counter({token: n for token, n in counts.items() if token != self._unknown})

    def _broken(self, text: str) -> str:
        return self._spelling.sub(lambda match: match.group()[0] + ZERO_WIDTH_SPACE + match.group()[1:], text)

    def _by_private_names(self, pieces: Sequence[Piece], joined: str) -> list[int]:
        mark = unused_character(joined)
        if mark not in self._copies:
            self._copies[mark] = _copy_with_private_names(self.tokenizer, self.controls, mark)
        copy, true_ids = self._copies[mark]
        index = {spelling: i for i, spelling in enumerate(self.controls)}
        text = "".join(_private(mark, index[piece.text]) if piece.control else piece.text for piece in pieces)
        with _told():
            return [true_ids.get(token, token) for token in copy.encode(text, add_special_tokens=False).ids]


@contextmanager
def _told() -> Iterator[None]:
    """What a tokenizer raises for one text, panics included, as an error of that text."""
    try:
        with panics_caught():
            yield
    except Exception as error:
        raise EngineError(f"the tokenizer fails on this text ({error})", kind="tokenizer") from error


def unused_character(text: str) -> str:
    """A private-use character that `text` does not contain."""
    present = set(text)
    for code in chain(range(0x100000, 0x10FFFE), range(0xF0000, 0xFFFFE)):
        if chr(code) not in present:
            return chr(code)
    raise EngineError("the text uses every private character of Unicode", kind="tokenizer")


def _private(mark: str, i: int) -> str:
    return f"{mark}{i}{mark}"


def _any_of(spellings: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _control_tokens(tokenizer: Any, template: str, placeholders: frozenset[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for token_id, added in sorted(tokenizer.added_tokens_decoder.items()):
        spelling = str(added.content)
        if added.special or spelling in placeholders or (spelling.strip() and spelling in template):
            found[spelling] = int(token_id)
    for spelling in (*tokenizer.all_special_tokens, *placeholders):
        token_id = tokenizer.convert_tokens_to_ids(spelling)
        if token_id is not None and (token_id != tokenizer.unk_token_id or spelling == tokenizer.unk_token):
            found.setdefault(spelling, int(token_id))
    return {spelling: token_id for spelling, token_id in found.items() if spelling}


def _copy_with_private_names(tokenizer: Any, controls: dict[str, int], mark: str) -> tuple[Any, dict[int, int]]:
    """A copy of the backend in which control token i is spelled by a private name, and where its ids differ."""
    from tokenizers import Tokenizer

    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    names = {spelling: _private(mark, i) for i, spelling in enumerate(controls)}
    true_ids: dict[str, int] = {}
    for added in backend["added_tokens"]:
        true = int(added["id"])
        if added["content"] in names:
            added.update(content=names[added["content"]], normalized=False)
        true_ids[added["content"]] = true
    for unlisted in controls.keys() - {str(added.content) for added in tokenizer.added_tokens_decoder.values()}:
        name = names[unlisted]
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        backend["added_tokens"].append({"id": controls[unlisted], "content": name, **flags})
        true_ids[name] = controls[unlisted]
    backend.update(post_processor=None, truncation=None, padding=None)
    _rename_vocabulary(backend["model"], names)
    copy = Tokenizer.from_str(json.dumps(backend))
    moved: dict[Any, int] = {copy.token_to_id(content): true for content, true in true_ids.items()}
    return copy, {new: true for new, true in moved.items() if new != true}


def _rename_vocabulary(model: dict[str, Any], names: dict[str, str]) -> None:
    """Control tokens that are also vocabulary (Unigram could pick them, some BPE look whole words up) go by the name.

    A token that merges build up keeps its spelling, or the model would not load.
    """
    built = {"".join(pair) if isinstance(pair, list) else pair.replace(" ", "", 1) for pair in model.get("merges", ())}
    renamed = {spelling: name for spelling, name in names.items() if spelling not in built}
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        model["vocab"] = {renamed.get(piece, piece): token_id for piece, token_id in vocabulary.items()}
    elif isinstance(vocabulary, list):
        model["vocab"] = [[renamed.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in renamed:
        model["unk_token"] = renamed[model["unk_token"]]
