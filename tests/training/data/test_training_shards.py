"""Prepared examples on disk: a folder of many shards is read with few descriptors."""

import resource
from pathlib import Path

import numpy as np
from PIL import Image as Picture

from dikast.core.media import load_image
from dikast.core.part import Image
from dikast.engines.local.seeing.shown import Media
from dikast.training.data.encode import Encoded
from dikast.training.data.shards import Shards, ShardWriter


def test_two_thousand_shards_are_read_under_256_descriptors(tmp_path: Path) -> None:
    count = 2_000
    for number in range(count):
        writer = ShardWriter(tmp_path, number)
        media = Media((Image.of(Picture.new("RGB", (28, 28), (number % 256, number // 256, 0))),))
        writer.add(str(number), f"x.jsonl:{number}", Encoded([number, 7], 1, (0, 0), media))
        writer.flush()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        shards = Shards.open(tmp_path)
        for number in (*range(count), *np.random.default_rng(1).integers(0, count, 300).tolist()):
            shard, row = shards.find(number)
            assert shard.ids(row).tolist() == [number, 7]
            reference = shard.media(row)
            assert reference is not None
            shown = load_image(reference.media.images[0])
            assert shown.picture.getpixel((0, 0)) == (number % 256, number // 256, 0)
            assert reference.images == (shown.sha256,)
            assert shards.name(number) == (str(number), f"x.jsonl:{number}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
