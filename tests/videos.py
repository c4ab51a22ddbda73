"""Small real videos, made by PyAV."""

from pathlib import Path

import pytest


def make_video(path: Path, n: int = 12, *, fps: int = 4, size: tuple[int, int] = (96, 64)) -> Path:
    """An mp4 of `n` frames; frame i is grey of the level 20 * i, so that a frame tells its number."""
    av = pytest.importorskip("av")
    import numpy as np

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 2_000_000
        for i in range(n):
            picture = np.full((size[1], size[0], 3), min(255, 20 * i), np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    return path
