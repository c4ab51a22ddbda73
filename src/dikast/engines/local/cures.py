"""How to mend what local models run on; light, so that it can be told where nothing works."""

TORCHVISION_CURE = (
    "install the torchvision that matches your torch (https://pytorch.org/get-started/locally pairs them), "
    "or remove it: pip uninstall torchvision"
)
