"""Rows in the public schemas, with text written for these tests."""

from typing import Any

LEVELS = {f"orig_score{n}_description": f"It meets {n} of five points." for n in range(1, 6)}
PROMPT = (
    "###Task Description:\nSay how good it is.\n\n###The instruction to evaluate:\nName a river.\n\n"
    "###Response to evaluate:\nThe Oder.\n###Note: it is long.\n\n"
    "###Reference Answer (Score 5):\nThe Oder, in Poland.\n\n"
    "###Score Rubrics:\n[Is the answer right?]\n"
    + "".join(f"Score {n}: It meets {n} of five points.\n" for n in range(1, 6))
    + "\n###Feedback: "
)
FEEDBACK: dict[str, Any] = {
    "orig_criteria": "Is the answer right?", **LEVELS, "orig_instruction": "Name a river.",
    "orig_response": "The Oder.", "orig_reference_answer": "The Oder, in Poland.", "orig_feedback": "Short, but right.",
    "orig_score": "4", "instruction": PROMPT, "input": "", "output": "Short, but right. [RESULT] 4",
}  # fmt: skip
PREFERENCE: dict[str, Any] = {
    "orig_criteria": "[Is the answer right?]\nScore 1: No.\nScore 5: Yes.", "orig_instruction": "Name a river.",
    "orig_reference_answer": "The Oder.", "orig_response_A": "The Oder.", "orig_response_B": "Berlin.",
    "orig_score_A": "5", "orig_score_B": "1", "orig_feedback_A": "Right.", "orig_feedback_B": "A city.",
    "orig_preference": "A", "orig_feedback": "Both are short. A names a river.", "instruction": "Which is better?",
    "input": "", "output": "Both are short. A names a river. [RESULT] A",
}  # fmt: skip
PERCEPTION: dict[str, Any] = {
    "id": 7, "image": "../train2017/000000000009.jpg",
    "conversations": [
        {"from": "human", "value": "<image>\n" + PROMPT},
        {"from": "gpt", "value": "It is right. So the overall score is 4.\n[RESULT] 4"},
    ],
}  # fmt: skip
PERCEPTION_EVAL: dict[str, Any] = {
    "image": "../mmmu/9900.png", "instruction": PROMPT, "orig_instruction": "Name a river.",
    "original_response": "The Oder.", "orig_reference_answer": "The Oder, in Poland.",
    "orig_criteria": "Is the answer right?", **LEVELS,
}  # fmt: skip


