"""Boxes do not overlap, whatever they hold, and show every word on the axes given."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib import pyplot as plt

from taxarbor.exchange import from_labels
from taxarbor.plot import plot_tree
from taxarbor.plot._layout import lay_out
from taxarbor.plot._tree import BAR, PAD, make_strips, place_boxes


@st.composite
def arrangements(draw, trees, depths):
    layout = lay_out(draw(trees), draw(depths))
    sizes = hnp.arrays(float, len(layout.nodes), elements=st.floats(1, 300))
    room = draw(st.none() | st.tuples(st.floats(10, 2000), st.floats(10, 2000)))
    orientation = draw(st.sampled_from(["down", "right"]))
    widths, heights = draw(sizes), draw(sizes)
    placed = place_boxes(layout, widths, heights, orientation, room)
    return layout, widths, heights, orientation, room, placed


@pytest.fixture(scope="session")
def arranged(trees, depths):
    return arrangements(trees, depths)


@given(data=st.data())
def test_boxes_are_large_enough_apart_and_on_the_page(data, arranged):
    layout, widths, heights, _, room, placed = data.draw(arranged)
    for i, j in itertools.combinations(range(len(placed.low)), 2):
        apart = (placed.high[i] < placed.low[j]) | (placed.high[j] < placed.low[i])
        assert apart.any()
    width, height = (placed.high - placed.low).T
    assert (width >= widths - 1e-9).all()
    np.testing.assert_allclose(height, heights)
    for depth in range(layout.height + 1):
        assert np.ptp(width[layout.depth == depth]) < 1e-9
    corners = np.concatenate([placed.low, placed.high, *placed.branches, *placed.stubs])
    assert (corners > 0).all()
    assert (corners < placed.size).all()
    if room is None:
        assert placed.scale == 1
    else:
        assert 0 < placed.scale <= 1
        np.testing.assert_allclose(placed.scale * np.array(placed.size), room)


@given(data=st.data())
def test_branches_lead_from_parents_to_children_and_enter_no_box(data, arranged):
    layout, _, _, orientation, _, placed = data.draw(arranged)
    for line in placed.branches:
        for a, b in itertools.pairwise(line):
            assert (a == b).any()  # across or along
            low, high = np.minimum(a, b), np.maximum(a, b)
            outside = (high <= placed.low + 1e-9) | (low >= placed.high - 1e-9)
            assert outside.any(axis=1).all()
    towards = {"down": np.array([0, -1]), "right": np.array([1, 0])}[orientation]
    centre, half = (placed.low + placed.high) / 2, (placed.high - placed.low) / 2
    ends = np.array([end for line in placed.branches for end in (line[0], line[-1])])
    parents, children = layout.parents, np.arange(1, len(centre))
    leave = centre[parents] + towards * half[parents]
    for point in (*leave, *(centre[children] - towards * half[children])):
        assert (np.abs(ends - point).max(axis=1) < 1e-9).any()
    assert len(placed.stubs) == layout.is_cut.sum()
    for stub, node in zip(placed.stubs, np.flatnonzero(layout.is_cut), strict=True):
        np.testing.assert_allclose(stub[0], centre[node] + towards * half[node])


def test_no_branch_is_drawn_twice(known):
    layout = lay_out(known)
    n = len(layout.nodes)
    placed = place_boxes(layout, np.full(n, 40.0), np.full(n, 20.0), "down")
    x = ((placed.low + placed.high) / 2)[:, 0]
    gap = placed.low[0, 1] - placed.high[1, 1]
    # Of three children, one rises from the bar; half a gap each, and the stems likewise.
    expected = (x[3] - x[1]) + (x[5] - x[4]) + (3 + 1 + 2 + 1) * gap / 2
    length = sum(np.abs(np.diff(line, axis=0)).sum() for line in placed.branches)
    assert length == pytest.approx(expected)


def test_orientation_and_room(known):
    layout = lay_out(known)
    sizes = np.full(len(layout.nodes), 10.0)
    for orientation, axis, sign in [("down", 1, -1), ("right", 0, 1)]:
        placed = place_boxes(layout, sizes, sizes, orientation)
        centre = (placed.low + placed.high) / 2
        along = np.unique(sign * centre[:, axis], return_inverse=True)[1]
        np.testing.assert_array_equal(along, layout.depth)
        assert (np.diff(-sign * centre[[1, 2, 3], 1 - axis]) > 0).all()
    close = place_boxes(layout, sizes, sizes, "down")
    wide = place_boxes(layout, sizes, sizes, "down", (1000.0, 500.0))
    assert wide.size == (1000, 500)
    assert np.ptp(wide.low[:, 0]) > 2 * np.ptp(close.low[:, 0])
    np.testing.assert_allclose(wide.low.min(axis=0), wide.size - wide.high.max(axis=0))


@pytest.fixture
def grey():
    return np.arange(12 * 3 * 5, dtype=np.uint8).reshape(12, 3, 5)


def test_strips_show_the_pixels_given(known, grey):
    ((pixels, size),) = make_strips(known, [0], grey, {0: [4, 2]})
    assert pixels.shape == (3, 5 + 1 + 5, 4)
    for channel in range(3):
        np.testing.assert_array_equal(pixels[:, :5, channel], grey[4])
        np.testing.assert_array_equal(pixels[:, 6:, channel], grey[2])
    assert (pixels[:, :5, 3] == 255).all()
    assert (pixels[:, 5] == 0).all()
    assert size == pytest.approx((11 / 3 * 26.0, 26.0))
    for channels in [(), (3,), (4,)]:
        values = np.random.default_rng(0).random((12, 2, 2, *channels))
        kinds = values, np.round(values * 255).astype(np.uint8), values > 0.5
        floats, same, binary = (make_strips(known, [0], v, {0: [7]})[0][0] for v in kinds)
        np.testing.assert_array_equal(floats, same)
        assert set(np.unique(binary)) <= {0, 255}
        n = channels[0] if channels else 3
        expected = kinds[1][7] if channels else kinds[1][7][..., None].repeat(3, axis=2)
        np.testing.assert_array_equal(same[..., :n], expected)


def test_strips_show_rows_from_all_over_the_node(known, grey):
    images = np.arange(12, dtype=np.uint8)[:, None, None].repeat(2, axis=2)
    for node, (pixels, _) in enumerate(make_strips(known, range(known.n_nodes), images, None)):
        shown = pixels[0, ::3, 0].tolist()
        rows = known.rows(node).tolist()
        assert shown[0] == rows[0]
        assert shown[-1] == rows[-1]
        assert len(shown) == min(len(rows), 4)
        assert set(shown) <= set(rows)
    strips = make_strips(known, [0, 1], grey, {1: np.array([3])})
    assert [size[0] > 0 for _, size in strips] == [False, True]
    for images, examples in [(grey, lambda node: []), (None, None)]:
        ((pixels, size),) = make_strips(known, [0], images, examples)
        assert (pixels.size, size) == (0, (0.0, 0.0))


def test_large_images_are_made_smaller(known):
    images = np.zeros((12, 1000, 300), dtype=np.uint8)
    images[:, :500] = 200
    ((pixels, _),) = make_strips(known, [0], images, {0: [0]})
    assert max(pixels.shape[:2]) <= 128
    assert pixels[0, 0].tolist() == [200, 200, 200, 255]
    assert pixels[-1, -1].tolist() == [0, 0, 0, 255]
    ((thin, size),) = make_strips(known, [0], np.zeros((12, 1, 2000, 3)), {0: [0]})
    assert size[0] <= 78.0
    assert thin.shape[0] == 1


def test_wrong_images_and_examples_are_refused(known, grey):
    for images, told in [
        (np.zeros((12, 4)), r"images must have shape .*, got \(12, 4\)"),
        (np.zeros((12, 4, 4, 2)), r"got \(12, 4, 4, 2\)"),
        (np.zeros((11, 4, 4)), "one image for each of the 12 rows, got 11"),
        (np.zeros((12, 0, 4)), "must have pixels"),
        (np.zeros((12, 4, 4), dtype=int), "floats from 0 to 1, uint8 or booleans, got int64"),
        (np.full((12, 4, 4), 16.0), "range from 0 to 1, got 16 to 16 for row 0: divide"),
        (np.full((12, 4, 4), np.nan), "range from 0 to 1, got nan"),
    ]:
        with pytest.raises(ValueError, match=told):
            plot_tree(known, images=images)
    for rows, told in [
        ([12], "from 0 to 11, got 12 to 12 for node 0"),
        ([-1, 3], "got -1 to 3"),
        ([0.5], r"must be row numbers, got \[0.5\] for node 0"),
        (3, "must be row numbers, got 3"),
    ]:
        with pytest.raises(ValueError, match=told):
            plot_tree(known, images=grey, examples={0: rows})
    with pytest.raises(ValueError, match="give the images too"):
        plot_tree(known, examples={0: [1]})
    assert plt.get_fignums() == []


def words(drawn):
    return [[text.get_text() for text in texts] for texts in drawn.texts]


def extents(drawn):
    """Return the places of boxes and of texts in pixels, (n, 4), and whose texts they are."""
    renderer = drawn.axes.figure.canvas.get_renderer()
    boxes = np.array([box.get_window_extent(renderer).extents for box in drawn.boxes])
    owners = [n for n, texts in enumerate(drawn.texts) for _ in texts]
    texts = [text.get_window_extent(renderer).extents for text in itertools.chain(*drawn.texts)]
    return boxes, np.array(texts), owners


def assert_readable(drawn):
    boxes, texts, owners = extents(drawn)
    for i, j in itertools.combinations(range(len(boxes)), 2):
        a, b = boxes[i], boxes[j]
        assert (a[2:] < b[:2]).any() or (b[2:] < a[:2]).any()
    assert (texts[:, :2] >= boxes[owners, :2]).all()
    assert (texts[:, 2:] <= boxes[owners, 2:]).all()
    lower = 1 + np.flatnonzero(np.diff(owners) == 0)
    assert (texts[lower, 3] <= texts[lower - 1, 1]).all()
    assert_inside(drawn, boxes, texts, owners)
    width, height = drawn.axes.figure.bbox.size
    assert (boxes >= 0).all()
    assert (boxes <= [width, height, width, height]).all()


def assert_inside(drawn, boxes, texts, owners):
    """Assert that strips and bars are in boxes, below their texts and each other."""
    at = drawn.axes.transData.transform
    lowest = boxes[:, 3].copy()
    np.minimum.at(lowest, owners, texts[:, 1])
    places = [strip.get_window_extent().extents for strip in drawn.strips]
    if drawn.bars is not None:
        places += [at(path.vertices[:4])[[0, 2]].ravel() for path in drawn.bars.get_paths()]
    for n, (left, bottom, right, top) in enumerate(places):
        centre = np.array([left + right, bottom + top]) / 2
        is_around = (boxes[:, :2] < centre).all(axis=1) & (boxes[:, 2:] > centre).all(axis=1)
        (owner,) = np.flatnonzero(is_around)
        assert boxes[owner, 0] < left < right < boxes[owner, 2]
        assert boxes[owner, 1] < bottom < top < lowest[owner] + 1e-6
        if n == len(drawn.strips) - 1:
            lowest[:] = np.inf


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_seven_lines_in_four_layers(animals, orientation):
    taxonomy, names = animals

    def told(node):
        rows = taxonomy.tree.rows(node)
        some = rows[np.linspace(0, len(rows) - 1, 3).astype(int)]
        features = [("+eats insects or worms", "plus"), ("-lives in sea", "minus"), "striped"]
        return [f"{len(rows):,} images", *(f"{names[row]} (123)" for row in some), *features]

    drawn = plot_tree(taxonomy, max_depth=4, describe=told, orientation=orientation)
    assert len(drawn.boxes) > 20
    assert drawn.texts[0][1].get_fontsize() == pytest.approx(8)
    for dpi in (70, 110, 200):
        drawn.axes.figure.set_dpi(dpi)
        assert_readable(drawn)
    assert words(drawn) == [
        [line if isinstance(line, str) else line[0] for line in told(node)]
        for node in drawn.layout.nodes.tolist()
    ]


def test_given_axes_are_filled(known):
    sizes = (3, 2), (6.4, 4.8), (40, 40)
    for size, orientation in itertools.product(sizes, ["down", "right"]):
        _, (ax, _) = plt.subplots(1, 2, figsize=size)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        drawn = plot_tree(known, ax=ax, orientation=orientation)
        assert_readable(drawn)
        boxes, _, _ = extents(drawn)
        low, high = ax.get_window_extent().extents.reshape(2, 2)
        assert (boxes[:, :2] >= low).all()
        assert (boxes[:, 2:] <= high).all()
        axis, sign = (1, 1) if orientation == "down" else (0, -1)
        assert (sign * (boxes[0, axis] - boxes[1:, axis]) > 0).all()


def test_styles(known):
    lines = ["title", "plain", ("more", "plus"), ("less", "minus")]
    title, plain, plus, minus = plot_tree(known, describe=lambda node: lines).texts[0]
    assert title.get_fontweight() == "bold"
    assert plain.get_fontweight() == plus.get_fontweight() == minus.get_fontweight() == "normal"
    assert (plus.get_color(), minus.get_color()) == ("#05668d", "#9b2c1f")
    assert len({text.get_color() for text in (title, plain, plus, minus)}) == 4


def test_texts_are_literal(known, tmp_path):
    for text in ("$x$", r"$\frac$", "a $", r"\$5", "50% {", r"\alpha_1^2"):
        drawn = plot_tree(known, max_depth=1, describe=lambda node, text=text: [text])
        assert words(drawn) == [[text]] * 4
        assert not any(artist.get_parse_math() for artist in itertools.chain(*drawn.texts))
        with plt.rc_context({"svg.fonttype": "none"}):
            whole = plot_tree(known, describe=lambda node, text=text: [text])
            whole.axes.figure.savefig(tmp_path / "a.svg")
        assert (tmp_path / "a.svg").read_text("utf-8").count(f">{text}</text>") == 6
        plt.close("all")


def test_a_cut_is_shown(known):
    whole, cut = plot_tree(known), plot_tree(known, max_depth=1)
    assert (len(whole.boxes), len(cut.boxes)) == (6, 4)
    assert (len(whole.stubs.get_segments()), len(cut.stubs.get_segments())) == (0, 1)
    faces = [box.get_facecolor() for box in cut.boxes]
    assert faces[0] == faces[2] != faces[1] == faces[3]


def test_a_root_alone_and_boxes_without_lines(single, known):
    drawn = plot_tree(single)
    assert words(drawn) == [["3 rows"]]
    assert_readable(drawn)
    drawn.axes.figure.canvas.draw()
    drawn = plot_tree(known, describe=lambda node: [] if node else ["root", ""])
    assert words(drawn) == [["root", ""], *[[]] * 5]
    drawn.axes.figure.canvas.draw()


def test_wide_trees():
    drawn = plot_tree(from_labels(np.arange(200)))
    assert drawn.axes.figure.get_figwidth() == 100
    boxes, texts, owners = extents(drawn)
    assert drawn.texts[0][0].get_fontsize() < 9
    assert (np.diff(boxes[1:, 0]) > boxes[1:, 2][:-1] - boxes[1:, 0][:-1]).all()
    assert (texts[:, 2] - texts[:, 0] < boxes[owners, 2] - boxes[owners, 0]).all()
    # Text too small to draw is left out.
    drawn = plot_tree(from_labels(np.arange(1500)))
    assert len(drawn.boxes) == len(drawn.texts) == 1501
    assert not any(drawn.texts)


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_classes_and_images(animals, classes, orientation):
    taxonomy, names = animals
    images = np.random.default_rng(0).random((len(names), 8, 12, 3))
    look = {"max_depth": 3, "orientation": orientation}
    drawn = plot_tree(taxonomy, classes=classes, images=images, **look)
    drawn.axes.figure.canvas.draw()
    assert_readable(drawn)
    assert len(drawn.strips) == len(drawn.boxes)
    named = [text.get_text() for text in drawn.legend.texts]
    nodes = drawn.layout.nodes.tolist()
    n_named = sum(len(set(classes[taxonomy.tree.rows(node)]) & set(named)) for node in nodes)
    assert 0 < len(drawn.bars.get_paths()) - n_named <= len(drawn.boxes)
    assert named[8:] == ["other"]
    legend = drawn.legend.get_window_extent().extents
    boxes, _, _ = extents(drawn)
    assert legend[3] < boxes[:, 1].min()
    assert legend[0] >= 0
    assert legend[2] <= drawn.axes.figure.bbox.width
    assert words(drawn)[0][-2].endswith("%")


def test_bars_have_the_shares_of_the_classes(known):
    classes = np.array(["b", "a", "b", "b"] * 3)
    drawn = plot_tree(known, classes=classes)
    pieces = iter(path.vertices[:4] for path in drawn.bars.get_paths())
    for node, box in enumerate(drawn.boxes):
        mine = classes[known.rows(node)]
        left = box.get_x() + PAD
        for share in [(mine == name).mean() for name in "ba" if name in mine]:
            piece = next(pieces)
            assert piece.min(axis=0) == pytest.approx([left, box.get_y() + PAD])
            left += share * (box.get_width() - 2 * PAD)
            assert piece.max(axis=0) == pytest.approx([left, box.get_y() + PAD + BAR])
        assert left == pytest.approx(box.get_x() + box.get_width() - PAD)
        assert box.get_width() >= 60 + 2 * PAD
    assert next(pieces, None) is None
    assert [text.get_text() for text in drawn.legend.texts] == ["b", "a"]
    assert words(drawn)[0] == ["12 rows", "b · 75%", "a · 25%"]


def test_given_axes_with_classes(known):
    for size in [(1, 1), (3, 2), (20, 10)]:
        _, ax = plt.subplots(figsize=size)
        drawn = plot_tree(known, classes=["one", "two", "three", "four"] * 3, ax=ax)
        drawn.axes.figure.canvas.draw()
        boxes, _, _ = extents(drawn)
        legend = drawn.legend.get_window_extent().extents
        frame = ax.get_window_extent().extents
        assert legend[3] <= boxes[:, 1].min()
        assert (legend[:2] >= frame[:2] - 1).all()
        assert (legend[2:] <= frame[2:] + 1).all()


def test_examples_are_chosen(known):
    images = np.zeros((12, 4, 4), dtype=np.uint8)
    images[7] = 255
    drawn = plot_tree(known, images=images, examples={0: [7], 1: [1, 7, 2]})
    assert len(drawn.strips) == 2
    shown = drawn.strips[0].get_array()
    assert shown.shape == (4, 4, 4)
    assert (shown == 255).all()
    drawn = plot_tree(known, images=images, examples=lambda node: [node])
    assert len(drawn.strips) == 6


def test_boxes_say_what_a_rule_chooses_among(four_clusters):
    drawn = plot_tree(four_clusters[0])
    texts = [[text.get_text() for text in lines] for lines in drawn.texts]
    assert "chooses among 4 clusters" in texts[0]
    assert not any("chooses" in text for lines in texts[1:] for text in lines)
    plt.close(drawn.axes.figure)
