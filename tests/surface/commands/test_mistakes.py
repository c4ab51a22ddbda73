"""Mistakes of a first hour, each with its exit code and its cure; none reaches a model or leaves a run folder."""

import json
from pathlib import Path

import pytest

from runs import dikast, dikast_here, lines

LONG = "x" * 300  # a name that no file system takes
FILES = {
    "qa.csv": "question,answer,human_score\nWhy?,Because.,3\nHow?,So.,4\n",
    "two.csv": "question,output,response\nq,a,b\n",
    "three.csv": "question,output,completion\nq,a,b\n",
    "odd.csv": "question,notes,model_says,page\nq,x,This is what it says at length.,1\n",
    "inside.jsonl": '{"prompt": "q", "completions": [{"response": "a"}, {"response": "b"}]}\n',
    "lists.jsonl": '{"prompt": "q", "outputs": ["a", "b"]}\n',
    "asked.csv": "title,spec,source\nCow,A brown cow with four legs.,web\n",
    "text.csv": "a,b,c\n1,2,3\n",
    "pairs.csv": "question,left_text,right_text\nq,The one on the left.,The one on the right.\n",
    "gold.csv": "question,answer,gold\nq,a,nine\nr,b,9\n",
    "thousand.csv": 'question,answer,gold\nq,a,"1,234"\n',
    "twice.csv": "id,question,answer\nx,q,a\nx,r,b\n",
    "same.csv": "question,answer,answer\nq,a,b\n",
    "noname.csv": "question,,answer\nq,a,b\n",
    "ragged.csv": "question,answer\nq,a,b\nr,c\n",
    "empty.csv": "",
    "header.csv": "question,answer\n",
    "open.csv": 'question,answer\nq,"a\n',
    "cut.jsonl": '{"question": "q", "answer": "a"}\n{"question": "r", "ans\n',
    "list.jsonl": '{"question": "q", "answer": "a"}\n[1, 2]\n',
    "number.jsonl": '{"question": "q", "answer": "a"}\n{"question": "r", "answer": 7}\n',
    "nan.jsonl": '{"question": "q", "answer": "a", "gold": NaN}\n',
    "slip.jsonl": '{"instructon": "q", "response": "a"}\n',
    "wrapped.json": '{"rows": [{"question": "q", "answer": "a"}], "data": [{"question": "q", "answer": "a"}]}',
    "page.json": '{"rows": [{"row_idx": 0, "row": {"prompt": "q", "replies": [{"text": "a"}, {"text": "b"}]}}]}',
    "array.json": '[{"prompt": "q", "replies": [{"text": "a"}, {"text": "b"}]}]',
    "comment.csv": "# exported, by me\nquestion,answer\nq,a\n",
    "title.csv": "My export\n\nquestion,answer\nq,a\n",
    "files.csv": "prompt,filename\nq,a.png\n",
    "choices.csv": "question,answer_a,answer_b,winner\nq,x,y,a\nr,z,w,b\n",
    "columns.json": '{"question": {"0": "q", "1": "r"}, "answer": {"0": "a", "1": "b"}}',
    "split.json": '{"columns": ["question", "answer"], "index": [0], "data": [["q", "a"]]}',
    "uneven.json": '{"question": ["q", "r"], "answer": ["a"]}',
    "argilla.jsonl": '{"id": "1", "fields": {"prompt": "q", "reply": "a"}, "responses": {"rating": [{"value": 3}]}}\n',
    "harness.jsonl": '{"doc_id": 0, "doc": {"q": "q"}, "target": "4", "arguments": [["Q", {}]], "resps": [["4"]], '
    '"filtered_resps": ["4"]}\n',
    "bench.jsonl": '{"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["a", "b"]}]}\n',
    "turns.jsonl": '{"question_id": 81, "category": "writing", "turns": ["Write.", "Shorter."]}\n',
    "gemini.jsonl": '{"key": "r", "response": {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}}\n',
    "claude.jsonl": '{"custom_id": "r", "result": {"type": "succeeded", "message": {"content": []}}}\n',
    "frame.pkl": "\x80\x04",
    "answr.csv": "question,answr,model_id\nq,a,gpt\n",
    "some.jsonl": '{"question": "q", "answer": "a"}\n{"question": "r", "answr": "b"}\n',
    "first.jsonl": '{"question": "q", "answr": "a"}\n{"question": "r", "answer": "b"}\n',
    "parts.jsonl": '{"question": "q", "answer": {"a": 1}}\n' * 9,
    "single.csv": "'question','answer'\n'q','a'\n'it's','b'\n",
    "notes.csv": "Question,Model Answer,Notes\nq,a,Good in parts\nr,b,So so\n",
    "rater.csv": "question,answer,Judge points (1-5),Rater\nq,a,3,Ann\nr,b,4,Bob\n",
    "page.csv": "<!DOCTYPE html><html><body>Sign in</body></html>",
    "book.xlsx": "PK\x03\x04[Content_Types].xml xl/workbook.xml",
    "model1.json": "{}",
    "criteria.yaml": "criteria: Is it polite?\n",
    "words.yaml": "Is it polite?\n",
    "scale.yaml": "criterion: Is it polite?\nscale: 5-1\n",
    "tabs.yaml": "criterion: Is it polite?\n\tscale: 1-5\n",
    "key.yaml": "criterion: Is it polite?\nscal: 1-5\n",
    "run.yaml": "judge: mock:constant\nrubrc: helpfulness\n",
    "notes.txt": "some text\n",
    "bare.csv": "Why?,Because it is so.,3\nHow?,By doing it.,4\n",
    "verdicts.csv": "question,judge_score\nq,3\n",
    "q_text.csv": "q_text,says\nWhat is it?,It is this.\n",
    "said.csv": "question,answer,gpt4_response\nWhere?,Paris,It is Paris\n",
    "labels.csv": "item,criterion,response_index,gold,human_1\nq,helpfulness,0,3,3\nr,helpfulness,0,4,4\n",
    "benches/first/mine/bench.json": "{}",
    "benches/second/mine/bench.json": "{}",
    "given.csv": "id,judge_score,mine\na,3,4\nb,4,4\n",
    "ok.jsonl": '{"question": "q", "answer": "a"}\n',
}
HUB = "https://huggingface.co"
J, R, O = "--judge mock:constant", "--rubric helpfulness", "--out run"  # noqa: E741 - as short as the commands are long
ASK = f"{J} {R} {O}"
MISTAKES = [
    # columns
    ("grade two.csv " + ASK, "'output' and 'response' could both be the response", "--map response=output"),
    ("grade three.csv " + ASK, "'output' and 'completion' could both be the response", "--map response=output"),
    ("grade odd.csv " + ASK, "the columns are question, notes, model_says, page", "--map response=model_says"),
    ("grade asked.csv " + ASK, "the columns are title, spec, source", "--map response=COLUMN, or add it if the file"),
    ("compare inside.jsonl " + ASK, "'completions' holds lists of objects", "[.completions[].response]' FILE"),
    ("compare lists.jsonl " + ASK, "'outputs' holds lists of texts", "--map responses=outputs"),
    ("compare asked.csv " + ASK, "as two responses", "response_1=OTHER, or add them if the file has nothing"),
    ("compare pairs.csv " + ASK, "two responses", "--map response_0=left_text --map response_1=right_text"),
    ("grade text.csv " + ASK, "no column holds text", "the columns are a, b, c"),
    ("compare qa.csv " + ASK, "'answer' holds one response of each item", "`dikast grade` scores those"),
    ("grade qa.csv --map answer=response " + ASK, "'answer' is not a field", "comes first: response=answer"),
    ("grade qa.csv --map respose=answer " + ASK, "'respose' is not a field", "did you mean 'response'?"),
    ("grade qa.csv --map response=anwser " + ASK, "there is no column 'anwser'", "did you mean 'answer'?"),
    ("grade qa.csv --map answer " + ASK, "--map 'answer'", "write FIELD=COLUMN"),
    ("grade slip.jsonl " + ASK, "unknown key 'instructon'", "did you mean 'instruction'?"),
    ("grade answr.csv " + ASK, "did you mean 'answer' by 'answr'?", "--map response=answr"),
    ("grade some.jsonl " + ASK, "some.jsonl:2: field 'answr': unknown key", "did you mean 'answer', as in the first"),
    ("grade first.jsonl " + ASK, "did you mean 'answer' by 'answr'?", "Then rename it"),
    ("grade parts.jsonl " + ASK, "parts.jsonl:1: field 'response'", "(also on lines 2, 3, 4, 5, 6, 7, 8, 9)"),
    ("grade bare.csv " + ASK, "no column is recognised as the response", "if this first row is data, write one"),
    # files
    ("grade qa.cvs " + ASK, "qa.cvs: cannot be opened", "did you mean 'qa.csv'?"),
    ("grade ok.json " + ASK, "ok.json: cannot be opened", "did you mean 'ok.jsonl'?"),
    ("grade nowhere/qa.csv " + ASK, "cannot be opened", "fix the path"),
    ("grade org/set " + ASK, "org/set: cannot be opened", "hf://datasets/org/set for a data set of the Hub"),
    ("grade notes.txt " + ASK, "the suffix '.txt' is not a known format", ".csv"),
    ("grade empty.csv " + ASK, "empty.csv: the file holds no records", "write one row for each item"),
    ("grade header.csv " + ASK, "header.csv: the file holds no records", "(in a CSV below the header)"),
    ("grade page.csv " + ASK, "a web page (HTML or XML)", "of a Google sheet `export?format=csv`"),
    ("grade book.xlsx " + ASK, "an Excel workbook", "save the sheet as CSV UTF-8"),
    ("grade twice.csv " + ASK, "the id 'x' is on line 2 already", "--map id="),
    ("grade same.csv " + ASK, "columns 2 and 3 are both called 'answer'", "rename one"),
    ("grade noname.csv " + ASK, "column 2 of the header has no name", "name it"),
    ("grade ragged.csv " + ASK, "ragged.csv:2: the row has 3 cells where the header has 2", "quote cells"),
    ("grade open.csv " + ASK, "open.csv:2: broken row", 'write " inside them as ""'),
    ("grade cut.jsonl " + ASK, "cut.jsonl:2: the JSON object does not end on its line", "write one object a line"),
    ("grade list.jsonl " + ASK, "list.jsonl:2: each line holds one JSON object", "named .json"),
    ("grade number.jsonl " + ASK, "number.jsonl:2: field 'response': column 'answer'", "write it as text"),
    ("grade wrapped.json " + ASK, "whose 'data' and 'rows' could be the records", "jq -c '.data[]' FILE > OTHER.jsonl"),
    (
        "compare page.json " + ASK,
        "'replies' holds lists of",
        "jq -c '.rows[].row | .responses = [.replies[].text]' FILE",
    ),
    ("compare array.json " + ASK, "'replies' holds lists of", "jq -c '.[] | .responses = [.replies[].text]' FILE"),
    ("grade comment.csv " + ASK, "line 1 is no header ('# exported, by me')", "(tail -n +2 comment.csv > OTHER.csv)"),
    ("grade title.csv " + ASK, "lines 1 to 2 are no header ('My export')", "(tail -n +3 title.csv > OTHER.csv)"),
    ("compare files.csv " + ASK, "as two responses; the columns are prompt, filename", '"response": {"type": "image"'),
    ("grade columns.json " + ASK, "columns.json:1: a table by its columns", "to_json(orient='records')"),
    ("grade split.json " + ASK, "split.json:1: a table by its columns", "to_json(orient='records')"),
    ("grade uneven.json " + ASK, "different lengths", "question 2, answer 1"),
    ("grade argilla.jsonl " + ASK, "argilla.jsonl:1: an Argilla record", "jq -c '{id} + .fields' FILE > OTHER.jsonl"),
    ("grade harness.jsonl " + ASK, "a sample of lm-evaluation-harness", "response: .filtered_resps[0]"),
    ("grade bench.jsonl " + ASK, "whose question is in another file (QUESTIONS)", "jq -c --slurpfile q QUESTIONS '"),
    ("grade turns.jsonl " + ASK, "which is in another file (ANSWERS)", "jq -c --slurpfile q FILE '"),
    (
        "grade gemini.jsonl " + ASK,
        "a reply of Gemini's batch API, whose request is in another file (REQUESTS)",
        "jq -c",
    ),
    ("grade claude.jsonl " + ASK, "a reply of Anthropic's batch API, whose request is in another", "jq -c --slurpfile"),
    ("grade frame.pkl " + ASK, "the suffix '.pkl' is not a known format", "dikast.grade(frame, ...)"),
    ("grade single.csv " + ASK, "single.csv:3: broken row", "in '...' and write ' inside them as ''"),
    ("grade nan.jsonl " + ASK, "nan.jsonl:1: NaN", "write null"),
    ("grade . " + ASK, "holds files of several kinds", "name one of them"),
    ("grade qa.csv qa.csv " + ASK, "qa.csv: given twice", "leave one out"),
    ("grade https://user:secret@example.com/a.csv " + ASK, "a name or password", "download the file"),
    ("grade ftp://example.com/a.csv " + ASK, "ftp:// is not read here", "download the file and give its path"),
    ("grade hf://models/ORG/NAME " + ASK, "hf://", "datasets"),
    (f"grade {HUB}/datasets/org/set " + ASK, "a page of the Hugging Face Hub", "write hf://datasets/org/set\n"),
    ("grade huggingface.co/datasets/org/set/ " + ASK, "a page of the", "write hf://datasets/org/set\n"),
    (f"grade {HUB}/datasets/org/set/blob/main/a/b.csv " + ASK, "a page", "write hf://datasets/org/set@main/a/b.csv\n"),
    (f"grade {HUB}/datasets/org/set/tree/main " + ASK, "a page of the", "write hf://datasets/org/set@main\n"),
    (
        f"grade {HUB}/datasets/org/set/viewer/default/test?row=3 " + ASK,
        "a page of the",
        "write 'hf://datasets/org/set?config=default&split=test'\n",
    ),
    ("grade q_text.csv " + ASK, "the columns are q_text, says", "--map instruction=q_text --map response=says"),
    ("compare said.csv " + ASK, "could each be the response", "--map response_0=answer --map response_1=gpt4_response"),
    # gold
    ("grade gold.csv " + ASK, "gold does not lie on its scale", "--equate"),
    (
        "grade choices.csv --map gold=winner " + ASK,
        "gold does not lie on its scale",
        "`dikast compare choices.csv ...`",
    ),
    ("grade thousand.csv " + ASK, "1,234", "--equate"),
    # judges
    (f"grade qa.csv --judge model1.json {R} {O}", "'model1.json': is a file", "replay:model1.json"),
    (f"grade qa.csv --judge openai/gpt-4o {R} {O}", "names no scheme", "did you mean 'openai:gpt-4o'?"),
    (f"grade qa.csv --judge gpt-4o {R} {O}", "names no scheme", "did you mean 'openai:gpt-4o'?"),
    (f"grade qa.csv --judge localhost:8000/v1#m {R} {O}", "'localhost'", "did you mean 'http://localhost:8000/v1#m'?"),
    (f"grade qa.csv --judge 127.0.0.1:80/v1#m {R} {O}", "no scheme", "did you mean 'http://127.0.0.1:80/v1#m'?"),
    (f"grade qa.csv --judge mok:constant {R} {O}", "mok", "did you mean 'mock"),
    (f"grade qa.csv --judge mock:constnt {R} {O}", "constnt", "constant"),
    (f"grade qa.csv --model mock:constant {R} {O}", "there is no option --model", "--judge (openai:MODEL"),
    (f"grade qa.csv --jugde mock:constant {R} {O}", "there is no option --jugde", "did you mean --judge?"),
    (f"grade qa.csv {R} {O}", "--judge is missing", "--judge (openai:MODEL, hf:ORG/NAME"),
    (f"grade {ASK}", "items is missing", "dikast grade FILE"),
    (f"grade qa.csv --judge {HUB}/Qwen/Qwen3-4B {R} {O}", "the page of a model", "write hf:Qwen/Qwen3-4B\n"),
    (f"grade qa.csv --judge hf:{HUB}/Qwen/Q/tree/v1 {R} {O}", "the page of a model", "write hf:Qwen/Q@v1\n"),
    (f"grade qa.csv --judge gpt4 {R} {O}", "names no scheme", "did you mean 'openai:gpt-4'?"),
    (f"grade qa.csv --judge claude {R} {O}", "names no scheme", "did you mean 'anthropic:MODEL'?"),
    (
        f"grade qa.csv --judge groq:llama-3.3-70b-versatile {R} {O}",
        "unknown scheme 'groq'",
        "'https://api.groq.com/openai/v1#llama-3.3-70b-versatile,key_env=GROQ_API_KEY'",
    ),
    (
        f"grade qa.csv --judge deepseek-chat {R} {O}",
        "names no scheme",
        "'https://api.deepseek.com/v1#deepseek-chat,key_env=DEEPSEEK_API_KEY'",
    ),
    (f"grade qa.csv --judge llama3:8b {R} {O}", "unknown scheme 'llama3'", "did you mean 'ollama:llama3:8b'?"),
    (
        f"grade qa.csv {J} --rubric right,short {O}",
        "several rubrics make a sheet",
        "criteria: [{name: right, criterion:",
    ),
    # rubrics
    (f"grade qa.csv {J} --rubric criteria.yaml {O}", "criteria.yaml:1", "did you mean 'criterion'"),
    (f"grade qa.csv {J} --rubric words.yaml {O}", "words.yaml:1", "such as criterion: Is it polite?"),
    (f"grade qa.csv {J} --rubric scale.yaml {O}", "runs backwards", "write 1-5"),
    (f"grade qa.csv {J} --rubric tabs.yaml {O}", "tabs.yaml:2", "indent with spaces"),
    (f"grade qa.csv {J} --rubric key.yaml {O}", "unknown key", "did you mean 'scale'?"),
    (f"grade qa.csv {J} --rubric helpfulnes {O}", "helpfulnes", "did you mean 'helpfulness'?"),
    (f"grade qa.csv {J} --rubric scal.yaml {O}", "there is no such rubric file", "did you mean 'scale.yaml'?"),
    (f"grade qa.csv {J} --rubric politeness {O}", "built in: correctness", '"Is the answer good in this respect: pol'),
    (f"grade qa.csv {J} --criteria polite {O}", "there is no option --criteria", "--rubric takes a criterion in words"),
    (f"grade qa.csv {J} {R} {O} --scale 5-1", "runs backwards", "write 1-5"),
    (f"grade qa.csv {J} {O}", "rubric", "--rubric"),
    # flags
    (f"grade qa.csv {J} {R}", "name a folder for the verdicts", "--out FOLDER"),
    (f"grade qa.csv {J} {R} --output run", "there is no option --output", "--out"),
    (f"grade qa.csv {J} {R} --out qa.csv", "is a file", "name a folder for the run"),
    ("grade qa.csv --file qa.csv " + ASK, "there is no option --file", "dikast grade FILE"),
    ("grade qa.csv --api-key x " + ASK, "there is no option --api-key", "OPENAI_API_KEY"),
    ("grade qa.csv --concurrency 8 " + ASK, "there is no option --concurrency", "--judge openai:MODEL,concurrency=8"),
    ("grade qa.csv --batch-size 8 " + ASK, "there is no option --batch-size", "batch_size=N of a local model"),
    ("grade qa.csv --gold human_score " + ASK, "there is no option --gold", "--map gold=COLUMN reads it"),
    ("grade qa.csv --question Q " + ASK, "there is no option --question", "--map instruction=COLUMN reads it"),
    (f"grade qa.csv --judge http://localhost:9/v1#m,temperature=0.5 {R} {O}", "'temperature'", "--temperature 0.5"),
    (f"--judge mock:constant grade qa.csv {R} {O}", "there is no option --judge", "options stand behind the verb"),
    ("grade qa.csv --system model " + ASK, "there is no option --system", "`dikast audit RUN --system COLUMN`"),
    ("grade qa.csv --resume " + ASK, "there is no option --resume", "running the same command again resumes"),
    ("grade qa.csv --samples 3 " + ASK, "several samples at temperature 0 are all the same", "--temperature"),
    ("grade qa.csv --samples 0 " + ASK, "--samples", "greater than or equal to 1"),
    ("grade qa.csv --budget 5 " + ASK, "--budget '5'", "(money=5 for an amount)"),
    ("grade qa.csv --budget money=1 " + ASK, "mock:constant runs on a machine of yours and costs nothing", "calls=N"),
    (
        "compare choices.csv --budget money=1 --judge scout " + f"{R} {O}",
        "scout runs on a machine of",
        "--price IN,OUT",
    ),
    ("corpus convert qa.csv out.jsonl", "--to is missing", "trl-preference, autoj"),
    (
        "corpus convert choices.csv out.jsonl --to trl",
        "no known schema has these columns",
        "argilla, label-studio, talk, dikast",
    ),
    ("grade qa.csv --by model " + ASK, "there is no option --by", "dikast audit RUN --by"),
    ("grade qa.csv --threshold 3 " + ASK, "there is no option --threshold", "--fail-under METRIC=VALUE"),
    ("report nowhere --fail-if pearson<1", "there is no option --fail-if", "--fail-under METRIC=VALUE"),
    ("grade qa.csv --price cheap " + ASK, "cheap", "IN,OUT"),
    ("grade qa.csv --max-failures lots " + ASK, "--max-failures 'lots'", "5%"),
    ("grade qa.csv --format absolut " + ASK, "absolut", "did you mean"),
    ("grade qa.csv --report page.pdf " + ASK, "page.pdf: unknown suffix", ".html"),
    ("grade qa.csv --split test " + ASK, "split", "Hub"),
    ("grade qa.csv --config run.yaml " + O, "run.yaml:2", "did you mean 'rubric'?"),
    ("compare pairs.csv --equal coin " + ASK, "--equal 'coin'", "tie"),
    ("grad qa.csv " + ASK, "No such command 'grad'", "Did you mean 'grade'?"),
    ("evaluate qa.csv " + ASK, "there is no command evaluate", "that is dikast grade"),
    ("convert qa.csv out.jsonl", "there is no command convert", "that is dikast corpus convert"),
    ("qa.csv", "there is no command qa.csv", "dikast grade qa.csv (or compare, report)"),
    ("rubric shwo helpfulness", "No such command", "Did you mean"),
    ("bench lst", "No such command", "Did you mean"),
    # verdicts
    ("report nowhere", "nowhere: there is no such run folder", "dikast grade --out nowhere"),
    ("report nowhere.csv", "nowhere.csv: cannot be opened", "fix the path"),
    ("report note.csv", "note.csv: cannot be opened", "did you mean 'notes.csv'?"),
    ("report notes.csv", "no column holds verdicts", "dikast grade notes.csv"),
    ("audit qa.csv", "no column is recognised as the judge's verdicts", "--score human_score, if it is not people's"),
    ("audit rater.csv", "no column is recognised as the judge's verdicts", "--score 'Judge points (1-5)'"),
    ("audit labels.csv", "labels that people gave to `dikast annotate`", "dikast audit RUN --gold-file labels.csv"),
    ("report labels.csv", "without a judge's verdicts", "dikast audit RUN --gold-file labels.csv"),
    ("report benches", "benches: not a run folder", "folders of benches inside it: first, second"),
    ("audit qa.csv --score scor", "there is no column 'scor'", "question, answer, human_score"),
    ("audit given.csv --gold mien", "there is no column 'mien'", "did you mean 'mine'?"),
    ("audit given.csv --score judge_score --gold mien@given.csv", "no column 'mien'", "did you mean 'mine'?"),
    ("export nowhere out.csv", "nowhere: there is no such folder", "name one that --out of a run has made"),
    # more of the same kinds, in other verbs
    (f"grade qa.csv --judge openai: {R} {O}", "does not name a target", "write openai:MODEL"),
    (f"grade qa.csv --judge http://localhost:9/v1 {R} {O}", "which model", "write http://localhost:9/v1#MODEL"),
    (f"grade qa.csv --judge http://localhost:9/v1#m,concurency=3 {R} {O}", "'concurency'", "mean 'concurrency'?"),
    (f"grade qa.csv --judge http://localhost:9/v1#m,timeout=soon {R} {O}", "'timeout'", "expected a number"),
    (f"grade qa.csv --judge http://u:pw@localhost:9/v1#m {R} {O}", "name or password", "and key_env=JUDGE_KEY"),
    (f"grade qa.csv --judge http://localhost:9/v1#m,key_env=NOT_SET {R} {O}", "NOT_SET is not set", "export NOT_SET="),
    (f"grade qa.csv --judge replay:nowhere {R} {O}", "replay:nowhere", "name a run folder or a file of replies"),
    (f"grade qa.csv -j mock:constant {R} {O}", "there is no option -j", "dikast grade --help"),
    ("grade qa.csv --temperature hot " + ASK, "--temperature", "should be a valid number"),
    ("grade qa.csv --temperature -1 " + ASK, "--temperature", "greater than or equal to 0"),
    ("grade qa.csv --limit 0 " + ASK, "--limit", "greater than or equal to 1"),
    ("grade qa.csv --read sometimes " + ASK, "'sometimes'", "expected 'auto', 'only' or 'never'"),
    ("grade qa.csv --runner dask " + ASK, "--runner 'dask'", "write ray (this machine"),
    ("grade qa.csv --without pictures " + ASK, "'pictures'", "rubric, reference or media"),
    ("grade qa.csv --format pairwise " + ASK, "is pairwise", "kind absolute is needed"),
    ("compare pairs.csv --format absolute " + ASK, "is absolute", "kind pairwise is needed"),
    ("rank qa.csv " + ASK, "'answer' holds one response of each item", "`dikast grade` scores those"),
    ("report qa.cvs", "qa.cvs: cannot be opened", "did you mean 'qa.csv'?"),
    ("report qa.csv --out page.docx", "page.docx: unknown suffix", ".html (a page)"),
    ("audit qa.cvs --score answer", "there is no such file or folder", "did you mean 'qa.csv'?"),
    ("audit nowhere", "there is no such file or folder", "fix the path"),
    ("audit qa.csv --score answer --gold human_score", "expected a number here", "say --pairwise if these are choices"),
    ("view verdicts.csv", "verdicts.csv: is a file", "`dikast report verdicts.csv` a table of verdicts"),
    ("report", "runs is missing", "dikast report runs/mine"),
    ("audit", "file is missing", "dikast audit"),
    ("export", "run is missing", "dikast export runs/first verdicts.csv"),
    ("rubric new", "file is missing", "dikast rubric new"),
    ("view nowhere", "there is no such folder", "name the one that your runs are in"),
    ("rubric show helpfulnes", "there is no such rubric file", "did you mean 'helpfulness'?"),
    ("rubric lint qa.csv", "a rubric is a mapping", "such as criterion:"),
    ("format show absolut", "no built-in format of that name", "did you mean 'absolute'?"),
    (
        f"probe --judge mock:constant --items i.jsonl --split fresh {R} --out p",
        "--domain and --split",
        "leave out --items",
    ),
    (
        f"probe --judge mock:constant --items i.jsonl --domain text {R} --out p",
        "--domain and --split",
        "leave out --items",
    ),
    (f"probe --judge mok:constant {R} --out p", "unknown scheme 'mok'", "did you mean 'mock'?"),
    ("replay nowhere --out r", "not a run that can be replayed", "run the command that made it again"),
    ("annotate nowhere --out a", "cannot be opened", "fix the path"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text, "utf-8")
    return made


@pytest.mark.parametrize(("command", "told", "cure"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_says_what_to_write(command: str, told: str, cure: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = dikast_here(*command.split(), cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert cure in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before, "a refused run leaves nothing behind"
    told_lines = done.stderr.splitlines()
    assert len(set(told_lines)) == len(told_lines), "told once"


def test_there_are_enough_and_each_has_a_cure() -> None:
    assert len(MISTAKES) >= 120  # about 80 were tried when this was planned, and 40 more
    assert all(told and cure for _, told, cure in MISTAKES)


def test_dikast_alone_says_what_to_do_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done = dikast()
    assert done.stdout.startswith("First steps:\n  dikast grade answers.csv --judge openai:MODEL --rubric")
    assert "dikast report old.csv --out page.html" in done.stdout
    monkeypatch.setenv("COLUMNS", "80")  # at which nothing may be cut
    forms = ("openai:MODEL", "http://HOST:PORT/v1#MODEL", "hf:ORG/NAME", "replay:FILE")
    for verb in ("grade", "compare", "rank"):
        helped = dikast_here(verb, "--help").stdout
        assert "…" not in helped
        assert all(form in helped for form in forms), verb


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_cannot_show_a_character_gets_the_help(encoding: str) -> None:
    done = dikast("grade", "--help", COLUMNS="80", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--judge" in done.stdout


def test_no_color_is_no_bold_either() -> None:
    done = dikast("grade", "--help", NO_COLOR="1", FORCE_COLOR="1", TERM="xterm-256color")
    assert "--judge" in done.stdout
    assert "\x1b" not in done.stdout


def test_decimal_commas_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text("question;answer;human_score\nq;a;3,5\nr;b;4,0\n", "utf-8")
    done = dikast_here("grade", tmp_path / "qa.csv", "--judge", "mock:oracle,r=1", "--rubric", "helpfulness",
                       "--scale", "1-5/0.5", "--out", tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [each["gold"] for each in lines(tmp_path / "run/gold.jsonl")] == [3.5, 4.0]
    (tmp_path / "old.csv").write_text("question;answer;judge_score;human_score\nq;a;3,5;4,0\nr;b;2,0;2,5\n", "utf-8")
    for verb in (
        ("audit", tmp_path / "old.csv", "--json"),
        ("report", tmp_path / "old.csv", "-o", tmp_path / "p.json"),
    ):
        done = dikast_here(*verb)
        assert done.returncode == 0, done.stderr
    told = json.loads(dikast_here("audit", tmp_path / "old.csv", "--scale", "1-5/0.5", "--json").stdout)["tables"][
        "agreement"
    ]["rows"]
    assert next(row for row in told if row["statistic"] == "mae")["value"]["value"] == 0.5


def test_numbers_that_look_like_gold_of_pairs_are_told_with_what_they_would_mean(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("input,output_1,output_2,label\nq,x,y,1\nr,z,w,2\n", "utf-8")
    told = dikast_here("compare", "pairs.csv", *ASK.split(), cwd=tmp_path).stdout
    assert "--map gold=label names it as gold, in which 0 is the first response and 1 the second" in told


def test_the_cure_for_a_column_like_gold_works_without_ids(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text("question,answer,rater_1\nq,a,3\nr,b,4\n", "utf-8")
    grade = f"grade {tmp_path / 'qa.csv'} {J} {R} --out {tmp_path / 'run'}".split()
    told = dikast_here(*grade).stdout
    assert "'rater_1' looks like gold, kept as metadata: --map gold=rater_1 names it as gold" in told
    done = dikast_here(*grade, "--map", "gold=rater_1")
    assert "verdicts    2 (0 asked now)" in done.stdout
    assert [each["gold"] for each in lines(tmp_path / "run/gold.jsonl")] == [3, 4]
    run = tmp_path / "run"
    refused = dikast_here("audit", run, "--gold-file", tmp_path / "qa.csv", "--gold", "rater_1")
    assert "of items without an id, `dikast export RUN FILE.csv` writes a table that has one" in refused.stderr
    assert dikast_here("export", run, tmp_path / "people.csv").returncode == 0
    near = dikast_here("audit", run, "--gold-file", tmp_path / "people.csv", "--gold", "glod")
    assert "did you mean 'gold'?" in near.stderr
    done = dikast_here("audit", run, "--gold-file", tmp_path / "people.csv", "--gold", "gold")
    assert done.returncode == 0, done.stderr


def test_grades_of_pairs_with_a_winner_say_that_compare_measures_agreement(tmp_path: Path) -> None:
    (tmp_path / "my pairs.csv").write_text(FILES["choices.csv"], "utf-8")
    done = dikast_here("grade", "my pairs.csv", *f"{J} {R} {O}".split(), cwd=tmp_path)
    told = done.stdout.partition("'winner' says which response is better")[2].partition("\n")[0]
    assert "metadata only here: `dikast compare 'my pairs.csv' ...`" in told
    assert "--scale" not in told
    done = dikast_here("compare", "my pairs.csv", *f"{J} {R} --out pairs".split(), cwd=tmp_path)
    assert "accuracy with gold is" in done.stdout


def test_a_sheet_as_the_message_spells_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text(FILES["qa.csv"], "utf-8")
    ask = ("grade", tmp_path / "qa.csv", *J.split(), "--out", tmp_path / "run", "--rubric")
    told = dikast_here(*ask, "right,short").stderr
    sheet = told.partition("such as ")[2].partition(", and give")[0]
    (tmp_path / "sheet.yaml").write_text(sheet, "utf-8")
    done = dikast_here(*ask, tmp_path / "sheet.yaml")
    assert done.returncode == 0, done.stderr
    assert "right: mean" in done.stdout
    assert "short: mean" in done.stdout


def test_what_was_recognised_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text(FILES["qa.csv"], "utf-8")
    done = dikast(*f"grade {tmp_path / 'qa.csv'} --judge mock:oracle {R} --out {tmp_path / 'run'}".split())
    assert done.returncode == 0
    assert (done.stdout + done.stderr).count("human_score -> gold") == 1


@pytest.mark.parametrize(
    "line",
    [
        ("grade", f"{LONG}.csv", "--judge", "mock:random"), ("view", LONG), ("report", LONG), ("audit", LONG),
        ("annotate", f"{LONG}.csv"),
        ("prefs", LONG, "--format", "trl", "--out", "pairs.jsonl"), ("doctor", LONG), ("lab", "report", LONG),
        ("format", "learn", f"{LONG}.jsonl"), ("lab", "run", "long.yaml"),
    ],
    ids=lambda line: " ".join(line).replace(LONG, "long"),
)  # fmt: skip
def test_a_name_that_is_too_long_for_a_file_is_told(line: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text(FILES["qa.csv"])
    arms = "{one: {}, two: {judge: 'mock:random'}}, effects: {gain: {arm: one, against: two, figure: mean, held: own}}"
    (tmp_path / "long.yaml").write_text(
        f"{{claim: c, source: s, seeds: [1], arms: {arms}, base: {{judge: 'mock:oracle', held: {{own: {{items:"
        f" {LONG}.jsonl}}}}}}, holds: {{gain: {{above: 0}}}}, fails: {{gain: {{below: 0}}}}}}"
    )
    out = ("--out", "out") if line[0] in ("grade", "annotate", "lab") and "report" not in line else ()
    done = dikast_here(*line, *out, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "too long" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