def critic(reply: str, prompt: str, **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": "<image>\n" + prompt}, {"from": "gpt", "value": reply}]
    return {"id": "c-1", "source": "chat", "image": "images/1.jpg", "conversations": turns, **more}


POINT = (
    "Grade what a model says of the picture, out of 100.\n"
    "Question: [What is it?]\nThe LMM response: [A cat.]\nASSISTANT:\n"
)
RELATIVE = (
    "Score both answers from 1 to 10, on one line.\nQuestion: [What is it?]\nThe reference answer: [A grey cat.]\n"
    "The LMM response: [A cat.]\nASSISTANT:\n"
)
PAIR = (
    "Compare two answers fairly.\nQuestion: [What is it?]\nThe first response: [A cat.]\n"
    "The second response: [A dog.]\nASSISTANT:\n"
)
CRITIC = [
    (critic("It has ears.\nFinal Score: 85", POINT), {"score": 85}),
    (critic("The better response: [second]. It barks.", PAIR), {"preference": "b"}),
    (critic("Both see an animal; they are equally good.", PAIR), {"preference": "tie"}),
    (critic("7 5\nThe first names it.", PAIR), {"preference": "a", "scores": [7, 5]}),
    (critic("A sees more. [[B>>A]]", PAIR.replace("fairly", "with a label")), {"preference": "b", "label": "B>>A"}),
    (critic("No verdict at all here", PAIR), {}),
]
CRITIC_RELATIVE = critic("8 6\nThe answer leaves the colour out.", RELATIVE)
LLAVA: dict[str, Any] = {
    "id": "l-1", "image": ["a.png", "b.png"],
    "conversations": [
        {"from": "human", "value": "<image>\nAnd this: <image> what differs?"}, {"from": "gpt", "value": "The colour."},
        {"from": "human", "value": "Which is red?"}, {"from": "gpt", "value": "The first."},
    ],
}  # fmt: skip
TRL: dict[str, Any] = {"prompt": "Name a river.", "completion": "The Oder."}
TRL_IMAGES: dict[str, Any] = {
    "prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}],
    "completion": [{"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}], "images": ["cat.png"],
}  # fmt: skip
TRL_PREFERENCE: dict[str, Any] = {"prompt": "Name a river.", "chosen": "The Oder.", "rejected": "Berlin."}
ARGILLA: dict[str, Any] = {
    "id": "r1", "fields": {"instruction": "Name a river.", "response": "The Oder.", "extra": "x"},
    "metadata": {"group": "a"}, "suggestions": {"score": {"value": 3, "agent": "judge"}},
    "responses": {"score": [{"value": 4, "user_id": "u1", "status": "submitted"}]}, "vectors": {},
    "status": "completed",
}  # fmt: skip
LABEL_STUDIO: dict[str, Any] = {
    "id": 12, "data": {"instruction": "Name a river.", "response_a": "The Oder.", "response_b": "Berlin."},
    "annotations": [
        {"id": 1, "completed_by": 3, "was_cancelled": False, "result": [
            {"from_name": "side", "to_name": "response_a", "type": "pairwise", "value": {"selected": "left"}},
            {"from_name": "why", "to_name": "response_a", "type": "textarea", "value": {"text": ["B is a city."]}},
        ]},
        {"id": 2, "was_cancelled": True, "result": []},
    ],
    "predictions": [], "meta": {"batch": 3},
}  # fmt: skip
AUTOJ: dict[str, Any] = {"scenario": "chat", "label": 2, "prompt": "Hi", "response 1": "Hello.", "response 2": "Hey."}
TRL_KTO: dict[str, Any] = {"prompt": "Name a river.", "completion": "Berlin.", "label": False}
LLAVA_PREFERENCE: dict[str, Any] = {
    "id": "p-1", "image": "cat.png", "prompt": "<image>\nWhat is it?", "chosen": "A cat.", "rejected": "A dog.",
}  # fmt: skip
LLAMAFACTORY: dict[str, Any] = {
    "conversations": [
        {"from": "system", "value": "Be short."}, {"from": "human", "value": "<image>\nWhat is it?"},
        {"from": "gpt", "value": "A cat."}, {"from": "human", "value": "Sure?"},
    ],
    "chosen": {"from": "gpt", "value": "Yes."}, "rejected": {"from": "gpt", "value": "No."}, "images": ["cat.png"],
}  # fmt: skip
LLAMAFACTORY_KTO: dict[str, Any] = {
    "conversations": [{"from": "human", "value": "Name a river."}, {"from": "gpt", "value": "The Oder."}],
    "kto_tag": True,
}  # fmt: skip
SWIFT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "<image>\nWhat is it?"}, {"role": "assistant", "content": "A cat."}],
    "rejected_response": "A dog.", "images": ["cat.png"],
}  # fmt: skip
OPENRLHF: dict[str, Any] = {
    "prompt": [{"role": "user", "content": "Name a river."}],
    "chosen": [{"role": "assistant", "content": "The Oder."}],
    "rejected": [{"role": "assistant", "content": "Berlin."}], "margin": 0.5,
}  # fmt: skip
VERL: dict[str, Any] = {
    "data_source": "dikast", "prompt": [{"role": "user", "content": "<image>\nWhat is it?"}],
    "images": [{"image": "cat.png"}], "reward_model": {"style": "model", "ground_truth": ""},
    "extra_info": {
        "prompt": [{"role": "user", "content": "<image>\nWhat is it?"}], "chosen": "A cat.", "rejected": "A dog.",
        "images": ["cat.png"], "id": "v-1",
    },
}  # fmt: skip


