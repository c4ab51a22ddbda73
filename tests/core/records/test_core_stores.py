"""Files in stores: Amazon's S3 by moto's server, Google's by an emulator, both in processes of their own.

In an environment of its own (`make stores`), since both bring a web framework and their cloud's libraries.
"""

import csv
import io
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import PIL.Image
import pytest

from ports import free_port

pytestmark = pytest.mark.slow
ROWS = [("question", "answer", "human_score"), *((f"Why {i}?", f"Because {i}.", i % 5 + 1) for i in range(300))]


def _png(red: int) -> bytes:
    raw = io.BytesIO()
    PIL.Image.new("RGB", (32, 32), (red, 0, 0)).save(raw, "PNG")
    return raw.getvalue()


def _shown(image: str) -> dict[str, object]:
    return {"instruction": "What is it?", "image": image, "response": "Red.", "gold": 3}


PICTURES = {  # of a bucket: pictures, and items that name them beside themselves
    **{f"june/red/{i}.png": _png(10 * i) for i in range(5)},
    "june/shown.jsonl": b"".join(json.dumps(_shown(f"red/{i}.png")).encode() + b"\n" for i in range(5)),
    "june/some.jsonl": b"".join(json.dumps(_shown(f"red/{i}.png")).encode() + b"\n" for i in (1, 9)),
}


def table() -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(ROWS)
    return text.getvalue().encode()


def serving(command: list[str], url: str, folder: Path) -> Iterator[str]:
    """The url once something answers there; the process ends with the test."""
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url, timeout=1).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.1)
        else:
            raise AssertionError((folder / "server.log").read_text())
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables under which `s3://answers` is a bucket of moto's server that needs a key."""
    pytest.importorskip("moto", reason="make stores")
    botocore = pytest.importorskip("botocore.session", reason="make stores")
    port = free_port()
    for url in serving(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        f"http://127.0.0.1:{port}",
        tmp_path,
    ):
        keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "SESAME4711", "AWS_REGION": "us-east-1"}
        client = botocore.get_session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket="answers")
        client.put_object(Bucket="answers", Key="may/answers.csv", Body=table())
        client.put_object(Bucket="answers", Key="page.csv", Body=b"<!DOCTYPE html><title>Sign in</title>")
        for name, body in PICTURES.items():
            client.put_object(Bucket="answers", Key=name, Body=body)
        yield {**keys, "AWS_ENDPOINT_URL": url}


