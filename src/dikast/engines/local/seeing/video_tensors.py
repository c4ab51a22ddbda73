"""Clips to pixel tensors, for the models that take in several frames as one video.

transformers does this with torchvision, which often does not load; this module does it with torch alone and gives the
same numbers: torchvision's resizing of 8-bit frames is torch's own antialiased interpolation. The sizes come from the
checkpoint's files as transformers reads them.

Departures: the limit of pixels per frame that the models were trained with (`cap_pixels_per_frame`) holds where the
checkpoint does not say otherwise; transformers 5.23 leaves it off and warns. A clip whose times are not known is taken
as sampled at the processor's own rate (`fps`, 2 a second), where transformers takes 24.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from dikast.core.errors import EngineError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_MODES = {2: "bilinear", 3: "bicubic"}  # by Pillow's number
_SHARED: dict[str, Any] = {"resample": 3, "rescale_factor": 1 / 255, "do_resize": True, "do_rescale": True}
_CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
_HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_PATCHED = {"temporal_patch_size": 2, "merge_size": 2, "fps": 2, "cap_pixels_per_frame": True}
# What transformers' video processors take where the checkpoint's files are silent.
DEFAULTS: dict[str, dict[str, Any]] = {
    "llava_onevision": {**_SHARED, **_CLIP, "size": {"height": 384, "width": 384}},
    "qwen2_5_vl": {
        **_SHARED, **_CLIP, **_PATCHED, "patch_size": 14, "max_video_tokens": 128000,
        "size": {"shortest_edge": 128 * 28**2, "longest_edge": 768 * 28**2},
    },
    "qwen3_vl": {
        **_SHARED, **_HALF, **_PATCHED, "patch_size": 16, "max_video_tokens": 768,
        "size": {"shortest_edge": 128 * 32**2, "longest_edge": 768 * 32**2},
    },
}  # fmt: skip


class Clip(NamedTuple):
    """Frames in order, of one size each, with the second each was taken at (none where that is not known)."""

    frames: "Sequence[Picture]"
    seconds: Sequence[float] = ()


class Size(NamedTuple):
    """Pixels."""

    height: int
    width: int


@dataclass(slots=True)
class _Times:
    """The metadata that transformers' processors look at, and set, when they write the tokens of a clip."""

    frames_indices: list[float]
    fps: float = 1.0  # so that an index is a second