# rows of published sets: made after the field lists of their cards and code, since no row could be had
def _rated(text: str, model: str, *ratings: str) -> dict[str, Any]:
    aspects = ("Helpfulness", "Ethical Considerations", "Visual Faithfulness")
    marks = {name: {"Rating": each, "Rationale": f"As {each} as it gets."}
             for name, each in zip(aspects, ratings, strict=True)}  # fmt: skip
    return {"annotations": marks, "model": model, "response": text}


VLFEEDBACK: dict[str, Any] = {
    "id": "svit-1", "prompt": "What is it?", "models": ["one", "two"], "img_path": "merged/1.jpg",
    "completions": [_rated("A cat.", "one", "5", "5", "4"), _rated("A dog.", "two", "2", "5", "N/A")],
}  # fmt: skip
RLHF_V: dict[str, Any] = {
    "ds_name": "RLHF-V", "image": {"path": "1.jpg", "bytes": None}, "idx": 7, "image_path": "images/1.jpg",
    "text": '{"question": "What is it?", "chosen": "A cat.", "rejected": "A dog."}', "origin_dataset": "LCS-558K",
    "origin_split": "e30=",
}  # fmt: skip
RLAIF_V: dict[str, Any] = {
    "ds_name": "RLAIF-V", "question": "What is it?", "chosen": "A cat.", "rejected": "A dog.", "idx": "3",
    "image_path": "images/1.jpg", "origin_dataset": "OK-VQA", "origin_split": "{}",
}  # fmt: skip
LLAVA_RLHF: dict[str, Any] = {
    "id": "000000009", "image": "000000009.jpg", "preference": 2,
    "conversations": [{"from": "human", "value": "What is it?\n<image>"}, {"from": "gpt", "value": "A dog."}],
    "output_1": {"from": "llava", "value": "A dog."}, "output_2": {"from": "llava", "value": "A cat."},
}  # fmt: skip
HHH: dict[str, Any] = {
    "input": "Is it right to lie?", "targets": {"choices": ["Always.", "Hardly ever."], "labels": [0, 1]},
}  # fmt: skip


def _spoken(*texts: str) -> list[dict[str, str]]:
    return [{"content": text, "role": ("user", "assistant")[i % 2]} for i, text in enumerate(texts)]


MT_BENCH: dict[str, Any] = {
    "question_id": 81, "model_a": "one", "model_b": "two", "winner": "model_b", "judge": "expert_0", "turn": 1,
    "conversation_a": _spoken("Name a river.", "Berlin.", "And a lake?", "Wien."),
    "conversation_b": _spoken("Name a river.", "The Oder.", "And a lake?", "The Neusiedler See."),
}  # fmt: skip
FLASK: dict[str, Any] = {"question_id": 3, "text": "Name a river.", "answer": "The Oder.", "metrics": ["Factuality"]}
FLASK_REVIEW: dict[str, Any] = {
    **FLASK, "target_txt": "Berlin.", "review": "It is a city. {'Factuality': 1}", "total_tokens_step4": 90,
    "score": {"factuality": 1, "conciseness": "N/A"},
}  # fmt: skip
ALL = [
    ("vlfeedback", VLFEEDBACK), ("rlhf-v", RLHF_V), ("rlhf-v", RLAIF_V), ("llava-rlhf", LLAVA_RLHF), ("hhh", HHH),
    ("mt-bench-human", MT_BENCH), ("mt-bench-human", {**MT_BENCH, "turn": 2, "winner": "tie"}), ("flask", FLASK),
    ("flask", FLASK_REVIEW),
    ("trl-kto", TRL_KTO), ("llava-preference", LLAVA_PREFERENCE), ("llamafactory", LLAMAFACTORY),
    ("llamafactory-kto", LLAMAFACTORY_KTO), ("swift", SWIFT), ("openrlhf", OPENRLHF), ("verl", VERL),
    ("feedback", FEEDBACK), ("preference", PREFERENCE), ("perception", PERCEPTION),
    ("perception-eval", PERCEPTION_EVAL),
    *(("critic", row) for row, _ in CRITIC), ("critic", CRITIC_RELATIVE), ("llava", LLAVA), ("trl", TRL),
    ("trl", TRL_IMAGES), ("trl-preference", TRL_PREFERENCE), ("argilla", ARGILLA), ("label-studio", LABEL_STUDIO),
    ("autoj", AUTOJ),
]  # fmt: skip