@pytest.fixture
def gs(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables under which `gs://answers` is a bucket of the emulator."""
    pytest.importorskip("gcp_storage_emulator", reason="make stores")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["gcp-storage-emulator", "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    program = str(Path(sys.executable).with_name(command[0]))
    for _ in serving([program, *command[1:], "--default-bucket=answers"], url, tmp_path):
        page = {"page.csv": b"<!DOCTYPE html><title>Sign in</title>"}
        for name, body in ({"may/answers.csv": table()} | page | PICTURES).items():
            quoted = name.replace("/", "%2F")
            put = f"{url}/upload/storage/v1/b/answers/o?uploadType=media&name={quoted}"
            request = urllib.request.Request(put, data=body, headers={"Content-Type": "text/csv"}, method="POST")
            urllib.request.urlopen(request, timeout=10).close()
        # gcsfs asks by gRPC what kind of bucket it is, which the emulator does not speak, and waits for minutes
        no_grpc = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
        yield {"STORAGE_EMULATOR_HOST": url, "FSSPEC_GCS_TOKEN": "anon"} | no_grpc


def grading(
    source: str, variables: dict[str, str], folder: Path, *options: str, verb: str = "grade"
) -> "subprocess.CompletedProcess[str]":
    mine = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "GOOGLE_", "FSSPEC_"))}
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-m", "dikast", verb, source, "--judge", "mock:oracle", "--rubric", "helpfulness"]
    return subprocess.run(
        [*command, "--out", str(folder / "run"), *options], env=mine | home | variables, capture_output=True, text=True
    )


@pytest.mark.parametrize("store", ["s3", "gs"])
def test_a_table_in_a_store_is_graded(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    variables = request.getfixturevalue(store)
    done = grading(f"{store}://answers/may/answers.csv", variables, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 asked now" in done.stdout
    assert "question -> instruction, answer -> response" in done.stderr
    again = grading(f"{store}://answers/may/answers.csv", variables, tmp_path)
    assert "0 asked now" in again.stdout, again.stdout + again.stderr


@pytest.mark.parametrize("store", ["s3", "gs"])
@pytest.mark.parametrize(
    ("name", "told"),
    [("answers/june/answers.csv", "cannot be fetched (FileNotFoundError"), ("answers/page.csv", "a web page")],
)
def test_what_a_store_does_not_have_is_told_before_a_question(
    store: str, name: str, told: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    done = grading(f"{store}://{name}", request.getfixturevalue(store), tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("store", ["s3", "gs"])
def test_pictures_lie_beside_items_in_a_store(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    variables = request.getfixturevalue(store)
    done = grading(f"{store}://answers/june/shown.jsonl", variables, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 asked now" in done.stdout
    again = grading(f"{store}://answers/june/shown.jsonl", variables, tmp_path)
    assert "0 asked now" in again.stdout, again.stdout + again.stderr
    local = tmp_path / "named.jsonl"  # a file here names the pictures by their addresses
    local.write_text("".join(json.dumps(_shown(f"{store}://answers/june/red/{i}.png")) + "\n" for i in range(5)))
    done = grading(str(local), variables, tmp_path / "local")
    assert (done.returncode, "5 asked now" in done.stdout) == (0, True), done.stdout + done.stderr
    keys = [{json.loads(line)["key"] for line in (at / "run" / "verdicts.jsonl").read_text().splitlines()}
            for at in (tmp_path, tmp_path / "local")]  # fmt: skip
    assert keys[0] == keys[1]


def test_pictures_in_a_store_are_saved_beside_preferences(s3: dict[str, str], tmp_path: Path) -> None:
    pair = {"instruction": "What is it?", "image": "s3://answers/june/red/3.png", "gold": [5, 1]}
    (tmp_path / "pairs.jsonl").write_text(json.dumps({**pair, "responses": ["Red.", "Blue."]}) + "\n")
    done = grading(str(tmp_path / "pairs.jsonl"), s3, tmp_path, verb="compare")
    assert done.returncode == 0, done.stdout + done.stderr
    command = [sys.executable, "-m", "dikast", "prefs", str(tmp_path / "run"), "--format", "trl"]
    written = subprocess.run(
        [*command, "--out", str(tmp_path / "out.jsonl")], env=os.environ | s3, capture_output=True, text=True
    )
    assert written.returncode == 0, written.stderr
    (image,) = json.loads((tmp_path / "out.jsonl").read_text())["images"]
    assert Path(image).read_bytes() == PICTURES["june/red/3.png"]


def test_pictures_in_a_store_that_cannot_be_had(s3: dict[str, str], tmp_path: Path) -> None:
    done = grading("s3://answers/june/some.jsonl", s3, tmp_path / "some")
    assert (done.returncode, "s3://answers/june/red/9.png" in done.stdout + done.stderr) == (3, True), done.stderr
    done = grading("s3://answers/june/shown.jsonl", s3, tmp_path / "root", "--media-root", str(tmp_path))
    assert (done.returncode, "outside the media root" in done.stderr) == (2, True), done.stdout + done.stderr
    chained = tmp_path / "chained.jsonl"
    chained.write_text(json.dumps(_shown("s3://answers::file:///etc/hostname")) + "\n")
    done = grading(str(chained), s3, tmp_path / "chained")
    assert (done.returncode, "chained addresses" in done.stderr) == (3, True), done.stdout + done.stderr


def test_a_store_that_wants_a_key_says_so(s3: dict[str, str], tmp_path: Path) -> None:
    done = grading("s3://answers/may/answers.csv", {"AWS_ENDPOINT_URL": s3["AWS_ENDPOINT_URL"]}, tmp_path)
    assert done.returncode == 2
    assert "check the address and the login" in done.stderr
    assert "Traceback" not in done.stderr
