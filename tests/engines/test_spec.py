from pathlib import Path

import pytest

from dikast.core.errors import UserError
from dikast.engines.http.providers import PROVIDERS
from dikast.engines.mock import Constant, Oracle
from dikast.engines.spec import Spec, engine_schemes, open_engine, parse_spec


def test_options_stand_last() -> None:
    assert parse_spec("mock:oracle,r=0.5,seed=3") == Spec("mock", "oracle", {"r": "0.5", "seed": "3"})
    assert list(parse_spec("mock:oracle,r=0.5,seed=3").options) == ["r", "seed"]
    assert parse_spec("hf:org/name@v1,batch-size=4") == Spec("hf", "org/name@v1", {"batch_size": "4"})
    assert parse_spec("replay:a,b.jsonl") == Spec("replay", "a,b.jsonl", {})
    assert parse_spec("some/folder") == Spec("", "some/folder", {})


def test_a_path_that_exists_keeps_its_commas(tmp_path: Path) -> None:
    odd = tmp_path / "run,r=1"
    odd.mkdir()
    assert parse_spec(str(odd)) == Spec("", str(odd), {})
    assert parse_spec(f"replay:{odd},x=2") == Spec("replay", str(odd), {"x": "2"})


def test_values_take_the_type_of_the_option() -> None:
    engine = open_engine("mock:oracle,r=0.5,seed=3,accuracy=none", feedback=4)
    assert isinstance(engine, Oracle)
    assert (engine.r, engine.seed, engine.accuracy, engine.feedback) == (0.5, 3, None, 4)


def test_an_engine_passes_through_without_options() -> None:
    engine = Constant(label="3")
    assert open_engine(engine) is engine
    with pytest.raises(UserError, match="already open"):
        open_engine(engine, seed=1)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("moc:oracle", "did you mean 'mock'"),
        ("lmdeploy:org/name", "known are .*mock:NAME.*replay:FILE"),
        ("no/such/folder", "no such folder"),
        ("mock:orcale", "did you mean 'oracle'"),
        ("mock:oracle,sede=1,r=high", "did you mean 'seed'.*expected a number"),
        ("mock:oracle,r=1,r=0", "given twice"),
        ("mock:", "does not name a target"),
        ("hf:org/name@v1,revision=v2", "given twice"),
    ],
)
def test_a_spec_that_cannot_be_meant(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        open_engine(spec)


def test_installed_packages_bring_schemes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real installed distribution: metadata on the path and a module that makes engines.
    info = tmp_path / "dikast_acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dikast-acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dikast.engines]\nacme = acme_engines:open_acme\n")
    (tmp_path / "acme_engines.py").write_text(
        "from dikast.engines.mock import Constant\n"
        "def open_acme(target: str, *, level: int = 3, strict: bool = False):\n"
        "    return Constant(name=f'acme:{target}', label=str(level))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    engine = open_engine("acme:judge,level=4,strict=yes")
    assert isinstance(engine, Constant)
    assert (engine.name, engine.label) == ("acme:judge", "4")
    own = {"acme", "decision", "hf", "http", "https", "mock", "replay", "scout", "servers", "vllm"}
    assert engine_schemes() == sorted({*own, *PROVIDERS})
    with pytest.raises(
        UserError, match=r"option 'level': expected a whole number, got 'four'; .*did you mean 'strict'"
    ):
        open_engine("acme:judge,level=four,strickt=1")
    with pytest.raises(UserError, match="acme:TARGET"):
        open_engine("acne:judge")