# ten rows of each published form, for what is taught: several scripts, lines, marks, code, scores and ties
TOLD = (
    ("Name a river.", "The Oder.", "Short, but right.", 4),
    ("What is 2 + 2?", "5", "Wrong: it is 4.", 1),
    ("Write a haiku.", "Leaves fall,\none by one,\nand stay.", "Three lines.\n\nThe count of syllables is off.", 3),
    ("Translate: Guten Tag.", "Good day.", "Literal and polite - nothing is missing.", 5),
    ("東京はどこですか。", "日本です。", "正しいですが、短すぎます。", 3),
    ("Sort [3, 1].", "```python\nsorted([3, 1])\n```", "`sorted` returns **[1, 3]**; it runs.", 5),
    ("Qu'est-ce qu'un café ?", "Une boisson.", "C'est juste, mais « boisson » est vague.", 2),
    ("Is it safe? 🙂", "Yes.", "It says yes 🙂 without a reason.", 2),
    ("Give a score from 1 to 5.", "Score: 5", 'It says "Score: 5", which is no answer [RESULT] aside.', 1),
    ("List two fruits.", "- apple\n- pear", "1. An apple is one.\n2. A pear is one.\nBoth hold.", 5),
)


def _prompt(question: str, response: str) -> str:
    return PROMPT.replace("Name a river.", question).replace("The Oder.\n###Note: it is long.", response)


FEEDBACK_ROWS = [
    {**FEEDBACK, "orig_instruction": question, "orig_response": response, "orig_feedback": said,
     "orig_score": str(score), "instruction": _prompt(question, response), "output": f"{said} [RESULT] {score}"}
    for question, response, said, score in TOLD
]  # fmt: skip
PREFERENCE_ROWS = [
    {**PREFERENCE, "orig_instruction": question, "orig_response_A": response, "orig_preference": "AB"[score % 2],
     "orig_feedback": said, "instruction": f"Which is better?\n{question}\nA: {response}\nB: I do not know.",
     "output": f"{said} [RESULT] {'AB'[score % 2]}"}
    for question, response, said, score in TOLD
]  # fmt: skip
PERCEPTION_ROWS = [
    {"id": n, "image": "a.png", "conversations": [
        {"from": "human", "value": "<image>\n" + _prompt(question, response)},
        {"from": "gpt", "value": f"{said} So the overall score is {score}.\n[RESULT] {score}"},
    ]}
    for n, (question, response, said, score) in enumerate(TOLD)
]  # fmt: skip
CRITIC_ROWS = [
    *(row for row, _ in CRITIC),
    critic("It is a cat, and nothing else is told.\nScore: 7", POINT.replace("100", "10")),
    critic("二つとも正しい。 Both are equally good.", PAIR),
    critic("[[A=B]]\nNeither names the colour.", PAIR.replace("fairly", "with a label")),
    critic("6.5 9\n\nThe second is closer:\n- it has a tail\n- it barks", PAIR),
]
LLAVA_ROWS = [
    LLAVA,
    *(
        {"id": f"l-{n}", **({"image": "a.png"} if n % 3 else {}), "conversations": [
            {"from": "human", "value": "<image>\n" * bool(n % 3) + question}, {"from": "gpt", "value": response},
            *([{"from": "human", "value": "Why?"}, {"from": "gpt", "value": said}] if n % 2 else []),
        ]}
        for n, (question, response, said, _) in enumerate(TOLD[1:], 2)
    ),
]  # fmt: skip
TRL_ROWS = [
    TRL, {**TRL_IMAGES, "images": ["a.png"]},
    *({"prompt": question, "completion": response} for question, response, _, _ in TOLD[1:4]),
    *(
        {"prompt": [{"role": "system", "content": "Be short."}, {"role": "user", "content": question}],
         "completion": [{"role": "assistant", "content": said}]}
        for question, _, said, _ in TOLD[4:7]
    ),
    *(
        {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": response}]}
        for question, response, _, _ in TOLD[7:9]
    ),
]  # fmt: skip
