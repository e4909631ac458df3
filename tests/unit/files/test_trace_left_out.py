"""What was recorded of jobs does not reach Batsim, and the rest of their file does as it stands."""

import json

import pytest

from decision.files.batsim_json import without_trace
from decision.files.text import as_rapidjson


def test_all_else_keeps_its_spelling():
    job = '{"id":"1","subtime":26.337999999999997,"res":1,"profile":"a","recorded":{"size":1},"request":{},"mine":1e3}'
    text = '{"nb_res":4,"jobs":[%s],"profiles":{"a":{"type":"delay","delay":10.0}}}'
    left = '{"id":"1","subtime":26.337999999999997,"res":1,"profile":"a","mine":1e3}'
    assert without_trace((text % job).encode()).decode() == text % left


@pytest.mark.parametrize("between", [" ", "\n"])
def test_numbers_are_rapidjsons_in_any_layout(between):
    fields = ['{"a":"a\\"10.799999999999999"', '"b":10.799999999999999', '"c":"64e17"', '"d":10.799999999999999}']
    found = json.loads(as_rapidjson(f",{between}".join(fields).encode()))
    assert found == {"a": 'a"10.799999999999999', "b": 10.8, "c": "64e17", "d": 10.8}
