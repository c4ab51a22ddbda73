"""Images and videos of items: found, fetched, checked, fingerprinted and decoded."""

from dikast.core.media.media_files import (
    LoadedImage,
    MediaRules,
    check_image,
    confine,
    image_file,
    image_of_picture,
    image_sha256,
    inside_root,
    load_image,
    load_images,
    media_rules,
    resolved,
    sample_video,
    video_sha256,
)

__all__ = [
    "LoadedImage",
    "MediaRules",
    "check_image",
    "confine",
    "image_file",
    "image_of_picture",
    "image_sha256",
    "inside_root",
    "load_image",
    "load_images",
    "media_rules",
    "resolved",
    "sample_video",
    "video_sha256",
]
