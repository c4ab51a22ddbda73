"""Reading claims about clips back from English, and looking them up frame by frame in the clip's graph."""

import re
from collections.abc import Mapping
from typing import Any

_WHEEL = ["red", "orange", "yellow", "green", "teal", "blue", "purple", "pink"]
_S = "(circle|square|triangle|diamond|cross|star|ring|heart)"
_C = f"({'|'.join(_WHEEL)})"
_D = "(up|down|left|right)"
_E = f"({_S[1:-1]}) (moves|appears|changes colour)"
_PATTERNS = [
    *[("motion", p, "sv") for p in (
        f"(?:look, )?the {_S} moves {_D}", f"the direction of the {_S} is {_D}", f"{_S}: moves {_D}")],
    *[("motion", p, "vs") for p in (f"{_D} is the way the {_S} goes", f"we note a move {_D} for the {_S}")],
    *[("turns", p, "sv") for p in (
        f"(?:look, )?the {_S} turns {_C}", f"the colour of the {_S} becomes {_C}", f"{_S}: turns {_C}")],
    *[("turns", p, "vs") for p in (f"{_C} is the new colour of the {_S}", f"we note a change to {_C} for the {_S}")],
    *[("appears", p, "vs") for p in (
        f"(?:look, )?an? {_C} {_S} appears", f"an? {_C} {_S} comes into view", f"new: {_C} {_S}",
        f"into view comes an? {_C} {_S}", f"we note one new {_C} {_S}")],
    *[("moment", p, "sev") for p in (f"(?:look, )?the {_E} in frame (\\d)", f"{_E}: frame (\\d)")],
    *[("moment", p, "vse") for p in (
        f"(?:we note that )?in frame (\\d) the {_E}", f"frame (\\d) is when the {_E}")],
    *[("before", p, "setf") for p in (
        f"(?:look, |we note that )?the {_E} before the {_E}", f"first the {_E} and later the {_E}",
        f"{_E}, then {_E}")],
    ("before", f"before the {_E}, the {_E}", "tfse"),
]  # fmt: skip
_COMPILED = [(kind, re.compile(pattern), order) for kind, pattern, order in _PATTERNS]
_ROUND = {(0, -1): 0, (1, 0): 1, (0, 1): 2, (-1, 0): 3}  # right and down are positive; quarter turns from up
_WAYS = {"up": 0, "right": 1, "down": 2, "left": 3}
_ABSENT = 9
Said = tuple[str, tuple[str, ...], Any]


class ClipReader:
    """Plays a clip (the JSON form) frame by frame and checks claims against what is seen to change."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self.frames = [self._frame(graph, frame) for frame in range(1, graph["frames"] + 1)]

    @staticmethod
    def _frame(graph: Mapping[str, Any], frame: int) -> dict[str, tuple[int, int, str]]:
        """Shape -> column, row, colour of what that frame shows."""
        shown = {t["shape"]: (t["col"], t["row"], t["colour"]) for t in graph["things"]}
        for event in graph["events"]:
            shape, late = event["shape"], frame >= event["frame"]
            col, row, colour = shown[shape]
            if event["kind"] == "appear" and not late:
                del shown[shape]
            elif event["kind"] == "recolour" and late:
                shown[shape] = col, row, event["to"]
            elif event["kind"] == "move" and late:
                by = event["by"]
                across = {"left": -by, "right": by}.get(event["to"], 0)
                shown[shape] = col + across, row + {"up": -by, "down": by}.get(event["to"], 0), colour
        return shown

    def read(self, sentence: str) -> Said:
        """What a sentence claims. ValueError when it claims nothing known."""
        for kind, pattern, order in _COMPILED:
            if match := pattern.fullmatch(sentence):
                g = dict(zip(order, match.groups(), strict=True))
                if kind == "before":
                    pair = (f"{g['s']} {g['e']}", f"{g['t']} {g['f']}")
                    return kind, tuple(sorted(pair)), pair
                if kind == "moment":
                    return kind, (f"{g['s']} {g['e']}",), int(g["v"])
                return kind, (g["s"],), g["v"]
        raise ValueError(f"no reading of {sentence!r}")

    def off(self, kind: str, subject: tuple[str, ...], said: Any) -> tuple[str, int]:
        """The aspect a claim is about and by how much it is off, 0 if true."""
        if kind == "before":
            first, second = (self._frame_of(words) for words in said)
            return "time", _ABSENT if first is None or second is None else max(0, first - second + 1)
        if kind == "moment":
            at = self._frame_of(subject[0])
            return "moment", _ABSENT if at is None else abs(at - said)
        shape = subject[0]
        seen = [frame[shape] for frame in self.frames if shape in frame]
        if kind == "appears":
            return "existence", 2 if len(seen) in (0, len(self.frames)) else int(seen[0][2] != said)
        if kind == "motion":
            across, down = (seen[-1][0] - seen[0][0], seen[-1][1] - seen[0][1]) if seen else (0, 0)
            way = _ROUND.get(((across > 0) - (across < 0), (down > 0) - (down < 0)))
            return kind, _ABSENT if way is None else min((way - _WAYS[said]) % 4, (_WAYS[said] - way) % 4)
        if not seen or seen[0][2] == seen[-1][2]:
            return "change", _ABSENT
        apart = abs(_WHEEL.index(seen[-1][2]) - _WHEEL.index(said))
        return "change", min(apart, 8 - apart)

    def _frame_of(self, words: str) -> int | None:
        """The frame (from 1) that first shows what an event brings, None if no frame does."""
        shape, _, verb = words.partition(" ")
        for i in range(1, len(self.frames)):
            before, after = self.frames[i - 1].get(shape), self.frames[i].get(shape)
            if before is None or after is None:
                happened = verb == "appears" and before is None and after is not None
            else:
                happened = verb == "moves" and before[:2] != after[:2]
                happened = happened or (verb == "changes colour" and before[2] != after[2])
            if happened:
                return i + 1
        return None

    def left_out(self, claims: list[Said]) -> int:
        """Nothing is asked to be complete."""
        return 0
