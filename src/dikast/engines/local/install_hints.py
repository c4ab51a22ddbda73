"""Hints for installing what local models need; imports nothing heavy, so that they can always be shown."""

TORCHVISION_CURE = (
    "install the torchvision that matches your torch (https://pytorch.org/get-started/locally pairs them), "
    "or remove it: pip uninstall torchvision"
)
