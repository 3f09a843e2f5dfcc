from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from taxarbor.data._bundled import Bundle, load_animals

ORDINAL = {"size_class", "lifespan_class", "brood_size_class", "legs_count_class"}


@pytest.fixture(scope="module")
def animals() -> Bundle:
    return load_animals()


def walk(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += node.get("children", [])


def value(animals: Bundle, name: str, feature: str) -> float:
    return float(animals.X[animals.names.index(name), animals.feature_names.index(feature)])


def test_shapes(animals: Bundle) -> None:
    n_rows, n_features = animals.X.shape
    assert n_rows >= 100
    assert n_features >= 40
    assert len(animals.names) == n_rows
    assert len(animals.feature_names) == n_features


def test_values_are_small_whole_numbers(animals: Bundle) -> None:
    X = animals.X
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert np.array_equal(X, np.rint(X))
    highest = np.array([4 if name in ORDINAL else 1 for name in animals.feature_names])
    assert np.array_equal(X.min(axis=0), np.zeros(len(highest)))
    assert np.array_equal(X.max(axis=0), highest)


def test_no_column_is_constant_or_repeated(animals: Bundle) -> None:
    assert (np.ptp(animals.X, axis=0) > 0).all()
    assert len(np.unique(animals.X, axis=1).T) == animals.X.shape[1]


def test_no_two_rows_are_alike(animals: Bundle) -> None:
    assert len(np.unique(animals.X, axis=0)) == len(animals.X)


def test_names_are_unique_and_plain(animals: Bundle) -> None:
    assert len(set(animals.names)) == len(animals.names)
    assert len(set(animals.feature_names)) == len(animals.feature_names)
    assert set(animals.feature_names) >= ORDINAL
    assert list(animals.names) == sorted(animals.names)
    assert all(name.replace("_", "").isalpha() for name in animals.feature_names)
    assert all(name == name.lower().strip() for name in animals.feature_names + animals.names)


def test_rows_are_read_only(animals: Bundle) -> None:
    with pytest.raises(ValueError, match="read-only"):
        animals.X[0, 0] = 1


def test_each_call_loads_its_own_tree() -> None:
    load_animals().tree["children"].clear()
    assert load_animals().tree["children"]


def test_leaves_of_the_tree_are_the_rows(animals: Bundle) -> None:
    leaves = [node["name"] for node in walk(animals.tree) if "children" not in node]
    assert sorted(leaves) == sorted(animals.names)


def test_nodes_of_the_tree(animals: Bundle) -> None:
    nodes = list(walk(animals.tree))
    assert animals.tree["name"] == "animals"
    assert len({node["name"] for node in nodes}) == len(nodes)
    assert all(len(node["children"]) >= 2 for node in nodes if "children" in node)
    assert all(node.keys() <= {"name", "children"} for node in nodes)


def test_description_names_the_ordered_columns(animals: Bundle) -> None:
    assert all(name in animals.description for name in ORDINAL)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("pipistrelle bat", "flies gives_milk echolocates", "lays_eggs has_feathers"),
        ("fruit bat", "flies eats_fruit_or_seeds", "echolocates drinks_blood"),
        ("emperor penguin", "has_feathers lays_eggs mainly_polar", "flies gives_milk"),
        ("platypus", "lays_eggs gives_milk venomous webbed_feet", "teeth_in_jaws flies"),
        ("dolphin", "gives_milk lives_in_sea has_flippers echolocates", "has_fur has_gills"),
        ("blue whale", "filter_feeds warm_blooded", "teeth_in_jaws has_fur"),
        ("cow", "chews_cud has_hooves has_horns domesticated", "has_antlers eats_meat"),
        ("horse", "has_hooves domesticated", "chews_cud has_horns"),
        ("camel", "chews_cud lives_in_desert", "has_hooves has_horns"),
        ("reindeer", "has_antlers migrates", "has_horns"),
        ("red kangaroo", "carries_young_in_pouch hind_legs_built_for_jumping", "lays_eggs"),
        ("cat", "retractable_claws conspicuous_whiskers", "has_hooves"),
        ("cheetah", "spotted_or_blotched eats_meat", "retractable_claws striped"),
        ("zebra", "striped has_hooves", "spotted_or_blotched domesticated"),
        ("ostrich", "has_feathers lays_eggs long_neck", "flies feeds_its_young"),
        ("cuckoo", "flies migrates", "builds_nests feeds_its_young"),
        ("barn owl", "nocturnal hooked_bill has_talons", "webbed_feet"),
        ("green sea turtle", "has_shell has_beak lays_eggs", "teeth_in_jaws warm_blooded"),
        ("slow worm", "has_backbone scaly_or_plated_skin", "lays_eggs venomous"),
        ("adder", "venomous teeth_in_jaws", "lays_eggs lives_in_desert"),
        ("axolotl", "has_gills breathes_through_skin", "leaves_water_when_grown"),
        ("seahorse", "carries_young_in_pouch grips_with_tail has_gills", "teeth_in_jaws"),
        ("whale shark", "skeleton_of_cartilage filter_feeds has_gills", "gives_milk lays_eggs"),
        ("honeybee", "flies has_queen_and_workers drinks_nectar pupates", "has_backbone"),
        ("locust", "hind_legs_built_for_jumping has_antennae", "pupates"),
        ("garden spider", "venomous has_exoskeleton", "has_antennae has_compound_eyes"),
        ("octopus", "changes_colour_at_will has_beak has_gills", "has_shell has_backbone"),
        ("oyster", "has_shell filter_feeds stays_in_one_place", "has_exoskeleton"),
        ("starfish", "radial_body lives_in_sea", "has_gills lives_in_lakes_or_rivers"),
        ("earthworm", "soft_bodied breathes_through_skin", "has_backbone has_shell"),
    ],
)
def test_facts(animals: Bundle, name: str, yes: str, no: str) -> None:
    assert [value(animals, name, feature) for feature in yes.split()] == [1] * len(yes.split())
    assert [value(animals, name, feature) for feature in no.split()] == [0] * len(no.split())


@pytest.mark.parametrize(
    ("feature", "ascending"),
    [
        ("size_class", ("flea", "mouse", "cat", "wolf", "elephant")),
        ("lifespan_class", ("mosquito", "hedgehog", "cat", "chimpanzee", "tortoise")),
        ("brood_size_class", ("horse", "lion", "chicken", "green sea turtle", "cod")),
        ("legs_count_class", ("adder", "chicken", "horse", "honeybee", "tarantula")),
    ],
)
def test_ordered_classes(animals: Bundle, feature: str, ascending: tuple[str, ...]) -> None:
    assert [value(animals, name, feature) for name in ascending] == [0, 1, 2, 3, 4]


def test_classes_of_animals_share_what_defines_them(animals: Bundle) -> None:
    shared = {
        "mammals": ("gives_milk", "warm_blooded", "has_backbone"),
        "birds": ("has_feathers", "warm_blooded", "has_beak", "lays_eggs"),
        "fish": ("has_gills", "has_backbone"),
        "insects": ("has_exoskeleton", "has_antennae"),
        "carnivorans": ("teeth_in_jaws",),
        "rodents and rabbits": ("gnawing_front_teeth",),
        "bovids": ("has_horns", "chews_cud", "has_hooves"),
        "snakes": ("scaly_or_plated_skin",),
    }
    nodes = {node["name"]: node for node in walk(animals.tree)}
    for group, features in shared.items():
        members = [n["name"] for n in walk(nodes[group]) if "children" not in n]
        for feature in features:
            assert all(value(animals, name, feature) == 1 for name in members), (group, feature)
