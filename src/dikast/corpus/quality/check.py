"""`corpus check`: finds faults of feedback data before it is used for training."""

from array import array
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.media import resolved
from dikast.core.verdict import Status
from dikast.corpus.dedup.image_dedup import NearDuplicateImages
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.observations import FEATURES, Observed, features_of, goodness, label_of, observations, words_of
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.quality.diversity import Diversity, Sampled
from dikast.corpus.quality.languages import KNOWN, code_of, language_of, wrong_language
from dikast.corpus.quality.mutual_information import Information, information
from dikast.corpus.quality.topics import topics
from dikast.corpus.sources.seed_rubrics import SCALE
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.parse import parse_reply
from dikast.prompts.parsed import Target

_EXAMPLES = 5
_MOST = 20_000  # observations whose scores are shuffled; a seeded sample of this size if there are more
_EARLY = 0.25  # a score named in the first quarter of its feedback comes before its reasons
_LEVELS = 5


@dataclass(slots=True)
class DataFinding:
    """How many of `n` cases have a fault, with the places of the first ones."""

    found: int = 0
    n: int = 0
    examples: list[str] = field(default_factory=list)

    def note(self, here: bool, where: str = "") -> None:
        """Count one case; `here` says whether it has the fault. `where` is kept for the first ones found."""
        self.n += 1
        if here:
            self.found += 1
            if len(self.examples) < _EXAMPLES:
                self.examples.append(where)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"found": self.found, "n": self.n, "examples": self.examples}


@dataclass(slots=True)
class Check:
    """The result of `check_file`. `findings` are by name; `information` is of single responses, `pairs` of pairs."""

    path: str
    records: int = 0
    responses: int = 0
    scored: int = 0
    pairs_n: int = 0
    images: int = 0
    seed: int = 0
    scores: Counter[str] = field(default_factory=Counter)
    preferences: Counter[str] = field(default_factory=Counter)
    words: dict[str, float] = field(default_factory=dict)
    rubrics: dict[str, Any] = field(default_factory=dict)
    information: list[Information] = field(default_factory=list)
    pairs: list[Information] = field(default_factory=list)
    findings: dict[str, DataFinding] = field(default_factory=dict)
    against: dict[str, int] = field(default_factory=dict)
    sampled: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    topics: dict[str, Any] = field(default_factory=dict)
    families: list[dict[str, Any]] = field(default_factory=list)
    diversity: dict[str, Diversity] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "path": self.path, "records": self.records, "responses": self.responses, "scored": self.scored,
            "pairs": self.pairs_n, "images": self.images, "seed": self.seed,
            "scores": dict(sorted(self.scores.items())),
            "preferences": dict(self.preferences), "mean_words_by_score": self.words, "rubrics": self.rubrics,
            "information": [each.to_dict() for each in self.information],
            "pair_information": [each.to_dict() for each in self.pairs],
            "findings": {name: each.to_dict() for name, each in self.findings.items()}, "against": self.against,
            "sampled": self.sampled, "languages": dict(self.languages.most_common()), "topics": self.topics,
            "families": self.families, "diversity": {kind: each.to_dict() for kind, each in self.diversity.items()},
        }  # fmt: skip


def check_file(path: str | Path, asked: CheckOptions | None = None) -> Check:
    """Check a file of feedback data of any known schema, also for contamination by the benchmark files in `against`.

    With a `language`, by name or code, texts in another language are counted. `near` looks for near duplicates of texts
    and images, and for topics. One pass; features and scores take 88 bytes a response, labels some 150, and the indexes
    `dedup.text_dedup` and `dedup.image_dedup` say. UserError for an unknown language and for a file without records.
    """
    asked = asked or CheckOptions()
    if asked.language and not code_of(asked.language):
        raise UserError(f"language {asked.language!r} cannot be identified by this check; known: {', '.join(KNOWN)}")
    checker = _Checker(str(path), near=asked.near, seed=asked.seed, language=asked.language)
    for file in asked.against:
        checker.benchmark(file, dict(asked.names).get(file, file))
    for observation in observations(path, asked.from_):
        checker.see(observation)
    return checker.finish(asked.draws)


