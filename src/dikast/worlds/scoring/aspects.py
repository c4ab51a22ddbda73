"""The aspects that a rubric can weigh: the error operator of each, its unit, and from which distance it is far off."""

from dataclasses import dataclass

NEVER = 99  # the `far` of aspects whose errors have no degrees


@dataclass(frozen=True, slots=True)
class Aspect:
    """One aspect that a response can be correct or wrong about.

    `operator` names the error, `unit` its metric; an error of `far` units or more counts double if a rubric grades by
    distance. `cap` is the largest number of errors that one response is charged for (omissions and the like). `names`
    are interchangeable noun phrases. `sees` is False if the response's text alone decides.
    """

    name: str
    operator: str
    unit: str
    far: int
    names: tuple[str, ...]
    sees: bool = True
    cap: int = 1

    @property
    def countable(self) -> bool:
        """Whether the metric is itself a number of errors."""
        return self.cap > 1


_ALL = (
    Aspect("colour", "wrong_colour", "steps on the colour wheel", 2, ("colours", "hues", "colour of each thing")),
    Aspect("size", "wrong_size", "size steps", 2, ("sizes", "how big things are", "size of each thing")),
    Aspect("shape", "wrong_shape", "shapes", NEVER, ("shapes", "forms", "shape of each thing")),
    Aspect("texture", "wrong_texture", "textures", NEVER, ("textures", "patterns", "texture of each thing")),
    Aspect("position", "wrong_position", "steps between regions", 2, ("places", "positions", "where each thing is")),
    Aspect(
        "relation",
        "wrong_relation",
        "grid cells",
        3,
        ("relations", "how things lie to each other", "spatial relations"),
    ),
    Aspect("count", "wrong_count", "things", 2, ("counts", "numbers of things", "how many there are")),
    Aspect(
        "existence",
        "invented_object",
        "attributes",
        2,
        ("named things", "things said to be there", "existence of things"),
    ),
    Aspect(
        "binding",
        "binding_swap",
        "attributes",
        NEVER,
        ("colour pairings", "which thing has which colour", "pairs of colours"),
    ),
    Aspect(
        "comparison",
        "wrong_comparison",
        "things or size steps",
        2,
        ("comparisons", "what is more or larger", "comparing of things"),
    ),
    Aspect(
        "certainty",
        "unsupported_certainty",
        "claims",
        NEVER,
        ("hidden corners", "claims on covered corners", "certainty about corners"),
    ),
    Aspect("completeness", "missed_object", "things", NEVER, ("omissions", "things left out", "missing things"), cap=3),
    Aspect(
        "relevance",
        "irrelevance",
        "sentences",
        NEVER,
        ("relevance", "off-topic sentences", "sticking to the topic"),
        sees=False,
        cap=2,
    ),
    Aspect(
        "concision",
        "redundancy",
        "sentences",
        NEVER,
        ("repetitions", "repeated sentences", "saying things twice"),
        sees=False,
        cap=2,
    ),
    Aspect(
        "consistency",
        "contradiction",
        "sentences",
        NEVER,
        ("contradictions", "conflicting sentences", "contradicting itself"),
        sees=False,
        cap=2,
    ),
    Aspect("format", "format_violation", "rules", NEVER, ("format", "the asked-for layout", "layout"), sees=False),
    Aspect("length", "over_length", "words", NEVER, ("word limit", "the limit on words", "length limit"), sees=False),
    Aspect("fact", "wrong_fact", "facts", NEVER, ("facts", "what the notes say", "facts from the notes")),
    Aspect("sum", "wrong_number", "percent", 20, ("sums", "arithmetic", "results of sums")),
    Aspect("list", "wrong_place_in_list", "places", 2, ("list edits", "order of the list", "places in the list")),
    Aspect("day", "wrong_day", "days", 2, ("days", "weekdays", "days of events")),
    Aspect("reading", "misread_text", "letters", 2, ("words read", "reading of words", "written words")),
    Aspect("number", "misread_number", "percent", 20, ("numbers read", "reading of numbers", "written numbers")),
    Aspect("cell", "wrong_cell", "percent", 20, ("table cells", "table entries", "cells of the table")),
    Aspect("value", "wrong_value", "percent", 20, ("values", "chart values", "values read off")),
    Aspect("order", "wrong_order", "claims", NEVER, ("ranking", "order of the values", "which is higher")),
    Aspect("extreme", "wrong_extreme", "claims", NEVER, ("extremes", "highest and lowest", "the top and the bottom")),
    Aspect("motion", "wrong_motion", "quarter turns", 2, ("moves", "directions of moves", "which way things move")),
    Aspect(
        "change", "wrong_change", "steps on the colour wheel", 2, ("changes", "colour changes", "what things turn into")
    ),
    Aspect("time", "wrong_order_in_time", "frames", 2, ("order in time", "what comes first", "order of events")),
    Aspect("moment", "wrong_frame", "frames", 2, ("moments", "when things appear", "frames of events")),
    Aspect("edit", "edit_not_made", "edits", NEVER, ("edits", "the changes asked for", "edits made")),
    Aspect("addition", "not_added", "edits", NEVER, ("additions", "things to be added", "what was to be added")),
    Aspect("removal", "not_removed", "edits", NEVER, ("removals", "things to be removed", "what was to be removed")),
    Aspect("shift", "not_moved", "edits", NEVER, ("shifts", "things to be moved", "what was to be moved")),
    Aspect("preservation", "changed_else", "things", NEVER, ("the rest", "what should stay", "unasked changes"), cap=3),
)
ASPECTS = {aspect.name: aspect for aspect in _ALL}


def points(aspect: Aspect, metric: int, graded: bool) -> int:
    """What an error of `metric` units costs before weighting: 0 for none, 1, or 2 for one far off under grading."""
    if metric <= 0:
        return 0
    if aspect.countable:
        return min(metric, aspect.cap)
    return 2 if graded and metric >= aspect.far else 1
