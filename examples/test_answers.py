import pytest

from dikast.testing import assert_grade, assert_prefers


@pytest.fixture(scope="session")
def judge(dikast_judge):
    return dikast_judge("openai:gpt-4.1-mini", "helpfulness")


def test_the_capital_is_known(judge):
    answer = "Canberra. Sydney is larger, but Canberra has been the seat of government since 1927."
    assert_grade(judge, instruction="What is the capital of Australia?", response=answer, at_least=4)


def test_the_new_model_is_better(judge):
    responses = ["No: 91 = 7 x 13.", "Yes, 91 is prime."]
    assert_prefers(judge, instruction="Is 91 a prime number?", responses=responses, winner="a")
