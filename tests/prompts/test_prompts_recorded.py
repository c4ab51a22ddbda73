"""Replies that judges really gave, against the verdicts that were recorded for them.

LLMBar (github.com/princeton-nlp/LLMBar) and WildVision-Bench (github.com/WildVision-AI/WildVision-Bench).
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dikast.core.verdict import Status
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.parse import parse_reply

# The judges were asked for (a) or (b) and for nothing else, so a tie is not among the answers.
NO_TIE = (("first", "a"), ("second", "b"))
