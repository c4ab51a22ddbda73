"""Samples as lessons change them: more words that cost nothing, or an empty scene."""

from dataclasses import replace

from dikast.worlds.domains.paraphrases import NEUTRAL
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Response, Sentence
from dikast.worlds.sampling.rng import Stream

EMPTY = (
    "...", "-", "Well", "Answer", "Done.", "Yes.", "OK", "I see.", "See above.", "In short:", "My answer:",
    "Of course.", "To be continued.", "First the details.", "Here it is.", "Let me begin.",
    "I will look closely at this.", "Thank you for the question.", "Now to the point.", "All of it is clear.",
)  # fmt: skip


def padded(sample: Sample, rng: Stream) -> Sample:
    """`sample` with one to four more neutral sentences in every response, which cost nothing.

    They are drawn from those that the response does not have, and appended or inserted anywhere with equal probability.
    A response with a word limit is unchanged.
    """

    def longer(response: Response) -> Response:
        if response.limit:
            return response
        sentences = list(response.sentences)
        new = [text for text in NEUTRAL if text not in {sentence.text for sentence in sentences}]
        at_end = rng.chance(50)
        for text in rng.shuffled(new)[: 1 + rng.below(4)]:
            sentences.insert(len(sentences) if at_end else rng.below(len(sentences) + 1), Sentence(text, "neutral"))
        return replace(response, sentences=tuple(sentences))

    return replace(sample, responses=tuple(map(longer, sample.responses)))


def blanked(sample: Sample) -> Sample:
    """`sample` with an empty scene in place of its own; the gold follows the empty one."""
    return sample.but(name="blank", graph=sample.graph.emptied(), shown="")


def opened(sample: Sample, rng: Stream) -> Sample:
    """`sample` with words that answer nothing before what the response says, where they cost nothing.

    A response with a word limit is unchanged.
    """
    (response,) = sample.responses
    if response.limit:
        return sample
    sentences = (Sentence(rng.pick(EMPTY), "neutral"), *response.sentences)
    return replace(sample, responses=(replace(response, sentences=sentences),))
