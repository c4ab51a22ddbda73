"""Templates of pages: what they show cannot become markup, and hashes are those that a browser computes."""

import pytest
from jinja2 import UndefinedError

from dikast.core.html.page_templates import asset, asset_hash, template_environment


def test_what_is_shown_cannot_become_markup_or_reverse_the_text() -> None:
    shown = template_environment("dikast.surface").from_string("{{ text }}").render(text="<b>\u202e\x1b[31m</b> & é")
    assert shown == "&lt;b&gt;\\u202e\\u001b[31m&lt;/b&gt; &amp; é"


def test_a_name_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="missing"):
        template_environment("dikast.surface").from_string("{{ missing }}").render()


def test_templates_are_found_in_their_package() -> None:
    room = "dikast.surface.laboratory"
    assert template_environment(room).get_template("lab.html.j2").render is not None
    assert asset(room, "lab.html.j2").endswith("</html>\n")


def test_the_hash_is_that_of_a_content_security_policy() -> None:
    # the example of the specification (Content Security Policy Level 3, 2.3.1): alert('Hello, world.');
    assert asset_hash("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
