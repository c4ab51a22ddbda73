import base64
import hashlib
import http.server
import io
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.machine.bounded import Bounded
from dikast.core.media import check_image, decoding, fetch, image_sha256, load_image
from dikast.core.media import media_files as media
from dikast.core.part import Image
from runs import dikast_here, lines, write_jsonl


@pytest.fixture(autouse=True)
def _fresh() -> None:
    media.forget()


def encoded(picture: PIL.Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(width: int = 64, height: int = 48) -> PIL.Image.Image:
    return PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def png_of_size(width: int, height: int) -> bytes:
    """A PNG whose header tells this size; its pixels are missing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def put(folder: Path, raw: bytes, name: str = "a.png") -> Image:
    (folder / name).write_bytes(raw)
    return Image(name, str(folder))


def test_an_image_is_what_its_file_says(tmp_path: Path) -> None:
    raw = encoded(noise(), "PNG")
    image = put(tmp_path, raw)
    loaded = load_image(image)
    assert loaded.sha256 == hashlib.sha256(raw).hexdigest() == image_sha256(image) == check_image(image)
    assert (loaded.size, loaded.picture.mode) == ((64, 48), "RGB")
    assert np.array_equal(np.asarray(loaded.picture), np.asarray(noise()))
    data = f"data:image/png;base64,{base64.b64encode(raw).decode()}"
    assert load_image(Image(data)) == loaded
    assert load_image(Image.of(raw)) == loaded
    assert load_image(Image(data.replace("+", "%2B").replace("=", "%3D"))) == loaded


def test_a_picture_object_comes_back(tmp_path: Path) -> None:
    assert np.array_equal(np.asarray(load_image(Image.of(noise())).picture), np.asarray(noise()))


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    picture = PIL.Image.new("RGB", (60, 30), "blue")
    picture.paste("red", (0, 0, 30, 30))  # left half red
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # turn a quarter clockwise to see it upright: left becomes top
    turned = load_image(put(tmp_path, encoded(picture, "PNG", exif=exif))).picture
    assert turned.size == (30, 60)
    assert turned.getpixel((15, 5)) == (255, 0, 0)
    assert turned.getpixel((15, 55)) == (0, 0, 255)


def palette_with_transparency() -> bytes:
    picture = PIL.Image.new("P", (32, 32), 0)
    picture.putpalette([255, 0, 0, 0, 255, 0])
    return encoded(picture, "GIF", transparency=0)


@pytest.mark.parametrize(
    ("raw", "pixel"),
    [
        (encoded(PIL.Image.new("RGBA", (32, 32), (255, 0, 0, 0)), "PNG"), (255, 255, 255)),  # clear: white shows
        (encoded(PIL.Image.new("RGBA", (32, 32), (0, 0, 0, 51)), "PNG"), (204, 204, 204)),  # 255 * (1 - 51/255)
        (encoded(PIL.Image.new("LA", (32, 32), (10, 255)), "PNG"), (10, 10, 10)),
        (palette_with_transparency(), (255, 255, 255)),
        (encoded(PIL.Image.new("1", (32, 32), 1), "PNG"), (255, 255, 255)),
        (encoded(PIL.Image.new("L", (32, 32), 7), "PNG"), (7, 7, 7)),
        (encoded(PIL.Image.new("CMYK", (32, 32), (0, 255, 255, 0)), "TIFF"), (255, 0, 0)),
        (encoded(PIL.Image.fromarray(np.full((32, 32), 0x8000, np.uint16)), "PNG"), (128, 128, 128)),
        (encoded(PIL.Image.fromarray(np.full((32, 32), 0xFFFF, np.uint16)), "TIFF"), (255, 255, 255)),
        (
            encoded(
                PIL.Image.new("RGB", (32, 32), "red"), "GIF",
                save_all=True, append_images=[PIL.Image.new("RGB", (32, 32), "blue")],
            ),
            (255, 0, 0),  # the first frame
        ),
        (encoded(PIL.Image.new("RGB", (32, 32), (0, 0, 255)), "WEBP", lossless=True), (0, 0, 255)),
    ],
)  # fmt: skip
def test_every_mode_becomes_rgb(raw: bytes, pixel: tuple[int, int, int]) -> None:
    picture = load_image(Image.of(raw)).picture
    assert picture.mode == "RGB"
    assert picture.getpixel((3, 3)) == pixel


def test_images_that_cannot_be_used(tmp_path: Path) -> None:
    good = encoded(noise(200, 200), "JPEG")
    flipped = bytearray(encoded(noise(200, 200), "PNG"))
    flipped[5000] ^= 0xFF  # one damaged byte in the middle
    cases: list[tuple[bytes, str]] = [
        (b"", r"is empty \(0 bytes\): put the image there"),
        (b"\x00" * 100, "is not an image that can be read: .*give PNG"),
        (b"<!doctype html><html>not found</html>", "it looks like a web page"),
        (good[:3000], r"damaged or cut short \(.*\): make or download the file again"),
        (good[:20], "damaged|not an image"),
        (bytes(flipped), "damaged or cut short"),
        (encoded(noise(27, 500), "PNG"), "is 27 x 500 pixels; each side needs at least 28: give a larger one"),
        (encoded(noise(500, 1), "PNG"), "is 500 x 1 pixels"),
        (png_of_size(10_000, 10_000), r"is 10000 x 10000 pixels; the maximum is 80,000,000 pixels: scale it down"),
        (png_of_size(100_000, 100_000), "the maximum is 80,000,000 pixels: scale it down"),
        (encoded(PIL.Image.new("F", (32, 32)), "TIFF"), "32-bit pixels.*save it with 8 or 16 bits"),
    ]
    for raw, message in cases:
        image = put(tmp_path, raw)
        for use in (load_image, check_image):
            with pytest.raises(DataError, match=message) as caught:
                use(image)
            assert str(tmp_path / "a.png") in str(caught.value)


def test_the_smallest_image_is_28(tmp_path: Path) -> None:
    assert load_image(put(tmp_path, encoded(noise(28, 28), "PNG"))).size == (28, 28)


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    image = put(tmp_path, encoded(PIL.Image.new("1", (20_000, 20_000)), "PNG"))  # 50 kB that would be 1.2 GB of RGB
    tracemalloc.start()
    with pytest.raises(DataError, match=r"is 20000 x 20000 pixels|the maximum is"):
        load_image(image)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21


def test_tiles_that_are_larger_than_their_picture_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    """A TIFF of 40 x 40 pixels in one tile of 20,000 x 20,000, of which a few kB of zeros would make 400 MB."""
    size, packed = 40, zlib.compress(bytes(4096))
    tags = {256: size, 257: size, 258: 8, 259: 8, 262: 1, 277: 1, 322: 20_000, 323: 20_000, 324: 8, 325: len(packed)}
    packed += bytes(len(packed) % 2)
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    raw = struct.pack("<2sHI", b"II", 42, 8 + len(packed)) + packed + struct.pack("<H", len(tags)) + entries + bytes(4)
    with pytest.raises(DataError, match=r"has tiles of 20000 x 20000 pixels; the maximum is 80,000,000 pixels"):
        load_image(put(tmp_path, raw, "tiles.tif"))


def test_text_where_a_tiff_tells_the_size_of_tiles_is_never_repeated(tmp_path: Path) -> None:
    """A strip of 40 x 40 pixels beside a TileWidth of text and a TileLength of 300 million: their product is a text."""
    size = 40
    tags = {256: size, 257: size, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: size, 279: size**2, 323: 300_000_000}
    rows = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items()]
    rows.insert(-1, struct.pack("<HHI4s", 322, 2, 4, b"AAA"))
    raw = struct.pack("<2sHI", b"II", 42, 8 + size**2) + bytes(size**2) + struct.pack("<H", len(rows)) + b"".join(rows)
    path = put(tmp_path, raw + bytes(4), "text.tif")
    tracemalloc.start()
    assert load_image(path).size == (size, size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_paths_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=rf"{tmp_path}/no\.png does not exist: relative paths start at {tmp_path};"):
        load_image(Image("no.png", str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=rf"{tmp_path}/no\.png does not exist"):
        load_image(Image("no.png"))
    with pytest.raises(DataError, match="/no/such does not exist: fix the path"):
        image_sha256(Image("/no/such"))
    with pytest.raises(DataError, match="is a folder: name one image file"):
        load_image(Image(str(tmp_path)))
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataError, match="not a regular file"):  # and does not wait for a writer
        load_image(Image("pipe.png", str(tmp_path)))
    with pytest.raises(DataError, match="null byte"):
        load_image(Image("a\0b"))
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        load_image(Image("a" * 5000))
    (tmp_path / "loop.png").symlink_to("loop.png")
    with pytest.raises(DataError, match="cannot be read: Too many levels"):
        load_image(Image("loop.png"))
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(2**40)  # sparse
    with pytest.raises(DataError, match="more than 268,435,456: give a smaller one"):
        load_image(Image("large.png"))


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = put(tmp_path, encoded(noise(), "PNG"))
    (tmp_path / "a.png").chmod(0)
    if os.geteuid() == 0:  # root reads everything; the message is what counts

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        load_image(image)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("data:image/png;base64,@@@@", "broken base64: write data:image/png;base64"),
        ("data:image/png;base64,iVBORw0KGg", "broken base64"),
        ("data:image/png;base64,iVBORw0KGgo=", "damaged|not an image"),
        ("data:image/png;base64,", "not an image"),
        ("data:image/png", "not a complete data URL"),
        ("data:text/plain,hello", "not an image"),
    ],
)
def test_broken_data_urls(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_image(Image(source))


def test_no_changed_bit_of_a_png_gives_other_pixels() -> None:
    picture = noise(32, 32)
    picture.paste((200, 30, 30), (8, 8, 24, 24))
    raw = encoded(picture, "PNG")
    pixels, refused = decoding.decode(raw, "x").tobytes(), 0
    for bit in range(0, 8 * len(raw), 3):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            assert decoding.decode(bytes(changed), "x").tobytes() == pixels, bit
        except DataError:
            refused += 1
    assert refused > 0.9 * 8 * len(raw) / 3


def test_messages_stay_short() -> None:
    with pytest.raises(DataError) as caught:
        check_image(Image.of(b"\x00" * 100_000))
    assert len(str(caught.value)) < 300


def test_media_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = 0
    real = decoding.decode

    def counting(raw: bytes, name: str) -> PIL.Image.Image:
        nonlocal decoded
        decoded += 1
        return real(raw, name)

    monkeypatch.setattr(media, "decode", counting)
    raw = encoded(noise(), "PNG")
    image, twin, inline = put(tmp_path, raw), put(tmp_path, raw, "b.png"), Image.of(raw)
    for _ in range(3):
        check_image(image)
        assert load_image(image) is load_image(twin) is load_image(inline)  # one content, one picture
    assert decoded == 1
    put(tmp_path, encoded(noise(65), "PNG"))
    assert load_image(image).size == (65, 48)  # a changed file is read again
    assert decoded == 2


def test_a_change_in_the_same_moment_is_seen(tmp_path: Path) -> None:
    """Two files of one size, written within one tick of the file system's clock."""
    for i in range(20):
        image = put(tmp_path, b"x" * 100 + bytes([i]))
        assert image_sha256(image) == hashlib.sha256(b"x" * 100 + bytes([i])).hexdigest()


def test_an_old_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = put(tmp_path, encoded(noise(), "PNG"))
    now = time.time_ns()
    monkeypatch.setattr("dikast.core.media.media_files.time.time_ns", lambda: now + 10**10)
    sha256 = check_image(image)
    monkeypatch.setattr(media, "_read", None)
    assert check_image(image) == image_sha256(image) == load_image(image).sha256 == sha256


def test_a_good_image_stays_checked_when_its_picture_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = put(tmp_path, encoded(noise(), "PNG"))
    sha256 = check_image(image)
    media._pictures.clear()
    monkeypatch.setattr(media, "decode", None)
    assert check_image(image) == sha256
    (tmp_path / "a.png").unlink()
    with pytest.raises(DataError, match="does not exist"):  # what is remembered is the content, not the path
        check_image(image)


def test_hashing_does_not_decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "decode", None)
    image = put(tmp_path, b"no image at all")
    assert image_sha256(image) == hashlib.sha256(b"no image at all").hexdigest()


