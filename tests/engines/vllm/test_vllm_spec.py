"""What is told before vLLM is started."""

import importlib.util

import pytest

from dikast.core.errors import MissingExtra, UserError
from dikast.engines.spec import open_engine


def test_where_vllm_is_missing_the_message_says_how_to_get_it() -> None:
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vLLM is installed here")
    with pytest.raises(MissingExtra, match=r"pip install 'dikast\[vllm\]'"):
        open_engine("vllm:org/name@main")


def test_arguments_are_checked_first() -> None:
    with pytest.raises(UserError, match="engine=fast: neither a JSON object nor a file"):
        open_engine("vllm:org/name,engine=fast")
    with pytest.raises(UserError, match=r"dtype in engine=\.\.\.: there is an option for that"):
        open_engine('vllm:org/name,engine={"dtype":"half"}')
    with pytest.raises(UserError, match=r"unknown option 'gpu'.*did you mean 'gpus'"):
        open_engine("vllm:org/name,gpu=2")
