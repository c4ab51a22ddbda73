"""What to say of columns that are not recognised: which of them most likely hold the prompt and the responses."""

import json
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from dikast.core.gold import is_like_gold
from dikast.core.item import ANSWERS, GOLD_LIKE, ITEM_KEYS, NAMES, plain_name
from dikast.core.records.column_names import SYSTEM, Recognised, in_words
from dikast.core.text import near_miss, number_in

_SAID = re.compile(
    r"answer|respon|output|reply|replies|generat|predict|complet|candidate|said|says|result|assistant|bot_|summar|"
    r"translation|hypothes|submission|llm|gpt|claude|gemini|llama|antwort|réponse|respuesta|risposta|resposta"
)
_ASKED = re.compile(
    r"prompt|question|query|instruct|task|input|context|document|passage|article|source|request|user|human|customer|"
    r"problem|ticket|message|history|_post_|frage|pregunta|domanda|pergunta|_q_"
)
_ASIDE = re.compile(
    r"_(id|uid|key|index|idx|url|link|date|time|timestamp|created|updated|lang|language|split|category|topic|label|score|"
    r"rating|rater|annotator|author|name|email|page|tokens|cost|latency|version|notes?|comments?|remarks?|reasons?|"
    r"reasoning|rationale|explanation|judge?ment|verdict|winner|preferred|preference|better|best|choice|feedback|critique|reference|gold|ideal|expected|target|truth|title|bewertung|note)_"
)
_GRADED = re.compile(
    r"_(human|rating|label|score|grade|points|stars|bewertung|note|punkte|sterne|calificación|puntuación|nota|"
    r"valutazione|punteggio|évaluation|avaliação|pontuação)_"
)
_PICTURE = re.compile(r"\S+\.(?:png|jpe?g|webp|gif|bmp|tiff?|mp4|mov|webm|avi|mkv)", re.IGNORECASE)
_OF_FILES = re.compile(r"_(image|images|img|picture|photo|video|clip|file|filename|path)_")
_SHORT = 10  # a column whose texts are this many times shorter than another's does not count as text


def lacking(
    needed: int,
    columns: Sequence[str],
    mapped: Mapping[str, str],
    lengths: Mapping[str, int] | None = None,
    nested: Mapping[str, str] | None = None,
) -> str:
    """What to say where no record has as many responses as are needed; `lengths` of the texts in each column help to
    tell which are most likely responses. `nested` are the cures for columns of lists and objects (`nested_cure`).
    """
    what = "the response" if needed == 1 else "two responses"
    talk = next((column for column, field in mapped.items() if field == "instruction and response"), "")
    if talk and needed == 1:
        told = f"no conversation in {talk!r} ends with a turn of the assistant, which would be judged"
        return f"{told}: add it, or name the column of the response with --map response=COLUMN"
    inside = next((cure for column, cure in (nested or {}).items() if column not in {*mapped, *ITEM_KEYS}), "")
    if inside and not {"response", "responses"} & {*columns, *mapped.values()}:
        told = f"no column is recognised as {what}; the columns are {', '.join(columns)}: {inside}"
        unknown = [each for each in columns if each not in mapped and each not in ITEM_KEYS]
        asked = "instruction" in columns or any(field.startswith("instruction") for field in mapped.values())
        prompt = "" if asked else likely_instruction(unknown, lengths or {})
        return f"{told}; {in_words([('instruction', prompt)])} if {prompt!r} is what was asked" if prompt else told
    if lengths is not None and not any(lengths.values()):
        told = f"no column holds text; the columns are {', '.join(columns)}: give one record for each item"
        return f"{told}, with {what} as text (--map {'response' if needed == 1 else 'response_0'}=COLUMN names it)"
    one = next((name for name in columns if name == "response" or mapped.get(name) == "response"), "")
    if needed == 2 and one:
        told = (
            f"{one!r} holds one response of each item: `dikast grade` scores those; to compare, name two columns with"
        )
        told += f" {in_words([('response_0', one), ('response_1', 'COLUMN')])}; the columns are {', '.join(columns)}"
        return told
    several = next((name for name in columns if name == "responses" or mapped.get(name) == "responses"), "")
    if needed == 2 and several:
        return f"no item has two responses in {several!r}: `dikast grade` scores single ones; to compare, give each two"
    used = {column for column, field in mapped.items() if field != "gold (guessed)"}
    others = {*GOLD_LIKE, *(SYSTEM if needed == 1 else ())}
    left = [each for each in columns if each not in used and each not in ITEM_KEYS and plain_name(each) not in others]
    text = [each for each in left if lengths is None or lengths.get(each, 0)]
    slips = {
        each: near
        for each in (text if needed == 1 else ())
        if not _speaks_of(each, _ASIDE) and (near := _slip(plain_name(each), NAMES["response"]))
    }
    asked = "instruction" in columns or any(field.startswith("instruction") for field in mapped.values())
    likely = [*slips][:1] or (likely_responses(left, lengths or {}, needed, asked=asked) if left else [])
    named = [*likely, *("COLUMN", "OTHER")[len(likely) :]][:needed]
    fields = ["response"] if needed == 1 else ["response_0", "response_1"]
    moves = list(zip(fields, named, strict=True))
    prompt = "" if asked else likely_instruction([each for each in left if each not in likely], lengths or {})
    if prompt and likely:
        moves.insert(0, ("instruction", prompt))
    told = f"no column is recognised as {what}; the columns are {', '.join(columns)}: "
    if slips:
        told += f"did you mean {slips[likely[0]]!r} by {likely[0]!r}? Then rename it, or "
    told += f"name it with {in_words(moves)}"
    if not likely:
        told += f", or add {'them' if needed == 2 else 'it'} if the file has nothing to judge yet"
    if needed == 1 and prompt and likely:
        told += ", if these are the question and the answer to judge"
    graded = [each for each in left if _speaks_of(each, _GRADED) and not (lengths or {each: 1}).get(each, 0)]
    if needed == 1 and len(graded) == 1:
        told += f"; {in_words([('gold', graded[0])])} if people gave {graded[0]!r}"
    if "image" in mapped.values() and not likely:
        part = """{"response": {"type": "image", "image": "a.png"}}"""
        told += f"; pictures that are responses themselves are written in JSONL as {part}"
    if any(map(_is_data, columns)):
        told += "; if this first row is data, write one with the names above it (question,answer)"
    return told