def test_caches_are_bounded() -> None:
    cache: Bounded[int, bytes] = Bounded(100, len)
    for i in range(50):
        cache.put(i, bytes(10))
        cache.get(0)
    assert len([i for i in range(50) if cache.get(i) is not None]) == 10
    assert cache.get(0) is not None  # used all along
    cache.put(99, bytes(1000))  # larger than the cache: kept alone, for whoever asks next
    assert cache.get(99) is not None
    assert cache.get(0) is None


def test_warnings_of_the_decoder_do_not_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encoded(PIL.Image.new("L", (32, 32)), "PNG")
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 1000)  # Pillow warns from here on
    with pytest.warns(PIL.Image.DecompressionBombWarning):
        PIL.Image.open(io.BytesIO(raw))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        images = [Image.of(raw + bytes(i)) for i in range(40)]
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(check_image, images))) == 40
        with pytest.raises(UserWarning):
            warnings.warn("others are still heard", UserWarning, stacklevel=1)
        assert list(warnings.filters) == before


class _Server(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        if self.path == "/good.png":
            body = encoded(noise(), "PNG")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        elif self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(bytes(2**20))
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"\x89PNG")
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """A server on loopback, from which media are allowed."""
    _Server.asked = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        running.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are the test
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with media.media_rules(private_urls=True):
            yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_images_by_url(server: str) -> None:
    image = Image(f"{server}/good.png", "folder")
    assert load_image(image).size == (64, 48)
    assert check_image(image) == image_sha256(image) == load_image(image).sha256
    assert _Server.asked == 1
    assert load_image(Image(f"{server}/to/{server}/good.png")).size == (64, 48)


