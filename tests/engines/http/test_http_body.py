import base64
import io
import multiprocessing
import struct
from pathlib import Path
from typing import Any

import orjson
import PIL.Image
import pytest

from dikast.core.errors import EngineError
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Readout, Request, Sampling
from dikast.engines.http.body import Bodies
from dikast.engines.http.images import Encoded
from dikast.engines.http.sanitise import ZERO_WIDTH_SPACE, sanitise
from dikast.engines.spec import open_engine


def made(request: Request, form: Any = "plain", **settings: Any) -> dict[str, Any]:
    bodies = Bodies("m", settings.pop("top", 20), settings.pop("extra", {}))
    bodies.refused = frozenset(settings.pop("refused", ()))
    value: dict[str, Any] = orjson.loads(b"".join(bodies.make(request, form)))
    return value


def user(*parts: Any, **fields: Any) -> Request:
    return Request("k", (Message("user", parts),), **fields)


def png(path: Path, size: tuple[int, int] = (40, 30), mode: str = "RGB", **save: Any) -> Path:
    PIL.Image.new(mode, size, 200 if mode in ("L", "P") else None).save(path, **save)
    return path


@pytest.mark.parametrize(
    "spelling",
    [
        "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|start_header_id|>", "<|image_pad|>", "<|endoftext|>", "<s>",
        "</s>", "<image>", "<video>", "<bos>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "<<SYS>>",
        "<</SYS>>", "[IMG]", "<think>", "</think>", "<tool_call>", "<｜Assistant｜>", "<image_soft_token>", "[gMASK]",
        "<extra_id_3>", "<unused7>", "<|channel|>",
    ],
)  # fmt: skip
def test_control_tokens_in_user_text_are_broken_up(spelling: str) -> None:
    sent = sanitise([Span("Rate this: ", True), Span(f"a{spelling}b")])
    assert spelling not in sent
    assert sent.replace(ZERO_WIDTH_SPACE, "") == f"Rate this: a{spelling}b"
    assert sanitise([Span(f"a{spelling}b", True)]) == f"a{spelling}b", "a template may write it"


def test_a_spelling_that_a_user_completes_is_broken_up_too() -> None:
    assert sanitise([Span("x <", True), Span("|im_end|>")]) == f"x <{ZERO_WIDTH_SPACE}|im_end|>"


@pytest.mark.parametrize(
    "text",
    ["if a < b and c > d: x[0] = y", "<p>HTML</p> <img src='x'>", "a <- b | c -> d", "[1] [INSTALL] <T>", "<||>"],
)
def test_other_text_goes_out_byte_for_byte(text: str) -> None:
    assert sanitise([Span(text)]) == text


def test_images_and_frames_are_data_urls_in_their_place(tmp_path: Path) -> None:
    first, second = png(tmp_path / "a.png"), png(tmp_path / "b.png", (50, 50))
    body = made(user(Span("one", True), Image(str(first)), Span("two"), Video((Image(str(second)), Image(str(first))))))
    kinds = [part["type"] for part in body["messages"][0]["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "image_url"]
    url = body["messages"][0]["content"][1]["image_url"]["url"]
    head, _, data = url.partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data) == first.read_bytes()


def test_an_image_is_encoded_once_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = png(tmp_path / "a.png")
    encoded: list[bytes] = []
    plain = base64.b64encode

    def counted(raw: bytes) -> bytes:
        encoded.append(raw)
        return plain(raw)

    monkeypatch.setattr(base64, "b64encode", counted)
    images = Encoded()
    shared = [images.base64(Image(str(path)))[1] for _ in range(5)]
    assert len(encoded) == 1
    assert all(each is shared[0] for each in shared)


def test_what_was_used_longest_ago_is_forgotten(tmp_path: Path) -> None:
    paths = [png(tmp_path / f"{i}.png", (30 + i, 30)) for i in range(3)]
    images = Encoded(most=1)
    first = images.base64(Image(str(paths[0])))
    images.base64(Image(str(paths[1])))
    assert images.base64(Image(str(paths[0]))) is not first


def test_pictures_that_decoders_see_differently_are_sent_as_what_a_judge_sees(tmp_path: Path) -> None:
    turned = tmp_path / "turned.jpg"
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    PIL.Image.new("RGB", (60, 30), "red").save(turned, exif=exif)
    clear = tmp_path / "clear.png"
    PIL.Image.new("RGBA", (40, 40), (255, 0, 0, 0)).save(clear)
    seen = []
    for path in (turned, clear):
        url = Encoded().url(Image(str(path))).decode()
        assert url.startswith("data:image/png;base64,")
        seen.append(PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))
    assert seen[0].size == (30, 60)
    assert seen[1].getpixel((5, 5)) == (255, 255, 255)


def test_a_missing_picture_and_empty_requests_are_errors_of_their_request() -> None:
    with pytest.raises(EngineError, match="does not exist") as missing:
        made(user(Image("no-such.png")))
    with pytest.raises(EngineError, match="no messages") as empty:
        made(Request("k", ()))
    assert [each.value.kind for each in (missing, empty)] == ["bad_media", "bad_request"]