class _Checker:
    """One pass over the records."""

    def __init__(self, path: str, *, near: bool, seed: int, language: str) -> None:
        self.check, self.near, self.language = Check(path, seed=seed), near, language
        self.features, self.goodness, self.exact = array("d"), array("d"), array("d")
        self.differences, self.wins = array("d"), array("d")
        self.bench = {name: Index(near=near) for name in ("instruction", "response", "rubric")}
        self.seen = {name: Index(near=near) for name in ("instructions", "responses", "rubrics")}
        self.pictures = {"seen": NearDuplicateImages(), "bench": NearDuplicateImages()}
        self.shown: dict[str, bool] = {}  # source of an image -> whether a benchmark contains it
        self.asked: set[str] = set()
        self.families: dict[str, list[float]] = {}  # rows, parts of rows, sum and number of scores
        self.instructions: dict[str, None] = {}
        self.labels: dict[bytes, float] = {}  # fingerprint of what is judged -> its score
        self.rows: Counter[str] = Counter()
        self.of_rubric: dict[str, set[float]] = {}
        self.scales: Counter[str] = Counter()
        self.lengths: dict[str, list[int]] = {}
        self.described = DataFinding()
        self.texts = Sampled()

    def finding(self, name: str) -> DataFinding:
        return self.check.findings.setdefault(name, DataFinding())

    def benchmark(self, path: str, name: str) -> None:
        n = 0
        for observation in observations(path):
            n += 1
            where = f"{name}:{observation.line}"
            for kind, what, text in observation.texts:
                self.bench[kind].add(text, f"{where} {what}")
            for image in observation.item.images if self.near else ():
                with suppress(DataError):
                    self.pictures["bench"].add(image, where)
        self.check.against[name] = n

    def see(self, o: Observed) -> None:
        check = self.check
        check.records += 1
        check.responses += len(o.responses)
        check.images += len(o.item.images)
        where = f"line {o.line}"
        self._images(o, where)
        self._duplicates(o, where)
        self._rubric(o, where)
        self._spoken(o, where)
        self._family(o)
        self.texts.see(o)
        for i, each in enumerate(o.responses):
            if each.score is None:
                continue
            check.scored += 1
            check.scores[label_of(each.score)] += 1
            self.features.extend(features_of(each.response))
            self.exact.append(each.score)
            self.goodness.append(goodness(o, each.score))
            total = self.lengths.setdefault(label_of(each.score), [0, 0])
            total[0] += len(words_of(each.response))
            total[1] += 1
            if o.rubric is not None:
                self.of_rubric.setdefault(o.rubric.hash, set()).add(each.score)
            self._contradictions(o, i, where)
        if len(o.responses) == 2 and o.preference:
            check.pairs_n += 1
            check.preferences[o.preference] += 1
            self._pair(o, where)

    def _duplicates(self, o: Observed, where: str) -> None:
        key = o.key
        texts = [each.response for each in o.responses]
        new = o.instruction not in self.instructions  # several responses to one instruction are normal in such sets
        if new:
            self.instructions[o.instruction] = None
            match = self.seen["instructions"].add(o.instruction, where)
            self.finding("near-duplicate instructions").note(match is not None, f"{where} like {match and match.name}")
        for i, text in enumerate(texts):
            match = self.seen["responses"].add(text, f"{where} response {i}")
            told = f"{where} like {match.name} ({match.likeness:.2f})" if match else ""
            self.finding("duplicate responses").note(match is not None and match.likeness == 1, told)
            self.finding("near-duplicate responses").note(match is not None and match.likeness < 1, told)
            score = o.responses[i].score
            if score is not None:
                judged = bytes.fromhex(fingerprint([key, text]))
                earlier = self.labels.setdefault(judged, score) if len(texts) == 1 else score
                told = f"{where}: {label_of(score)}, earlier {label_of(earlier)}"
                self.finding("the same response scored differently").note(earlier != score, told)
        if self.check.against:
            self._leaks(o, texts, where)

    def _leaks(self, o: Observed, texts: list[str], where: str) -> None:
        """Count leaked texts. An instruction about a picture leaks only together with its picture."""
        places = [resolved(image) for image in o.item.images] if self.near else []
        looked, asked_ = [("response", text) for text in texts], fingerprint([o.instruction, places])
        if asked_ not in self.asked:
            self.asked.add(asked_)
            alone = not places or any(self.shown.get(place) for place in places)
            looked.append(("instruction", o.instruction if alone else ""))
        if o.rubric is not None and not self.rows[o.rubric.hash]:
            looked.append(("rubric", o.rubric.criterion))
        for name, text in looked:
            match = self.bench[name].find(text)
            told = f"{where} is {match.name} ({match.likeness:.2f})" if match else ""
            self.finding(f"leaked: {name}").note(match is not None, told)

    def _rubric(self, o: Observed, where: str) -> None:
        rubric = o.rubric
        if rubric is None:
            return
        if not self.rows[rubric.hash]:
            self.scales[str(rubric.scale)] += 1
            self.described.note(len(rubric.levels) == len(rubric.scale.labels))
            match = self.seen["rubrics"].add(rubric.criterion, where)
            told = f"{where} like {match.name}" if match else ""
            self.finding("near-duplicate rubrics").note(match is not None, told)
        self.rows[rubric.hash] += 1

    def _images(self, o: Observed, where: str) -> None:
        for image in o.item.images if self.near else ():
            place = resolved(image)
            if place in self.shown:
                continue
            self.shown[place] = False
            unread = self.finding("images that cannot be read")
            try:
                match, leak = self.pictures["seen"].add(image, where), self.pictures["bench"].find(image)
            except DataError as error:
                unread.note(True, f"{where}: {error}")
                continue
            unread.note(False)
            told = f"{where} like {match.name} ({match.likeness:.2f})" if match else ""
            self.finding("near-duplicate images").note(match is not None, told)
            self.shown[place] = leak is not None
            if self.check.against:
                told = f"{where} is {leak.name} ({leak.likeness:.2f})" if leak else ""
                self.finding("leaked: image").note(leak is not None, told)

    def _spoken(self, o: Observed, where: str) -> None:
        for i, each in enumerate(o.responses):
            self.check.languages[language_of(each.response) or "not told"] += 1
            refused = parse_reply("verdict", each.response, SCALE).status is Status.REFUSED
            self.finding("refusals").note(refused, f"{where} response {i}")
            for name, text in (("response", each.response), ("feedback", each.feedback)):
                if self.language and text:
                    found = wrong_language(text, self.language)
                    self.finding(f"{name} in another language").note(bool(found), f"{where}: {found}")

    def _family(self, o: Observed) -> None:
        names = o.item.meta.get("families")
        own = list(dict.fromkeys(map(str, names))) if isinstance(names, list) else []
        for name in own:
            told = self.families.setdefault(name, [0, 0, 0, 0])
            told[0] += 1
            told[1] += 1 / len(own)
            for each in o.responses:
                if each.score is not None:
                    told[2] += each.score
                    told[3] += 1

    def _contradictions(self, o: Observed, index: int, where: str) -> None:
        each, scale = o.responses[index], o.scale
        if not each.feedback or scale is None or each.score is None:
            return
        if each.score not in scale.values:
            self.finding("score off the rubric's scale").note(True, f"{where}: {each.score:g} on {scale}")
            return
        self.finding("score off the rubric's scale").note(False)
        stated = DIALECTS["critic"].read(each.feedback, Target(scale)).stated
        label = stated.label if stated else None
        other = label is not None and scale.value(label) != each.score
        told = f"{where}: labelled {label_of(each.score)}, the feedback says {label}"
        self.finding("feedback states another score").note(other, told)
        early = stated is not None and stated.end <= _EARLY * len(each.feedback)
        self.finding("feedback names its score early").note(early, where)

    def _pair(self, o: Observed, where: str) -> None:
        a, b = o.responses
        if o.preference != "tie":
            pair = zip(features_of(a.response), features_of(b.response), strict=True)
            self.differences.extend(x - y for x, y in pair)
            self.wins.append(float(o.preference == "a"))
        if a.score is not None and b.score is not None:
            good = goodness(o, a.score) - goodness(o, b.score)
            due = "tie" if good == 0 else "a" if good > 0 else "b"
            told = f"{where}: preference {o.preference}, scores {a.score:g} and {b.score:g}"
            self.finding("preference against the scores").note(due != o.preference, told)
        if o.feedback:
            stated = DIALECTS["prose"].read(o.feedback, Target()).stated
            said = {"first": "a", "second": "b", "tie": "tie"}.get(stated.label or "") if stated else None
            told = f"{where}: preference {o.preference}, the feedback says {said}"
            self.finding("feedback prefers the other").note(said is not None and said != o.preference, told)

    def finish(self, draws: int) -> Check:
        check = self.check
        if not check.records:
            raise UserError(f"{check.path}: nothing to check")
        one_scale = len(self.scales) <= 1
        scores = np.array(self.exact if one_scale else np.round(np.array(self.goodness) * (_LEVELS - 1)))
        check.information = self._informations(np.array(self.features).reshape(-1, len(FEATURES)), scores, draws)
        told = np.array(self.differences).reshape(-1, len(FEATURES))
        check.pairs = self._informations(told, np.array(self.wins), draws)
        self._shares()
        check.diversity = self.texts.measured()
        check.words = {label: total / n for label, (total, n) in sorted(self.lengths.items())}
        if self.rows:
            counts = np.array(list(self.rows.values()))
            full = sum(len(found) > 1 for found in self.of_rubric.values())
            check.rubrics = {
                "distinct": len(self.rows), "records": int(counts.sum()), "fewest": int(counts.min()),
                "median": float(np.median(counts)), "most": int(counts.max()), "scales": dict(self.scales),
                "every_level_described": self.described.found, "with_two_scores_or_more": full,
            }  # fmt: skip
        return check

    def _shares(self) -> None:
        """Topics and families, largest first."""
        total = sum(each[1] for each in self.families.values())
        order = sorted(self.families, key=lambda name: -self.families[name][1])
        for name in order:
            rows, part, scores, n = self.families[name]
            mean = scores / n if n else None
            self.check.families.append({"name": name, "rows": int(rows), "share": part / total, "mean_score": mean})
        if self.near:
            found = topics(list(self.instructions))
            counts = np.bincount(found.of, minlength=len(found.names))
            part = counts[counts > 0] / counts.sum()
            largest = [int(i) for i in np.argsort(-counts, kind="stable")[:_EXAMPLES]]
            self.check.topics = {
                "instructions": len(self.instructions), "n": len(found.names),
                "effective": float(np.exp(-(part * np.log(part)).sum())),
                "largest": [{"name": found.names[i], "instructions": int(counts[i])} for i in largest],
            }  # fmt: skip

    def _informations(
        self, features: "np.ndarray[Any, Any]", scores: "np.ndarray[Any, Any]", draws: int
    ) -> list[Information]:
        if not len(scores):
            return []
        if len(scores) > _MOST:
            kept = np.random.default_rng(self.check.seed).choice(len(scores), _MOST, replace=False)
            features, scores = features[kept], scores[kept]
            self.check.sampled = _MOST
        seed = self.check.seed
        return [information(name, features[:, i], scores, draws=draws, seed=seed) for i, name in enumerate(FEATURES)]