def test_urls_that_cannot_be_used(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = put(tmp_path, encoded(noise(), "PNG"))
    for path, message in (
        ("/nothing", "answers 404: fix the URL, or download the image"),
        (f"/to/file://{tmp_path}/{secret.source}", "the server answers 302: fix the URL"),
        ("/to/ftp://127.0.0.1/x.png", "redirects to 'ftp', which is not http"),
        ("/short", "cannot be fetched .*IncompleteRead|damaged"),
    ):
        with pytest.raises(DataError, match=message):
            load_image(Image(server + path))
    monkeypatch.setattr(media, "MOST_FETCHED_BYTES", 2**20)
    with pytest.raises(DataError, match="more than 1,048,576 bytes"):
        load_image(Image(server + "/endless"))
    with pytest.raises(DataError, match="cannot be fetched"):
        load_image(Image("http://127.0.0.1:1/x.png"))
    with pytest.raises(DataError, match="cannot be fetched"):
        load_image(Image("https://"))


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(media, "FETCH_TIMEOUT", 0.1)
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, media.media_rules(private_urls=True), pytest.raises(DataError, match="timed out"):
        load_image(Image(f"http://127.0.0.1:{silent.getsockname()[1]}/x.png"))


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, dikast.core.media, dikast.core.records; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    ).stdout.split()
    assert "dikast.core.media" in loaded
    assert not {"PIL", "numpy", "pyarrow", "http.client", "urllib.request"} & set(loaded)


