"""A small experiment with mocks, as a file with changes."""

from pathlib import Path
from typing import Any

import yaml

from dikast.lab.experiment import merged

GOOD: dict[str, Any] = {
    "claim": "One judge is better than the other.",
    "source": "nobody",
    "base": {
        "judge": "mock:oracle,r=.9",
        "held": {"text": {"world": {"domain": "text", "split": "fresh", "scales": ["1-5"]}, "n": 60}},
    },
    "arms": {"good": {}, "poor": {"judge": "mock:oracle,r=.3"}},
    "effects": {"gain": {"arm": "good", "against": "poor", "figure": "pearson", "held": "text"}},
    "holds": {"gain": {"above": 0.1}},
    "fails": {"gain": {"below": 0.1}},
    "seeds": [1],
}
TRAIN: dict[str, Any] = {
    "judge": None,
    "train": {"init": "nano:32x1"},
    "data": {"some": {"world": {"domain": "text"}, "n": 40}},
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(merged(GOOD, changes), sort_keys=False, default_flow_style=None))
    return path