def unsure_answer(
    found: Recognised, columns: Sequence[str], value: Mapping[str, object], named: Collection[str]
) -> str:
    """What to say where `answer`, which is the response if no other column is, may be the reference, since a column
    that is neither recognised nor `named` may hold what a model said in the record `value`; "" where there is none.
    """
    answer = next((column for field, column in found.moves if field == "response"), "")
    if plain_name(answer) != "answer":
        return ""
    others = {
        *found.guessed(),
        *named,
        *ITEM_KEYS,
        *(key for key in columns if plain_name(key) in {*SYSTEM, *GOLD_LIKE}),
    }
    said = [each for each in columns if each not in others and _may_answer(each, value.get(each))]
    if not said:
        return ""
    asked = in_words([("response", said[0]), ("reference", answer)])
    told = " and ".join(map(repr, (answer, *said)))
    both = in_words([("response_0", answer), ("response_1", said[0])])
    return (
        f"{told} could each be the response; the columns are {', '.join(columns)}: name it with {asked}, or "
        f"{in_words([('response', answer)])}; to compare the two, name both with {both}"
    )


def is_picture(cell: object) -> bool:
    """Whether a cell is the name of an image or a video file and nothing else."""
    return isinstance(cell, str) and _PICTURE.fullmatch(cell.strip()) is not None


def picture_as_text(fields: Mapping[str, str], value: Mapping[str, object], root: str) -> str:
    """What to say where the `value` of a column that is an instruction or a response (`fields` has what each column is)
    is a picture: a file that is there, or one in a column named after files; "" for none.
    """
    for column, cell in value.items():
        field = fields.get(column, column)
        if not field.startswith(("response", "instruction")) or not is_picture(cell):
            continue
        if not _speaks_of(column, _OF_FILES) and not os.path.isfile(os.path.join(root, str(cell))):
            continue
        told = f"column {column!r} holds names of pictures ({cell}), which would be judged as text:"
        told += f" {in_words([('image', column)])} shows them with the instruction"
        part = json.dumps([{"type": "image", "image": cell}])
        return f"{told}; as responses they are written in JSONL as {part}" if field.startswith("response") else told
    return ""


def _slip(column: str, names: Sequence[str]) -> str | None:
    """The name that a column is most likely a misspelling of, word by word where both have as many: `q_text` is no
    slip of `ai_text`.
    """
    near = near_miss(column, names)
    words = list(zip(column.split("_"), (near or "").split("_"), strict=False))
    alike = column.count("_") != (near or "").count("_") or all(near_miss(said, [due]) for said, due in words)
    return near if alike else None


