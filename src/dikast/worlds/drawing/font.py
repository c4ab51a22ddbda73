"""A bitmap font, five by seven pixels: a glyph is seven rows from the top, each one base-32 digit (0-9, A-V)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_GLYPHS = {
    "A": "EHHVHHH",
    "B": "UHHUHHU",
    "C": "EHGGGHE",
    "D": "UHHHHHU",
    "E": "VGGUGGV",
    "F": "VGGUGGG",
    "G": "EHGNHHE",
    "H": "HHHVHHH",
    "I": "E44444E",
    "J": "72222IC",
    "K": "HIKOKIH",
    "L": "GGGGGGV",
    "M": "HRLLHHH",
    "N": "HPPLJJH",
    "O": "EHHHHHE",
    "P": "UHHUGGG",
    "Q": "EHHHLID",
    "R": "UHHUKIH",
    "S": "FGGE11U",
    "T": "V444444",
    "U": "HHHHHHE",
    "V": "HHHHHA4",
    "W": "HHHLLRH",
    "X": "HHA4AHH",
    "Y": "HHA4444",
    "Z": "V1248GV",
    "0": "EHJLPHE",
    "1": "4C4444E",
    "2": "EH1248V",
    "3": "V2421HE",
    "4": "26AIV22",
    "5": "VGU11HE",
    "6": "68GUHHE",
    "7": "V124888",
    "8": "EHHEHHE",
    "9": "EHHF12C",
    ".": "00000CC",
    "/": "122488G",
    "-": "000V000",
    ":": "0CC0CC0",
    "%": "OP248J3",
    "!": "4444404",
    " ": "0000000",
}


@lru_cache(maxsize=8192)
def text_mask(text: str, scale: int) -> NDArray[np.bool_]:
    """The text as a mask, (7 * scale, 6 * scale * len(text) - scale). KeyError for a character without a glyph."""
    wide = np.zeros((7, 6 * len(text)), dtype=bool)
    for i, character in enumerate(text.upper()):
        for row, digit in enumerate(_GLYPHS[character]):
            bits = int(digit, 32)
            for col in range(5):
                wide[row, 6 * i + col] = bool(bits >> (4 - col) & 1)
    mask = wide[:, :-1].repeat(scale, 0).repeat(scale, 1)
    mask.setflags(write=False)
    return mask