def test_formats_are_a_list_and_no_other_decoder_is_tried(tmp_path: Path) -> None:
    """An EPS would start Ghostscript, an ICNS or FITS would be decoded by code that nobody asked for."""
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\n(%pipe%touch /tmp/x) (w) file\n"
    for raw in (eps, encoded(noise(64, 64), "PPM"), encoded(noise(64, 64), "ICO"), encoded(noise(64, 64), "TGA")):
        with pytest.raises(DataError, match="not an image that can be read: give PNG, JPEG, WebP, GIF, BMP or TIFF"):
            load_image(put(tmp_path, raw))
    for name in decoding.FORMATS:
        assert load_image(put(tmp_path, encoded(noise(64, 64), name))).size == (64, 64)


def test_messages_never_show_what_is_in_a_file(tmp_path: Path) -> None:
    broken = bytearray(encoded(noise(64, 64), "PNG"))
    broken[37:41] = b"S3CR"  # the name of a chunk
    good = encoded(noise(64, 64), "PNG")
    at = good.index(b"IDAT")
    idat = b"IDAT" + good[at + 4 : at + 14]
    # a second chunk whose name is none: Pillow puts it into its message
    named = (
        good[: at - 4] + struct.pack(">I", 10) + idat + struct.pack(">I", zlib.crc32(idat)) + b"\0\0\0\0S3C:\0\0\0\0"
    )
    for raw in (b"S3CRET token", b"\x89PNG\r\n\x1a\nS3CRETS3CRET", bytes(broken), b"GIF89aS3CRETS3CRETS3CRET", named):
        with pytest.raises(DataError) as caught:
            load_image(put(tmp_path, raw))
        assert "S3C" not in str(caught.value)
    assert "broken PNG file (chunk ...)" in str(caught.value)


