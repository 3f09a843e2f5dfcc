import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.metrics._json_text import read_deep_json, read_json

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(documents, st.sampled_from([None, 1]), st.booleans())
def test_as_the_standard_library(document, indent, ascii_only):
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    assert read_deep_json(text) == document
    assert read_deep_json(f"\n\t{text}\r ") == document
    assert read_json(text) == document


@given(st.text('{}[],:"\\a1 ', max_size=12))
def test_refuses_what_the_standard_library_refuses(text):
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            read_deep_json(text)
    else:
        assert read_deep_json(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "]", "nul", '"a', "1 2", "[] []", "[}", "{]", "[1}", "{", "["),
        *("[1", "[1,", "[1,]", "[,]", "[1 2]", "{a:1}", "{1:2}"),
        *('{"a"}', '{"a":}', '{"a":1,}', '{"a":1 "b":2}'),
    ],
)
def test_mistakes(text):
    with pytest.raises(json.JSONDecodeError, match=r"line 1 column \d+"):
        read_deep_json(text)
    with pytest.raises(ValueError, match=r"line 1 column \d+"):
        read_json(text)


def test_depth_has_no_limit():
    depth = 20_000
    text = '{"a": [' * depth + "7" + "]}" * depth
    found = read_json(text)
    for _ in range(depth):
        (found,) = found["a"]
    assert found == 7
    with pytest.raises(json.JSONDecodeError, match="Expecting"):
        read_json(text[:-1])
