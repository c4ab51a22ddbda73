"""Frames of video files: which are taken, what they are, and what is wrong with files that have none."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dikast.core.errors import DataError
from dikast.core.item import item_from, item_to
from dikast.core.media import check_image, image_file, image_sha256, load_image, load_images, sample_video, video
from dikast.core.media import media_files as media
from dikast.core.media.video import even
from dikast.core.part import Video
from dikast.core.records import check_items
from videos import make_video


@pytest.fixture(autouse=True)
def fresh() -> None:
    media.forget()


def test_even_by_hand() -> None:
    assert even(9, 3) == (0, 4, 8)
    assert even(10, 4) == (0, 3, 6, 9)
    assert even(12, 4) == (0, 4, 7, 11)  # 11/3 = 3.67, 22/3 = 7.33
    assert even(3, 8) == (0, 1, 2)
    assert even(5, 1) == (2,)
    assert even(0, 4) == ()


def test_sampled_frames_are_those_of_the_file(tmp_path: Path) -> None:
    path = make_video(tmp_path / "clip.mp4")
    found = sample_video(Video(source="clip.mp4", root=str(tmp_path), count=4))
    assert [frame.frame for frame in found.frames] == [0, 4, 7, 11]
    assert found.seconds == (0.0, 1.0, 1.75, 2.75)
    levels = [float(np.asarray(load_image(frame).picture).mean()) for frame in found.frames]
    assert levels == pytest.approx([0, 80, 140, 220], abs=4)
    assert len({image_sha256(frame) for frame in found.frames}) == 4
    media.forget()  # frames can be had again one by one, in any order, and as files
    again = [load_image(found.frames[i]).picture for i in (2, 0)]
    assert [float(np.asarray(each).mean()) for each in again] == pytest.approx([140, 0], abs=4)
    assert image_file(found.frames[1])[:8] == b"\x89PNG\r\n\x1a\n"
    inline = sample_video(Video(source=media_url(path), count=4))
    assert [check_image(frame) for frame in inline.frames] == [check_image(frame) for frame in found.frames]


def media_url(path: Path) -> str:
    import base64

    return "data:video/mp4;base64," + base64.b64encode(path.read_bytes()).decode()


def test_a_seek_gives_the_frame_that_decoding_from_the_start_gives(tmp_path: Path) -> None:
    make_video(tmp_path / "long.mp4", 40, size=(64, 48))  # several key frames
    whole = sample_video(Video(source="long.mp4", root=str(tmp_path), count=40)).frames
    pictures = [load_image(frame).picture.tobytes() for frame in whole]
    media.forget()
    assert [load_image(whole[i]).picture.tobytes() for i in (39, 13, 25)] == [pictures[i] for i in (39, 13, 25)]


def test_frames_of_one_video_are_decoded_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opened the file and decoded from the key frame before it: eight times the work for eight frames."""
    make_video(tmp_path / "one.mp4")
    make_video(tmp_path / "two.mp4", 9)
    shown = [
        frame
        for name in ("one.mp4", "two.mp4")
        for frame in sample_video(Video(source=name, root=str(tmp_path), count=4)).frames
    ]
    mixed = [shown[i] for i in (6, 0, 3, 4, 2, 0, 1)]
    alone = [load_image(frame) for frame in mixed]
    media.forget()
    passes: list[tuple[str, list[int]]] = []
    decoded = video.frames

    def counted(file: str, numbers: list[int], name: str) -> object:
        passes.append((Path(file).name, numbers))
        return decoded(file, numbers, name)

    monkeypatch.setattr(media, "frames", counted)
    together = load_images(mixed)
    assert passes == [("two.mp4", [0, 5]), ("one.mp4", [0, 4, 7, 11])]
    assert [each.sha256 for each in together] == [each.sha256 for each in alone]
    assert [each.picture.tobytes() for each in together] == [each.picture.tobytes() for each in alone]
    assert load_images(mixed) == together  # remembered
    assert len(passes) == 2