def test_a_media_root_confines_paths(tmp_path: Path) -> None:
    root, good = tmp_path / "root", encoded(noise(64, 64), "PNG")
    (root / "in").mkdir(parents=True)
    (root / "a.png").write_bytes(good)
    (tmp_path / "out.png").write_bytes(good)
    (root / "link.png").symlink_to(tmp_path / "out.png")
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "a.png").write_bytes(good)
    inside = ("a.png", "in/../a.png", str(root / "a.png"))
    outside = ("../out.png", str(tmp_path / "out.png"), "link.png", "../root-2/a.png", "/etc/passwd", "a\0b.png")
    for source in (*inside, *outside[:4]):
        assert load_image(Image(source, str(root))).size == (64, 64)  # without rules, as before
    with media.media_rules(root=root):
        for source in inside:
            assert check_image(Image(source, str(root)))
        for source in outside:
            for use in (load_image, check_image, image_sha256):
                with pytest.raises(DataError, match=r"lies outside the media root .*: put it there, or name another"):
                    use(Image(source, str(root)))
    assert load_image(Image("../out.png", str(root))).size == (64, 64)
    with pytest.raises(UserError, match=r"media root none: there is no such folder"), media.media_rules(root="none"):
        pass


def test_private_addresses_are_not_fetched_unasked(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = server.rpartition(":")[2]
    with media.media_rules(private_urls=False):
        for host in ("127.0.0.1", "localhost", "[::1]", "127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]", "0"):
            with pytest.raises(DataError, match=r"--allow-private-urls|cannot be fetched"):
                load_image(Image(f"http://{host}:{port}/good.png"))
        found = {"public.example": "127.0.0.1", "rebound.example": "127.0.0.2", "inner.example": "10.0.0.8"}
        real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **k: real(found.get(host, host), *more, **k))
        monkeypatch.setattr(fetch, "is_private", lambda address: address != "127.0.0.1")
        assert load_image(Image(f"http://public.example:{port}/good.png")).size == (64, 48)
        for host in ("rebound.example", "inner.example"):
            with pytest.raises(DataError, match=f"leads to '{host}', a private address"):
                load_image(Image(f"http://{host}:{port}/good.png"))
        asked = _Server.asked
        with pytest.raises(DataError, match=r"leads to '127\.0\.0\.2', a private address"):
            load_image(Image(f"http://public.example:{port}/to/http://127.0.0.2:{port}/good.png"))
        assert _Server.asked == asked + 1  # the redirect alone


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("8.8.8.8", False), ("2606:4700::1111", False), ("10.1.2.3", True), ("172.16.0.1", True), ("192.168.1.1", True),
        ("169.254.169.254", True), ("127.0.0.1", True), ("::1", True), ("fe80::1%eth0", True), ("fd00::1", True),
        ("::ffff:10.0.0.1", True), ("0.0.0.0", True), ("100.64.0.1", True), ("224.0.0.1", True), ("localhost", True),
        ("LOCALHOST.", True), ("a.localhost", True), ("2002:7f00:1::", True), ("example.org", False),
        ("127.1", True), ("2130706433", True), ("0x7f000001", True), ("134744072", False), ("::7f00:1", True),
        ("fec0::1", True), ("64:ff9b::7f00:1", True), ("64:ff9b::808:808", False), ("::ffff:8.8.8.8", False),
    ],
)  # fmt: skip
def test_which_addresses_are_private(address: str, private: bool) -> None:
    assert fetch.is_private(address) is private


def test_urls_in_messages_hold_no_secret(server: str) -> None:
    host = server.removeprefix("http://")
    for url in (f"http://me:pw@{host}/nothing?token=pw#pw", f"{server}/nothing?code=pw", "http://me:pw@[::1/a.png?pw"):
        with pytest.raises(DataError) as caught:
            load_image(Image(url))
        assert "pw" not in str(caught.value)


