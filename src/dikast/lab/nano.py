"""Small untrained judges: the architecture of `scout` with another width and depth, its tokenizer, no weights."""

import re
from importlib import resources
from pathlib import Path

import orjson

from dikast.core.errors import UserError
from dikast.core.runs.run_files import write_whole

_NANO = re.compile(r"nano:(\d+)x(\d+)")
_HEAD = 32  # dimensions of an attention head


def nano(name: str, folder: Path) -> Path | None:
    """The folder of `nano:WIDTHxLAYERS`, made in `folder`; None for any other name.

    WIDTH is that of the language model, a multiple of 32. UserError for one that is not.
    """
    found = _NANO.fullmatch(name)
    if found is None:
        return None
    width, layers = int(found[1]), int(found[2])
    if not 32 <= width <= 1024 or width % _HEAD or not 1 <= layers <= 24:
        raise UserError(f"{name}: a width is a multiple of 32 up to 1024, and there are 1 to 24 layers")
    out = folder / f"nano-{width}x{layers}"
    source = Path(str(resources.files("dikast.models") / "scout"))
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.suffix in (".json", ".jinja") and file.name != "config.json":
            _keep(out / file.name, file.read_bytes())
    config = orjson.loads((source / "config.json").read_bytes())
    heads = max(2, width // _HEAD)
    config["text_config"] |= {
        "hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers, "head_dim": width // heads,
        "num_attention_heads": heads, "num_key_value_heads": heads,
    }  # fmt: skip
    _keep(out / "config.json", orjson.dumps(config, option=orjson.OPT_INDENT_2))
    return out


def _keep(path: Path, data: bytes) -> None:
    """Write a file that is not there yet: several processes may open the folder once it is made."""
    if not path.is_file() or path.read_bytes() != data:
        write_whole(path, data)
