"""Copies of the world tell what each choice costs, exactly."""

import dataclasses

import numpy as np
import pytest

import trimtab
from trimtab._native import Episodes

SETTINGS = trimtab.Settings(period_ms=4_000, periods=6, generated=8, conditions=20, start="bbr")


def test_a_cost_is_what_the_choice_then_costs() -> None:
    course = SETTINGS.course()
    for choice in range(len(SETTINGS.algorithms)):
        episodes = Episodes(course, [11, 12])
        costs = episodes.costs(2)
        waited = [sum(pair) for pair in zip(*(episodes.step([choice] * 2)[2] for _ in range(2)), strict=True)]
        assert waited == pytest.approx([row[choice] for row in costs], rel=1e-12)


def test_asking_for_costs_changes_nothing() -> None:
    course = SETTINGS.course()
    asked, left_alone = Episodes(course, [7]), Episodes(course, [7])
    asked.costs(3)
    assert asked.step([2]) == left_alone.step([2])
    assert asked.states() == left_alone.states()


def test_waits_add_up_to_completion_times() -> None:
    """Little's law, over a whole episode: the sum of the waits is that of the completion times."""
    course = SETTINGS.course()
    episodes = Episodes(course, [21])
    waited = sum(episodes.step([1])[2][0] for _ in range(SETTINGS.periods - 1))
    completions = episodes.completions()[0]
    # The first period ran before, and requests that were open at the end finish later.
    assert 0 < waited <= sum(completions)
    assert waited > 0.3 * sum(completions)


def test_connections_that_share_a_path_wait_together() -> None:
    course = dataclasses.replace(SETTINGS, flows=(1, 5)).course()
    alone, together = (
        next(seed for seed in range(50) if course.describe(seed).startswith(f"{count} x "))
        for count in (1, 5)
    )
    for seed, count in ((alone, 1), (together, 5)):
        described = course.describe(seed)
        requests = len(Episodes(course, [seed]).completions()[0])
        one = dataclasses.replace(SETTINGS, flows=(1,)).course()
        assert one.describe(seed) == described.replace(f"{count} x ", "1 x "), "all else is as it was"
        assert requests >= count * len(Episodes(one, [seed]).completions()[0]) / 2


def test_what_choices_lose_and_take_from_rivals() -> None:
    course = dataclasses.replace(
        SETTINGS, algorithms=("bbr", "cubic"), rivals=(3,), rival_kinds=("cubic",)
    ).course()
    episodes = Episodes(course, [11, 12, 13])
    costs, lost, harm = (np.asarray(of) for of in episodes.outcomes(2))
    np.testing.assert_array_equal(costs, episodes.costs(2))
    np.testing.assert_array_equal(harm[:, 1], 0.0, "it is measured by CUBIC")
    assert (harm[:, 0] > 0).any() and (harm <= 1).all() and (lost >= 0).all() and (lost <= 1).all()
    *_, shares, received = episodes.step([1, 1, 1])
    assert min(received) > 0 and len(shares) == 3
    alone = Episodes(dataclasses.replace(SETTINGS, rivals=(0,)).course(), [11])
    assert alone.step([0])[-1] == [0.0]