def _may_answer(name: str, text: object) -> bool:
    """Whether a column may hold a response, by its name and by a text of it: several words, unless its name says so."""
    if not isinstance(text, str) or not isinstance(number_in(text.strip()), str) or is_like_gold(name, text):
        return False
    clear = plain_name(name).rpartition("_")[2] in ANSWERS
    return _speaks_of(name, _SAID) and not _speaks_of(name, _ASIDE) and (clear or len(text.split()) > 1)


def _is_data(name: str) -> bool:
    """Whether the name of a column is rather a value: a number, or a sentence."""
    return not isinstance(number_in(name.strip()), str) or (" " in name.strip() and name.strip()[-1:] in ".!")


def nested_cure(column: str, value: object) -> str:
    """How the lists or objects of a column become responses, as the end of a message; "" where they hold none."""
    if isinstance(value, Mapping):
        several = len(value) > 1 and all(isinstance(each, str) for each in value.values()) and _speaks_of(column, _SAID)
        if not several and not any(
            plain_name(str(name)) in NAMES["response"] for name, each in value.items() if isinstance(each, str)
        ):
            return ""
        told, made = "objects, whose members are to be columns", f". + .{column}"
    elif isinstance(value, list | tuple) and value and _speaks_of(column, _SAID):
        if all(isinstance(each, str) for each in value):
            return f"{column!r} holds lists of texts: name it with {in_words([('responses', column)])}"
        within = (
            name for name in (*NAMES["response"], "text", "content") if all(_has_text(each, name) for each in value)
        )
        if not (name := next(within, "")):
            return ""
        told, made = "lists of objects, whose texts are to be a list", f".responses = [.{column}[].{name}]"
        if all(_has_text(each, "model") for each in value):
            numbered = '{key: "model_\\("abcdefgh"[.key:.key+1])", value}'
            made += f" | . + ([.{column}[].model] | to_entries | map({numbered}) | from_entries)"
    else:
        return ""
    return f"{column!r} holds {told} (jq -c '{made}' FILE > OTHER.jsonl)" if column.isidentifier() else ""


def several_texts(responses: Sequence[str], column: str, value: Mapping[str, object]) -> str:
    """What to say of a `column`, one of those of the `responses`, that holds a list of texts instead of one text in the
    record `value`.
    """
    told = f"{column!r} holds a list of texts where one response is needed"
    if len(responses) == 1:
        asked_of = (
            each for each in value if each != column and _speaks_of(each, _ASKED) and not _speaks_of(each, _ASIDE)
        )
        turns = (each for each in asked_of if _as_long(value[each], value[column]))
        if asked := next(turns, ""):
            user, said = (f".[{json.dumps(each)}]" for each in (asked, column))
            made = '{role: "user", content: .[0]}, {role: "assistant", content: .[1]}'
            made = f". + {{messages: [[{user}, {said}] | transpose[] | {made}]}} | del({user}, {said})"
            told += f": where {asked!r} and {column!r} are the turns of a conversation, write it as one"
            return f"{told} (jq -c '{made}' FILE > OTHER.jsonl)"
        made = f"""[.[{json.dumps(column)}]] | flatten | join("\\n")"""
        told += f": if each is a response, {in_words([('responses', column)])} judges each; if they are parts of one,"
        return f"{told} join them (jq -c '. + {{{json.dumps(column)}: ({made})}}' FILE > OTHER.jsonl)"
    each = "".join(f" | ([$r[{json.dumps(name)}]] | flatten[]) as $v{i}" for i, name in enumerate(responses))
    made = ", ".join(f"{json.dumps(name)}: $v{i}" for i, name in enumerate(responses))
    command = f". as $r{each} | $r + {{{made}}}{' | del(.id)' * ('id' in value)}"
    exploded = "".join(f".explode({name!r})" for name in responses)
    told += ": if each is a response, give each combination a row of its own"
    told += f" (jq -c {shlex.quote(command)} FILE > OTHER.jsonl), in pandas with frame{exploded}"
    return told + ".drop(columns='id')" * ("id" in value)


def _as_long(cell: object, other: object) -> bool:
    """Whether both are lists of the same number of texts."""
    lists = [each for each in (cell, other) if isinstance(each, list | tuple) and all(isinstance(t, str) for t in each)]
    return len(lists) == 2 and len(lists[0]) == len(lists[1])


def asked_inside(column: str, value: object) -> str:
    """The cure for an object that holds what was asked, as the end of a message; "" for anything else."""
    texts = [str(name) for name, each in value.items() if isinstance(each, str)] if isinstance(value, Mapping) else []
    asked = next((name for name in texts if _speaks_of(name, _ASKED) and not _speaks_of(name, _ASIDE)), "")
    if not asked or not column.isidentifier():
        return ""
    told = f"{column!r} holds {asked!r}: make columns of its members (jq -c '. + .{column}' FILE > OTHER.jsonl) if"
    return f"{told} {asked!r} is what was asked"


