"""Pictures of notebooks have a text that describes them."""

import io

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import path_tree, pictures

plt = pytest.importorskip("matplotlib.pyplot")
IPython_display = pytest.importorskip("IPython.display")


@pytest.fixture
def shown(monkeypatch):
    images = []
    monkeypatch.setattr(IPython_display, "display", images.append)
    plt.switch_backend("agg")
    return images


def test_a_picture_is_shown_once_and_has_a_text(shown):
    figure, axes = plt.subplots()
    axes.plot([0, 1])
    pictures.show(figure, "A line that rises.")
    data, metadata = shown[0]._repr_png_()
    assert data and metadata == {"alt": "A line that rises."}
    assert not plt.fignum_exists(figure.number)


def test_an_animation_has_a_frame_for_each_step(shown):
    from PIL import Image

    figure, axes = plt.subplots(figsize=(2, 2))
    (line,) = axes.plot([0, 1])
    pictures.animate(figure, lambda k: line.set_ydata([0, k]), [0.0, 0.5, 1.0], "A line that turns.", seconds=0.05)
    movie = Image.open(io.BytesIO(shown[0].data))
    assert (movie.format, movie.n_frames, movie.info["duration"]) == ("PNG", 3, 50)
    assert shown[0]._repr_png_()[1] == {"alt": "A line that turns."}


def test_a_tree_of_paths_is_read_from_its_text():
    @ft.jit(control_flow="paths")
    def f(x):
        if x > 10:
            return x
        if x > 0:
            y = x * 2
            return y if y > 6 else -y
        return fnp.sin(x)

    def words(stop):
        return [(value, words(below)) for value, below in stop.roads]

    f(-1.0)
    assert words(path_tree.read(f.paths().trees[0])) == [("False", [("False", [])])]
    for x in (20.0, 1.0, 5.0):
        f(x)
    second = ("False", [("False", []), ("True", [("False", []), ("True", [])])])
    tree = path_tree.read(f.paths().trees[0])
    assert words(tree) == [second, ("True", [])]
    assert tree.label.startswith("test_pictures.py:") and tree.roads[1][1].label == "f32[] (1 equation)"
    figure, axes = plt.subplots()
    path_tree.draw(axes, f.paths().trees[0])
    assert [t.get_text() for t in axes.texts].count("True") == 3
    plt.close(figure)