@pytest.mark.parametrize(
    "spec", ["http://127.0.0.1:9/v1#m", "anthropic:m", "gemini:m", "decision:http://127.0.0.1:9/decisions#m"]
)
def test_text_that_json_cannot_hold_is_an_error_of_its_request(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    with open_engine(spec) as engine:
        requests = [user(Span("\ud800"), choices=(" 1", " 2")), Request("empty", (), choices=(" 1", " 2"))]
        told = {done.key: done.error for done in engine.stream(requests)}
    assert {key: str(error).split(":")[0] for key, error in told.items()} == {
        requests[0].key: "the text cannot be sent as JSON",
        "empty": "the request has no messages",
    }
    assert {error.kind for error in told.values() if error} == {"bad_request"}


def test_a_readout_asks_for_alternatives_and_a_schema_for_itself() -> None:
    schema = {"type": "object", "required": ["verdict"]}
    readout = Readout((" 1",), "V:")
    body = made(user(Span("a"), readout=readout), top=5)
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 5, 1024)
    kept = made(user(Span("a"), schema=schema))
    assert kept["response_format"]["json_schema"]["schema"] == schema
    chosen = made(user(Span("a"), readout=readout, choices=(" 1", " 2")))
    assert chosen["structured_outputs"] == {"choice": [" 1", " 2"]}
    assert "logprobs" not in chosen, "what a server tells under a constraint is no read-out"
    plain = made(user(Span("a")))
    assert set(plain) == {"model", "max_tokens", "temperature", "messages"}


def test_continuation_puts_the_marker_behind_what_was_begun() -> None:
    only = Readout((" 1",), "V:", generate=False)
    for prefill, last in (("", "V:"), ("Fine.\nV:", "Fine.\nV:"), ("Fine. ", "Fine. V:")):
        body = made(user(Span("a"), prefill=prefill, readout=only), "continue")
        assert body["messages"][-1] == {"role": "assistant", "content": last}
        assert (body["add_generation_prompt"], body["continue_final_message"]) == (False, True)
        assert body["max_tokens"] == 8
    assert made(user(Span("a"), readout=only), "plain")["messages"][-1]["role"] == "user"


def test_what_the_server_refused_is_left_out() -> None:
    request = user(Span("a"), readout=Readout((" 1",), "V:"), sampling=Sampling(temperature=1.0))
    body = made(request, refused=("logprobs", "seed", "max_tokens"))
    assert not {"logprobs", "top_logprobs", "seed", "max_tokens"} & set(body)
    assert body["max_completion_tokens"] == 1024


def test_proof_of_going_on_is_asked_for_only_until_it_is_there() -> None:
    """With `echo` a vLLM server works out log-probabilities of the whole prompt."""
    request = user(Span("a"), readout=Readout((" 1",), "V:", generate=False))
    for known, proof in ((None, True), (True, False)):
        fields = Bodies("m", 20, {}, continues=lambda known=known: known).fields(request, "continue")  # type: ignore[misc]
        assert fields["continue_final_message"] is True
        assert fields.get("echo", False) is proof


@pytest.mark.parametrize("name", ["a.gif", "a.tiff"])
def test_a_picture_whose_later_frames_are_damaged_is_sent_as_its_first(name: str, tmp_path: Path) -> None:
    """Every byte after the first third in turn: what the decoder raises is of many kinds."""
    path = tmp_path / name
    frames = [PIL.Image.new("RGB", (40, 40), (i * 60, 0, 0)) for i in range(3)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    raw, sent, places = path.read_bytes(), 0, range(path.stat().st_size // 3, path.stat().st_size)
    for place in places[:: max(1, len(places) // 300)]:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0xFF]) + raw[place + 1 :])
        try:
            sent += Encoded().url(Image(str(path))).startswith(b"data:image/png;")
        except EngineError:  # the first frame was hit
            continue
    assert sent


def test_frames_of_a_picture_are_not_counted(tmp_path: Path) -> None:
    """200,000 directories of a TIFF that share 64 x 64 pixels: Pillow looks each up in the list of those before it."""
    side, many, fields = 64, 200_000, 9
    first, size = 8 + side * side, 2 + 12 * fields + 4
    directory = struct.pack("<H", fields) + b"".join(
        struct.pack("<HHII", tag, kind, 1, value)
        for tag, kind, value in (
            (256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 4, side), (279, 4, side * side),
        )
    )  # fmt: skip
    following = (struct.pack("<I", first + (k + 1) * size if k + 1 < many else 0) for k in range(many))
    path = tmp_path / "a.tiff"
    begin = b"II*\0" + struct.pack("<I", first) + bytes(side * side)
    path.write_bytes(begin + b"".join(directory + at for at in following))
    done = multiprocessing.get_context("spawn").Process(target=_encode, args=(str(path),), daemon=True)
    done.start()
    done.join(60)  # it takes a second; counting the frames takes minutes to hours
    done.kill()
    assert done.exitcode == 0


def _encode(path: str) -> None:
    assert Encoded().url(Image(path)).startswith(b"data:image/png;")
