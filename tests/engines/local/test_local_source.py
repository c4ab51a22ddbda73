"""Where a model is found, what never becomes a look-up on the Hub, and what identifies it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest

from dikast.core.errors import UserError
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.source import file_sha256, locate

Tiny = Callable[[str], Path]


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> str:
        raise AssertionError(f"looked up on the Hub: {args}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    "written",
    ["./judge", "../judge", "/no/such/judge", "~/no-such-judge", "a/b/c", "judge", "hf:./judge", "hf:a/b/c", "hf:/a/b"],
)
def test_a_path_typo_is_told_and_not_looked_up(written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        locate(written)


@pytest.mark.usefixtures("no_hub")
def test_a_slip_in_a_folder_that_exists_names_the_near_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "judge-7b").mkdir(parents=True)
    with pytest.raises(UserError, match=r"did you mean 'models/judge-7b'"):
        locate("models/judge-7B")


@pytest.mark.usefixtures("no_hub")
def test_folders_without_a_model_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        locate(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="give the folder"):
        locate(str(tmp_path / "config.json"))
    with pytest.raises(UserError, match="no weights"):
        locate(str(tmp_path)).identity()


@pytest.mark.usefixtures("no_hub")
def test_a_folder_that_exists_wins_over_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "judge").mkdir(parents=True)
    (tmp_path / "org" / "judge" / "config.json").write_text("{}")
    assert locate("org/judge").hub_id == ""
    assert locate("hf:org/judge").hub_id == ""


def test_a_hub_model_is_taken_at_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / commit).mkdir()
    (tmp_path / commit / "config.json").write_text("{}")
    asked: list[tuple[str, object]] = []

    def download(hub_id: str, revision: str | None = None, **options: object) -> str:
        asked.append((hub_id, revision))
        return str(tmp_path / commit)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    found = locate("hf:org/judge@v1.5")
    assert asked == [("org/judge", "v1.5")]
    assert found.identity() == {"model": "org/judge", "revision": commit}
    assert locate("org/judge", "v1.5") == found
    with pytest.raises(UserError, match="give one"):
        locate("org/judge@v1", "v2")


def test_pickled_weights_are_fetched_where_a_repository_has_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    asked: list[list[str]] = []

    def download(hub_id: str, revision: str | None = None, *, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        if "pytorch_model*.bin" in allow_patterns:
            (tmp_path / "pytorch_model.bin").write_bytes(b"")
        return str(tmp_path)

    files = ["config.json", "pytorch_model.bin"]
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda self, name, revision: files)
    found = locate("hf:org/judge")
    assert len(asked) == 2
    assert [path.name for path in found.weights()] == ["pytorch_model.bin"]


def test_without_network_the_cure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks the real client, which HF_HUB_OFFLINE keeps from the network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set and it is not in the cache"):
        locate("hf:org/no-such-model")


def test_identity_follows_the_files_not_the_place(tiny: Tiny, tmp_path: Path) -> None:
    here, there = tiny("llama"), tmp_path / "copy"
    shutil.copytree(here, there)
    first = LocalEngine(str(here), device="cpu").identity()
    assert LocalEngine(str(there), device="cpu").identity() == first

    weights = there / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    assert LocalEngine(str(there), device="cpu").identity() != first
    shutil.copy(here / "model.safetensors", weights)
    assert LocalEngine(str(there), device="cpu").identity() == first

    template = there / "chat_template.jinja"
    template.write_text(template.read_text() + " ")
    assert LocalEngine(str(there), device="cpu").identity() != first
    assert LocalEngine(str(here), device="cpu", dtype="bfloat16").identity() != first


def test_a_changed_image_size_changes_identity(tiny: Tiny, tmp_path: Path) -> None:
    there = tmp_path / "copy"
    shutil.copytree(tiny("qwen_vl"), there)
    first = LocalEngine(str(there), device="cpu").identity()
    settings = there / "preprocessor_config.json"
    settings.write_text(settings.read_text().replace("7056", "9408"))
    assert LocalEngine(str(there), device="cpu").identity() != first


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    first = file_sha256(file)
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert file_sha256(file) == first, "same size and time: not read again"
    os.utime(file, ns=(2, 2))
    assert file_sha256(file) != first