class Clips:
    """A video processor of one family (`model_type`)."""

    def __init__(self, family: str, given: Mapping[str, Any]) -> None:
        self.family = family
        known = DEFAULTS[family]
        self._settings = {name: given[name] if given.get(name) is not None else known[name] for name in known}
        size = dict(self._settings["size"])
        for name, edge in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")):
            if given.get(name) is not None and edge in known["size"]:
                size[edge] = given[name]
        self._settings["size"] = size
        if self._settings["resample"] not in _MODES:
            raise ValueError(f"clips are resized bilinear or bicubic, not by resample={self._settings['resample']}")
        self.in_one_block = family == "llava_onevision"
        self.merge_size = int(self._settings.get("merge_size", 1))
        self.temporal_patch_size = int(self._settings.get("temporal_patch_size", 1))

    def settings(self) -> dict[str, Any]:
        """The settings that determine the tensors of a clip, as JSON values."""
        return {"family": self.family, **self._settings}

    def __call__(self, clips: Sequence[Clip]) -> dict[str, Any]:
        """The output of transformers' video processor for these clips, metadata included."""
        pixels = [self._normalised(self._resized(self._stacked(clip.frames))) for clip in clips]
        times = [self._times(clip) for clip in clips]
        made: dict[str, Any] = {"video_metadata": [_Times(list(each)) for each in times]}
        if self.in_one_block:
            return {**made, "pixel_values_videos": torch.stack(pixels)}
        patched = [self._patches(each) for each in pixels]
        made["pixel_values_videos"] = torch.cat([patches for patches, _ in patched])
        made["video_grid_thw"] = torch.tensor([grid for _, grid in patched])
        made["second_per_grid_ts"] = torch.tensor([self.temporal_patch_size * _step(each) for each in times])
        return made

    def inputs(self, made: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Of what `__call__` gave, the tensors that the model takes."""
        known = {"pixel_values_videos", "video_grid_thw"}
        if self.family == "qwen2_5_vl":
            known.add("second_per_grid_ts")
        return {name: made[name] for name in known & made.keys()}

    def _times(self, clip: Clip) -> list[float]:
        """Seconds of the frames; without any, at the processor's own rate from 0."""
        if clip.seconds:
            return [float(second) for second in clip.seconds]
        return [i / float(self._settings.get("fps", 2)) for i in range(len(clip.frames))]

    def _stacked(self, frames: "Sequence[Picture]") -> torch.Tensor:
        """8-bit RGB (frames, 3, height, width); a clip shorter than a patch is padded with its last frame."""
        if len({frame.size for frame in frames}) != 1:
            told = ", ".join(sorted({f"{frame.width} x {frame.height}" for frame in frames}))
            raise EngineError(f"the frames of a clip have one size, these have {told}: scale them", kind="bad_media")
        arrays = [np.asarray(frame.convert("RGB")) for frame in frames]
        arrays += arrays[-1:] * (self.temporal_patch_size - len(arrays))
        return torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)

    def _resized(self, frames: torch.Tensor) -> torch.Tensor:
        if not self._settings["do_resize"]:
            return frames
        size = self._size(len(frames), Size(*frames.shape[-2:]))
        if size == Size(*frames.shape[-2:]):
            return frames
        mode = _MODES[self._settings["resample"]]
        return torch.nn.functional.interpolate(frames, size=list(size), mode=mode, antialias=True, align_corners=False)

    def _size(self, n: int, size: Size) -> Size:
        limits = self._settings["size"]
        if self.in_one_block:
            return Size(limits["height"], limits["width"])
        factor = int(self._settings["patch_size"]) * self.merge_size
        least, most = int(limits["shortest_edge"]), int(limits["longest_edge"])
        tokens, capped = int(self._settings["max_video_tokens"]), bool(self._settings["cap_pixels_per_frame"])
        floor = int(least * 1.05)
        if self.family == "qwen2_5_vl":  # limits hold for a frame
            if capped:
                share = int(tokens * factor * factor * 0.9) * self.temporal_patch_size // n
                most = max(min(most, share), floor)
            return _fitted(size, factor, least, most)
        if capped:  # limits hold for the clip
            most = max(min(tokens * factor * factor, most // n), floor) * n
        return _fitted_clip(n, size, factor, least, most, self.temporal_patch_size)

    def _normalised(self, frames: torch.Tensor) -> torch.Tensor:
        factor = float(self._settings["rescale_factor"]) if self._settings["do_rescale"] else 1.0
        mean, std = (torch.tensor(self._settings[name]) * (1.0 / factor) for name in ("image_mean", "image_std"))
        return (frames.to(torch.float32) - mean[:, None, None]) / std[:, None, None]

    def _patches(self, frames: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
        """Flat patches (patches, values) in the order of the merged grid, and the grid (time, height, width)."""
        time, merge, patch = self.temporal_patch_size, self.merge_size, int(self._settings["patch_size"])
        if missing := -len(frames) % time:
            frames = torch.cat([frames, frames[-1:].expand(missing, -1, -1, -1)])
        n, channels, height, width = frames.shape
        grid = [n // time, height // patch, width // patch]
        cut = frames.reshape(
            grid[0], time, channels, grid[1] // merge, merge, patch, grid[2] // merge, merge, patch
        ).permute(0, 3, 6, 4, 7, 2, 1, 5, 8)
        return cut.reshape(math.prod(grid), channels * time * patch * patch), grid


def load_clips(folder: Path, family: str) -> Clips | None:
    """The video processor of a checkpoint; None for a family that has none."""
    if family not in DEFAULTS:
        return None
    return Clips(family, _given(folder))


def _given(folder: Path) -> dict[str, Any]:
    """The settings in the checkpoint's files, in the order in which transformers looks for them."""
    nested = _json(folder / "processor_config.json").get("video_processor")
    if isinstance(nested, dict):
        return nested
    for name in ("video_preprocessor_config.json", "preprocessor_config.json"):
        if (folder / name).is_file():
            return _json(folder / name)
    return {}


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def _step(seconds: Sequence[float]) -> float:
    """Mean seconds between frames; 1 where there is one frame or no time between them."""
    step = (seconds[-1] - seconds[0]) / (len(seconds) - 1) if len(seconds) > 1 else 0.0
    return step if step > 0 else 1.0


def _fitted(size: Size, factor: int, least: int, most: int) -> Size:
    """Multiples of `factor` near the size, of at least and at most so many pixels (Qwen2-VL's rule)."""
    height, width = _not_too_long(size)
    fitted = Size(round(height / factor) * factor, round(width / factor) * factor)
    return _within(fitted, size, factor, least, most, frames=1, counted=1)


def _fitted_clip(n: int, size: Size, factor: int, least: int, most: int, time: int) -> Size:
    """The same with the pixels of all frames counted (Qwen3-VL's rule)."""
    height, width = size
    if height < factor or width < factor:
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    size = _not_too_long(Size(height, width))
    fitted = Size(round(height / factor) * factor, round(width / factor) * factor)
    return _within(fitted, size, factor, least, most, frames=n, counted=round(n / time) * time)


def _within(fitted: Size, size: Size, factor: int, least: int, most: int, *, frames: int, counted: int) -> Size:
    height, width = size
    pixels = counted * fitted.height * fitted.width
    if pixels > most:
        beta = math.sqrt(frames * height * width / most)
        return Size(*(max(factor, math.floor(side / beta / factor) * factor) for side in (height, width)))
    if pixels < least:
        beta = math.sqrt(least / (frames * height * width))
        return Size(*(math.ceil(side * beta / factor) * factor for side in (height, width)))
    return fitted


def _not_too_long(size: Size) -> Size:
    if max(size) > 200 * min(size):
        raise EngineError(
            f"a frame of {size.width} x {size.height} is more than 200 times as long as wide: crop it", kind="bad_media"
        )
    return size
