"""What each choice comes to, by who says it: one future, several, or a twin's worlds."""

import dataclasses
from pathlib import Path

import numpy as np

from trimtab._native import Course, Episodes
from trimtab.train import counterfactual
from trimtab.train.checkpoint import settings_of
from trimtab.train.options import Training
from trimtab.train.teacher import Teacher, Tried

SETTINGS = Training(
    method="counterfactual",
    algorithms="cubic,bbr",
    episodes=4,
    periods=3,
    parallel=2,
    period_ms=2_000,
    horizon=1,
    generated=10,
    conditions=20,
    members=1,
)
#: The first is as large as they come.
SEEDS = [2**64 - 1, 4]


def tried(settings: Training, course: Course) -> list[list[Tried]]:
    teacher, episodes = Teacher(settings, course), Episodes(course, SEEDS)
    teacher.begin(episodes, SEEDS)
    first = teacher.outcomes(episodes, 0)
    episodes.step([0, 1])
    teacher.observe(episodes)
    return [first, teacher.outcomes(episodes, 1)]


def test_choices_are_tried_in_the_future_of_ones_choice() -> None:
    course = SETTINGS.course().course()
    assert tried(SETTINGS, course)[0] == [Episodes(course, SEEDS).outcomes(1)]
    for changed in ({"futures": 3}, {"futures": 3, "teacher": "twin"}):
        settings = dataclasses.replace(SETTINGS, **changed)
        both = tried(settings, course)
        assert both == tried(settings, course), "the same each time"
        for futures in both:
            assert np.asarray(futures).shape == (3, 3, 2, 2), "future, kind, connection, choice"
            costs = [str(of[0]) for of in futures]
            assert len(set(costs)) == 3, "three futures"


def test_lessons_have_a_row_for_each_future(tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, out=tmp_path, futures=2, teacher="twin")
    _, said = counterfactual.train(settings)
    decisions, odd = divmod(said["decisions"], 2 * settings.parallel)
    # Two rounds of two periods, of which one is tried at least, with two choices in two worlds.
    assert odd == 0 and 2 <= decisions <= 4
    assert said["periods"] == 2 * settings.parallel * 2 + decisions * settings.parallel * 4


def test_a_checkpoint_says_who_taught_where_that_is_not_the_true_future() -> None:
    assert {"teacher", "futures"} & {*settings_of(SETTINGS)} == set()
    said = settings_of(dataclasses.replace(SETTINGS, futures=4))
    assert (said["teacher"], said["futures"]) == ("path", "4")