def test_a_video_part_is_read_and_written_back() -> None:
    for part in (
        {"type": "video", "video": "clip.mp4", "frames": 5},
        {"type": "video", "video": "clip.mp4"},
    ):
        item = item_from({"id": "a", "instruction": [part], "response": "x"}, root="/data")
        assert [(each.source, each.root) for each in item.videos] == [("clip.mp4", "/data")]
        assert item_to(item)["instruction"] == [part]
    url = {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}
    assert item_from({"id": "a", "instruction": [url]}).videos[0].source == "https://example.com/a.mp4"
    with pytest.raises(DataError, match="a whole number from 1 to 1024"):
        item_from({"id": "a", "instruction": [{"type": "video", "video": "clip.mp4", "frames": 0}]})


def broken(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    if name == "text.mp4":
        path.write_text("<html>not a video</html>")
    elif name == "empty.mp4":
        path.write_bytes(b"")
    elif name == "frameless.mp4":
        av = pytest.importorskip("av")
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=4)
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            container.start_encoding()
    elif name == "silent.wav":
        av = pytest.importorskip("av")
        with av.open(str(path), "w") as container:
            stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
            frame.rate = 8000
            for packet in (*stream.encode(frame), *stream.encode(None)):
                container.mux(packet)
    elif name == "spoiled.mp4":
        raw = bytearray(make_video(path).read_bytes())
        at = raw.index(b"mdat") + 4
        end = raw.index(b"moov") - 4
        raw[at:end] = bytes(end - at)
        path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone.mp4", "does not exist"),
        ("text.mp4", "is not a video that can be read"),
        ("empty.mp4", r"is empty \(0 bytes\)"),
        ("frameless.mp4", "has no video in it|0 frames|not a video that can be read"),
        ("silent.wav", r"has no video in it \(only audio\)"),
        ("spoiled.mp4", "frame 0 of 12 cannot be decoded|not a video that can be read"),
    ],
)
def test_a_video_without_frames_is_told_with_line_and_cure(name: str, says: str, tmp_path: Path) -> None:
    path = broken(tmp_path, name)
    items = tmp_path / "items.jsonl"
    items.write_text(json.dumps({"id": "a", "instruction": [{"video": name}], "response": "x"}) + "\n")
    (error,) = check_items(items).errors
    assert (error.line, error.field) == (1, "instruction")
    assert str(path) in str(error)
    with pytest.raises(DataError, match=says):
        sample_video(Video(source=str(path)))
    assert ": " in str(error).split(name)[-1], "no cure"


def test_without_pyav_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_video(tmp_path / "clip.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"clip\.mp4 cannot be read without PyAV: pip install 'dikast\[video\]'"):
        sample_video(Video(source=str(path)))


def test_small_frames_are_refused(tmp_path: Path) -> None:
    path = make_video(tmp_path / "small.mp4", size=(32, 16))
    with pytest.raises(DataError, match="32 x 16 pixels"):
        sample_video(Video(source=str(path)))


def test_playlists_and_lists_of_files_are_not_followed(tmp_path: Path) -> None:
    """HLS, concat and image sequences name other files and hosts; none of them is opened."""
    make_video(tmp_path / "secret.mp4")
    hls = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3.0,\nsecret.mp4\n#EXT-X-ENDLIST\n"
    concat = "ffconcat version 1.0\nfile secret.mp4\n"
    sdp = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
    for name, text in (("a.m3u8", hls), ("a.mp4", hls), ("a.ffconcat", concat), ("b.mp4", concat), ("a.sdp", sdp)):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match="is not a video that can be read"):
            sample_video(Video((), source=name, root=str(tmp_path)))
    colon = tmp_path / "concat:secret.mp4"
    with pytest.raises(DataError, match="does not exist"):
        sample_video(Video((), source=str(colon)))


def test_bombs_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Video((), source=str(make_video(tmp_path / "a.mp4", 12)))
    for name, most, told in (
        ("MOST_FRAMES", 11, "has more than 11 frames: cut it"),
        ("MOST_PIXELS", 96 * 64 - 1, "has frames of 96 x 64 pixels, more than 6,143: scale it down"),
        ("MOST_SAMPLED_PIXELS", 5 * 96 * 64, "8 frames of 96 x 64 pixels do not fit; take 5 or scale it down"),
    ):
        media.forget()
        with monkeypatch.context() as bound:
            bound.setattr(video, name, most)
            with pytest.raises(DataError, match=told):
                sample_video(file)
    assert len(sample_video(file).frames) == 8