def member_cure(column: str, cell: Mapping[str, object]) -> str:
    """How the text inside an object becomes the text of its column, as a message; "" where it has none."""
    texts = {name: len(text.split()) for name, text in cell.items() if isinstance(text, str) and name.isidentifier()}
    if not texts or not column.isidentifier():
        return ""
    best = max(texts, key=lambda name: ("text" in name or _speaks_of(name, _ASKED), texts[name]))
    made = f".{column} |= .{best}"
    return f"an object and no text: take the one that it holds (jq -c '{made}' FILE > OTHER.jsonl)"


def _has_text(value: object, name: str) -> bool:
    return isinstance(value, Mapping) and "role" not in value and isinstance(value.get(name), str)


def likely_responses(left: Sequence[str], lengths: Mapping[str, int], needed: int, *, asked: bool) -> list[str]:
    """The columns that most likely hold the responses, in their order: by their names, or else the columns of text
    after the prompt, which comes first if none was recognised (`asked`).
    """
    written = [each for each in left if lengths.get(each, 0) or not lengths]
    said = [each for each in written if _speaks_of(each, _SAID) and not _speaks_of(each, _ASIDE)]
    prompts = [] if asked else [at for at, each in enumerate(left) if _speaks_of(each, _ASKED)]
    after = left[prompts[0] :] if prompts else left  # what stands before a prompt is hardly what was said to it
    said = (_twins(written) if needed == 2 > len(said) else []) or said
    plain = [
        each for each in after if each not in said and not _speaks_of(each, _ASKED) and not _speaks_of(each, _ASIDE)
    ]
    unnamed = not asked and not said and not prompts
    text = _texts(plain, lengths, at_least=needed + unnamed)
    if unnamed and len(text) > needed:
        text = text[1:]
    chosen = {*[*said, *text][:needed]}
    return [each for each in left if each in chosen]


def _twins(columns: Sequence[str]) -> list[str]:
    """Two columns whose names differ only in the letter or the number at their end, the first such."""
    for one in columns:
        for other in columns:
            ends = (one[-1:].casefold(), other[-1:].casefold())
            if one[:-1] == other[:-1] and ends in (("a", "b"), ("0", "1"), ("1", "2")):
                return [one, other]
    return []


def likely_instruction(left: Sequence[str], lengths: Mapping[str, int], *, speaking: bool = False) -> str:
    """The column that most likely holds the prompt: by its name, else (unless it is to be `speaking`) the first of
    text; "" for none.
    """
    text = [each for each in left if lengths.get(each, 0) and not _speaks_of(each, _ASIDE)]
    asked = [each for each in text if _speaks_of(each, _ASKED) or plain_name(each) == "text"]
    if speaking and not asked:
        return ""
    return (asked or _texts(text, lengths, at_least=1) or [""])[0]


def _texts(columns: Sequence[str], lengths: Mapping[str, int], at_least: int) -> list[str]:
    """The columns of text, without those whose texts are much shorter than the longest, if enough are left."""
    found = [each for each in columns if lengths.get(each, 0)]
    most = max((lengths[each] for each in found), default=0)
    long = [each for each in found if lengths[each] * _SHORT >= most]
    return long if len(long) >= at_least else found


def _speaks_of(column: str, words: re.Pattern[str]) -> bool:
    words_of = plain_name(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column))  # camelCase, too
    return words.search(f"_{words_of}_") is not None


def seeing_records(told: str, records: str) -> str:
    """The commands of a message about a JSON file in which jq finds the records with the program `records`."""
    start, jq, command = told.partition("(jq ")
    options, quote, program = command.partition("'")
    return f"{start}{jq}{options}{quote}{records}{program}" if jq and " FILE " not in options else told


def with_table_written(told: str, kind: str) -> str:
    """The commands of a message about a `parquet` or `csv` file, which jq cannot read: it is first written as JSON."""
    read = "read_parquet('FILE')" if kind == "parquet" else "read_csv('FILE', sep=None, engine='python')"
    written = f"pandas.{read}.to_json('FILE.jsonl', orient='records', lines=True)"
    start, jq, command = told.partition("(jq ")
    return f'{start}(python -c "import pandas; {written}" && jq {command.replace("FILE", "FILE.jsonl")}' if jq else told
