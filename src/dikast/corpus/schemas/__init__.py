"""Public schemas of feedback data, by name."""

from typing import Any

from dikast.core.errors import DataError, UserError
from dikast.core.item import item_to
from dikast.core.text import near_miss
from dikast.corpus.schemas import annotation, conversation, preference_rows, preference_sets, prometheus, talk
from dikast.corpus.schemas import llava_critic as critic
from dikast.corpus.schemas.public_schema import Row, Schema

_PAIR = ("the first response", "response 1", "assistant a", "response a")


def _talks(row: Row) -> bool:
    return isinstance(row.get("conversations"), list)


def _first_turn(row: Row) -> str:
    turns = row["conversations"]
    first = turns[0] if turns and isinstance(turns[0], dict) else {}
    return str(first.get("value", "")) + "".join(str(t.get("value", "")) for t in turns[1:2] if isinstance(t, dict))


def _graded(row: Row) -> bool:
    return "###" in _first_turn(row) and "[RESULT]" in _first_turn(row)


def _critic(row: Row) -> bool:
    text = _first_turn(row)
    return "response" in critic.slots_of(text).parts or any(each in text.casefold() for each in _PAIR)


def _plain(messages: list[Any]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("content"), str) for each in messages)


SCHEMAS: dict[str, Schema] = {
    schema.name: schema
    for schema in (
        Schema("llava-rlhf", "LLaVA-RLHF: conversations, output_1, output_2, preference",
               lambda r: _talks(r) and {"output_1", "output_2", "preference"} <= r.keys(),
               preference_sets.read_llava_rlhf, preference_sets.write_llava_rlhf),
        Schema("vlfeedback", "VLFeedback: prompt, img_path, completions with ratings in three aspects",
               lambda r: "completions" in r and "prompt" in r,
               preference_sets.read_vlfeedback, preference_sets.write_vlfeedback),
        Schema("rlhf-v", "RLHF-V and RLAIF-V: a picture, question, chosen, rejected", preference_sets.is_rlhf_v,
               preference_sets.read_rlhf_v, preference_sets.write_rlhf_v),
        Schema("hhh", "HHH: input, targets with choices and labels",
               lambda r: "input" in r and isinstance(r.get("targets"), dict),
               preference_sets.read_hhh, preference_sets.write_hhh),
        Schema("mt-bench-human", "MT-bench human judgments: two conversations, turn, winner",
               lambda r: {"conversation_a", "conversation_b", "winner"} <= r.keys(),
               preference_sets.read_mt_bench, preference_sets.write_mt_bench),
        Schema("flask", "FLASK: instructions with answers, and reviews with a score for each skill",
               lambda r: "answer" in r and bool({"metrics", "skill"} & r.keys()),
               preference_sets.read_flask, preference_sets.write_flask),
        Schema("llamafactory", "LLaMA-Factory pairs: conversations, chosen, rejected, images",
               lambda r: _talks(r) and isinstance(r.get("chosen"), dict),
               preference_rows.read_llamafactory, preference_rows.write_llamafactory),
        Schema("llamafactory-kto", "LLaMA-Factory replies with a kto_tag", lambda r: _talks(r) and "kto_tag" in r,
               preference_rows.read_llamafactory_kto, preference_rows.write_llamafactory_kto),
        Schema("swift", "ms-swift: messages, rejected_response, images", lambda r: "rejected_response" in r,
               preference_rows.read_swift, preference_rows.write_swift),
        Schema("verl", "verl: data_source, prompt, images, reward_model, extra_info",
               lambda r: "data_source" in r and "reward_model" in r,
               preference_rows.read_verl, preference_rows.write_verl),
        Schema("preference", "Preference-Collection: pairs with both scores", lambda r: "orig_response_A" in r,
               prometheus.read_preference, prometheus.write_preference),
        Schema("perception-eval", "Perception evaluation rows: flat columns with an image, no gold",
               lambda r: "orig_criteria" in r and ("image" in r or "original_response" in r),
               prometheus.read_feedback, prometheus.write_perception_eval),
        Schema("feedback", "Feedback-Collection and rendered evaluation prompts with scores",
               lambda r: "orig_criteria" in r or ("###" in str(r.get("instruction")) and "meta" not in r),
               prometheus.read_feedback, prometheus.write_feedback),
        Schema("perception", "Perception-Collection: rendered conversations with an image and a score",
               lambda r: _talks(r) and _graded(r), prometheus.read_perception, prometheus.write_perception),
        Schema("critic", "LLaVA-Critic-113k, both configurations and all its answer dialects",
               lambda r: _talks(r) and _critic(r), critic.read_critic, critic.write_critic),
        Schema("llava", "LLaVA conversations", _talks, conversation.read_llava, conversation.write_llava),
        Schema("trl-kto", "trl: prompt, completion, label, images",
               lambda r: {"prompt", "completion", "label"} <= r.keys(),
               preference_rows.read_trl_kto, preference_rows.write_trl_kto),
        Schema("trl", "trl: prompt, completion, images", lambda r: "prompt" in r and "completion" in r,
               conversation.read_trl, conversation.write_trl),
        Schema("llava-preference", "LLaVA-NeXT: id, image, prompt, chosen, rejected",
               lambda r: {"id", "prompt", "chosen", "rejected"} <= r.keys() and isinstance(r["prompt"], str),
               preference_rows.read_llava_preference, preference_rows.write_llava_preference),
        Schema("openrlhf", "OpenRLHF: prompt, chosen, rejected as messages of text, margin",
               lambda r: "margin" in r and isinstance(r.get("chosen"), list) and _plain(r["chosen"]),
               conversation.read_trl, preference_rows.write_openrlhf),
        Schema("trl-preference", "trl: prompt, chosen, rejected, images", lambda r: "chosen" in r and "rejected" in r,
               conversation.read_trl, conversation.write_trl_preference),
        Schema("autoj", "pairs as prompt, `response 1`, `response 2` and a label of 0, 1 or 2 (tie)",
               lambda r: "response 1" in r and "response 2" in r, prometheus.read_autoj, prometheus.write_autoj),
        Schema("biggen", "items with a `score_rubric` object", lambda r: isinstance(r.get("score_rubric"), dict),
               prometheus.read_biggen, prometheus.write_biggen),
        Schema("argilla", "Argilla records", lambda r: isinstance(r.get("fields"), dict),
               annotation.read_argilla, annotation.write_argilla),
        Schema("label-studio", "Label Studio tasks", lambda r: isinstance(r.get("data"), dict),
               annotation.read_label_studio, annotation.write_label_studio),
        Schema("talk", "what is taught as it is: instruction and target", talk.fits_talk,
               talk.read_talk, talk.write_talk),
        Schema("dikast", "Dikast's own items", lambda r: True, dict, item_to),
    )
}  # fmt: skip


def get_schema(name: str) -> Schema:
    """The schema of that name; UserError, with the closest known name, if there is none."""
    if name not in SCHEMAS:
        near = near_miss(name, SCHEMAS)
        hint = f"did you mean {near!r}? " if near else ""
        raise UserError(f"there is no schema {name!r}: {hint}known: {', '.join(SCHEMAS)}")
    return SCHEMAS[name]


def guess_schema(row: Row) -> Schema:
    """The first schema that a row fits; Dikast's own if it has `id` or `rubric` and fits no other."""
    found = next(schema for schema in SCHEMAS.values() if schema.fits(row))
    if found.name == "dikast" and not {"response", "responses", "instruction"} & row.keys():
        told = f"no known schema has these columns ({', '.join(row)}): rename them as one has them, or say which it is"
        raise DataError(f"{told} with --from SCHEMA: {', '.join(SCHEMAS)}")
    return found
