"""What a pass over records found: the recognised columns, and what to say of them."""

from dataclasses import dataclass, field

from dikast.core.item import ITEM_KEYS
from dikast.core.records import column_cures as cures
from dikast.core.records.column_names import in_words, is_model
from dikast.core.runs.judge_lock import NAMES_OF


@dataclass
class Arrangement:
    """The result of a pass over records: the columns of the first, the field of each guessed column, equal items.

    `names` is the version of the table with which a folder of verdicts was begun, so that it asks nothing twice: what
    is recognised since (`column_names.since`) is metadata, and conversations written as text stay text. With 0 records
    are read as before columns were recognised at all: an id that is missing is the line's number.
    """

    names: int = NAMES_OF
    columns: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # the columns of the first that have a field's own name, without ids and metadata
    mapped: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)  # of the texts in each column, in the first records
    nested: dict[str, str] = field(default_factory=dict)  # the cure for each column of lists or objects with responses
    equal: int = 0
    equal_at: list[str] = field(default_factory=list)  # the first few
    numbers: dict[str, bool] = field(default_factory=dict)  # whether a column of texts holds numbers instead
    several: bool = False  # whether the source is several files
    systems: tuple[str, ...] = ()  # the columns that name the systems of the first item's responses
    bare: bool = False  # whether the first item has a response, but neither an instruction nor images
    pictured: bool = False  # as `bare`, of an item with images
    asked_inside: str = ""  # the cure for what was asked inside an object, where the first item has no instruction
    named: dict[str, str] = field(default_factory=dict)  # the field of each column that was named
    pictures: str = ""  # a column with names of pictures, which the first item does not show
    dialogues: bool | None = None  # whether the responses of the first record are dialogues written out as text

    def lacking(self, needed: int) -> str:
        """What to say where no record has as many responses as are needed."""
        return cures.lacking(needed, self.columns, {**self.named, **self.mapped}, self.lengths, self.nested)

    def mapping_line(self) -> str:
        """The mapped columns in one line; empty if every column has a field's own name.

        Also numbers that are read as text and, if no prompt was recognised, the column that may hold it.
        """
        guessed = [f"{column} -> {name}" for column, name in self.mapped.items()]
        of = [""] if len(self.systems) == 1 else [f" of response_{i}" for i in range(len(self.systems))]
        known = [each for each in zip(self.systems, of, strict=True) if each[0] in self.columns]
        guessed += [f"{column} -> system{which}" for column, which in known]
        told = f"columns {', '.join(guessed)}" if guessed else ""
        own = [each for each in self.own if each not in self.mapped]
        if guessed and own:
            told += f"; {', '.join(own)} by {'its own name' if len(own) == 1 else 'their own names'}"
        if numeric := [name for name, number in self.numbers.items() if number]:
            told += f"{'; ' * bool(told)}the numbers of {' and '.join(numeric)} are read as text"
        left = [each for each in self.columns if each not in {*ITEM_KEYS, *self.mapped, *self.systems}]
        if self.dialogues:
            told += f"{'; ' * bool(told)}dialogues (Human: ... Assistant: ...), whose shared turns are the instruction"
        if self.pictures:
            shown = in_words([("image", self.pictures)])
            told += f"{'; ' * bool(told)}the pictures that {self.pictures!r} names are not shown: {shown} shows them"
        if more := self._left_of_models(left):
            told += (
                f"{'; ' * bool(told)}{' and '.join(map(repr, more))} may hold a response too: {self._all_with(more)}"
            )
        if cure := self._no_instruction(left):
            shown = "the pictures and the response" if self.pictured else "the response"
            told += f"{'; ' * bool(told)}no instruction, so the judge sees {shown} alone: {cure}"
        return told

    def _no_instruction(self, left: list[str]) -> str:
        """Where the instruction may be that the first item lacks; "" where nothing looks like one."""
        if not (self.bare or self.pictured):
            return ""
        if prompt := cures.likely_instruction(left, self.lengths, speaking=self.pictured or bool(self.asked_inside)):
            return f"{in_words([('instruction', prompt)])} if {prompt!r} is what was asked"
        return self.asked_inside

    def _left_of_models(self, left: list[str]) -> list[str]:
        """Columns of text beside those that are responses since they are called like models."""
        if not any(map(is_model, self.mapped)):
            return []
        return cures.likely_responses(left, self.lengths, len(left), asked=True)

    def _all_with(self, more: list[str]) -> str:
        known = [column for column, name in self.mapped.items() if name.startswith("response_")]
        return in_words([(f"response_{i}", column) for i, column in enumerate([*known, *more])])

    def equal_items_note(self) -> str:
        """How many items without an id are equal to an earlier one, and the places of the first of them; empty for
        none.
        """
        if not self.equal:
            return ""
        if self.several:
            at = ", ".join(place.rpartition("/")[2] for place in self.equal_at)
        else:
            word = "row" if self.equal_at[0].startswith("rows:") else "line"
            at = f"{word} {', '.join(place.rpartition(':')[2] for place in self.equal_at)}"
        more = f" and {self.equal - len(self.equal_at):,} more" * (self.equal > len(self.equal_at))
        return f"{self.equal:,} without an id equal to an earlier item, called #2, #3, ...: {at}{more}"