def test_a_bad_url_costs_one_item(tmp_path: Path) -> None:
    rows = [
        {"id": "bad", "instruction": "What?", "response": "x", "image": "http://[::1/a.png"},
        {"id": "private", "instruction": "What?", "response": "x", "image": "http://169.254.169.254/latest"},
        {"id": "good", "instruction": "What?", "response": "x"},
    ]
    items = write_jsonl(tmp_path / "items.jsonl", rows)
    done = dikast_here("grade", items, "--judge", "mock:constant", "--rubric", "helpfulness", "--out", tmp_path / "run")
    assert done.returncode == 3, done.stderr
    found = {each["question"]["item"]: each for each in lines(tmp_path / "run" / "verdicts.jsonl")}
    assert [found[name]["status"] for name in ("bad", "private", "good")] == ["bad_item", "bad_item", "ok"]
    assert "--allow-private-urls" in found["private"]["reason"]


def test_flags_confine_a_run(tmp_path: Path, server: str) -> None:
    folder = tmp_path / "media"
    folder.mkdir()
    put(folder, encoded(noise(64, 64), "PNG"))
    rows = [{"id": name, "instruction": "What?", "response": "x", "image": source} for name, source in
            (("in", "media/a.png"), ("out", "b.png"), ("url", f"{server}/good.png"))]  # fmt: skip
    (tmp_path / "b.png").write_bytes((folder / "a.png").read_bytes())
    items = write_jsonl(tmp_path / "items.jsonl", rows)
    due = {"plain": "ok ok bad_item", "root": "ok bad_item bad_item", "urls": "ok ok ok"}
    for name, flags in {"plain": (), "root": ("--media-root", folder), "urls": ("--allow-private-urls",)}.items():
        run = tmp_path / name
        with media.media_rules(private_urls=False):
            media.forget()
            dikast_here("grade", items, "--judge", "mock:constant", "--rubric", "helpfulness", "--out", run, *flags)
        found = {each["question"]["item"]: each["status"] for each in lines(run / "verdicts.jsonl")}
        assert " ".join(found[each] for each in ("in", "out", "url")) == due[name]


_PEAK = """
import sys
from dikast.core.media import load_image
from dikast.core.part import Image
def peak(): return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
load_image(Image(sys.argv[1]))
before = peak()
width, height = load_image(Image(sys.argv[2])).size
print((peak() - before) / (width * height))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("mode", "kind", "most"),
    [("RGB", "PNG", 12), ("RGBA", "PNG", 12), ("I;16", "PNG", 12), ("LA", "PNG", 12), ("CMYK", "JPEG", 12),
     ("RGB", "TIFF", 12), ("RGB", "BMP", 12), ("P", "GIF", 12), ("RGBA", "WEBP", 20)],
)  # fmt: skip
def test_decoding_takes_the_memory_that_the_docs_say(tmp_path: Path, mode: str, kind: str, most: float) -> None:
    """Peak bytes a pixel over an empty process that has Pillow loaded, at 6 million pixels."""
    small, large = tmp_path / "small", tmp_path / "large"
    PIL.Image.new(mode, (64, 64)).save(small, kind)
    PIL.Image.new(mode, (3000, 2000)).save(large, kind)
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, small, large], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert 3 < float(done.stdout) < most


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "I;16"])
def test_a_picture_in_memory_is_what_its_file_is(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = noise().convert(mode) if mode != "I;16" else PIL.Image.new("I;16", (64, 48), 40_000)
    image = media.image_of_picture(picture)
    assert image == Image.of(picture)
    found = load_image(image)
    media.forget()
    assert (found.sha256, found.picture.tobytes()) == (load_image(image).sha256, load_image(image).picture.tobytes())
    if mode == "RGB":
        media.image_of_picture(picture)
        picture.paste((0, 0, 0), (0, 0, 64, 48))  # whoever gave it may go on drawing
        monkeypatch.setattr(media, "decode", None)
        assert load_image(image).picture.tobytes() == found.picture.tobytes()


def test_a_picture_in_memory_that_is_too_small_is_refused_where_it_is_asked_about() -> None:
    with pytest.raises(DataError, match="8 x 8 pixels"):
        check_image(media.image_of_picture(noise(8, 8)))
