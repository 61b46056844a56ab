from functorch_like.backends import xla


def inner():
    return xla.here()


def outer():
    return inner()


def test_frames_are_innermost_first():
    found = xla.frames(outer())
    assert [function for _, _, function in found[:3]] == ["inner", "outer", "test_frames_are_innermost_first"]
    assert all(file.endswith("test_traceback.py") for file, _, _ in found[:3])
    assert found[0][1] == inner.__code__.co_firstlineno + 1


def test_no_traceback_has_no_frames():
    assert xla.frames(None) == []
