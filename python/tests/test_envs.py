"""The environments keep Gymnasium's contract, and say what the simulator says."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import trimtab

#: Small and quick: two-second periods over a few links.
SMALL = trimtab.Settings(period_ms=2_000, periods=4, generated=8, conditions=20)


def test_the_single_environment_passes_the_checker() -> None:
    env = gym.make("trimtab/Select-v0", settings=SMALL)
    with warnings.catch_warnings():
        # States have no bounds that the monitor could promise; the checker only remarks on it.
        warnings.filterwarnings("error")
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value")
        check_env(env.unwrapped)


def test_equal_seeds_give_equal_episodes() -> None:
    def run(seed: int) -> list[float]:
        env = trimtab.SelectEnv(SMALL)
        first, _ = env.reset(seed=seed)
        steps = [env.step(action) for action in (1, 3, 0)]
        assert [step[3] for step in steps] == [False, False, True], "four periods, the first in reset"
        return [*first.tolist(), *(step[1] for step in steps)]

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_an_episode_can_be_asked_for_by_number() -> None:
    env = trimtab.SelectEnv(SMALL)
    first, info = env.reset(seed=1)
    again, _ = env.reset(seed=2, options={"episode": info["episode"]})
    np.testing.assert_array_equal(first, again)


def test_the_reward_is_the_log_ratio_of_completion_times() -> None:
    env = trimtab.SelectEnv(trimtab.Settings(period_ms=4_000, periods=8, generated=8, conditions=20))
    env.reset(seed=3)
    _, _, _, _, before = env.step(1)
    _, reward, _, _, after = env.step(1)
    assert reward == pytest.approx(np.log(before["completion_s"] / after["completion_s"]))


def test_the_vector_environment_is_many_single_ones() -> None:
    many = gym.make_vec(
        "trimtab/Select-v0", num_envs=3, vectorization_mode="vector_entry_point", settings=SMALL
    )
    states, info = many.reset(seed=4)
    assert states.shape == (3, many.single_observation_space.shape[0])  # type: ignore[index]
    singles = [trimtab.SelectEnv(SMALL) for _ in range(3)]
    for i, single in enumerate(singles):
        first, _ = single.reset(options={"episode": info["episode"][i]})
        np.testing.assert_array_equal(first, states[i])
    for actions in ([0, 1, 2], [3, 1, 0]):
        states, rewards, _, truncated, _ = many.step(np.asarray(actions))
        for i, single in enumerate(singles):
            state, reward, *_ = single.step(actions[i])
            np.testing.assert_array_equal(state, states[i])
            assert reward == rewards[i]
        assert not truncated.any()
    states, _, _, truncated, info = many.step(np.asarray([1, 1, 1]))
    assert truncated.all(), "all time is up"
    last, *_ = singles[0].step(1)
    np.testing.assert_array_equal(info["final_obs"][0], last)
    assert not np.array_equal(states[0], last), "a new connection has begun"


def test_numbers_of_numpy_are_seeds() -> None:
    for env in (trimtab.SelectEnv(SMALL), trimtab.SelectVectorEnv(2, SMALL)):
        want, _ = env.reset(seed=9)
        other, _ = env.reset(seed=8)
        assert not np.array_equal(other, want)
        got, _ = env.reset(seed=np.int64(9))
        np.testing.assert_array_equal(got, want)


def test_each_connection_may_have_a_seed_of_its_own() -> None:
    many = trimtab.SelectVectorEnv(2, SMALL)
    states, _ = many.reset(seed=[6, np.int64(5)])
    singles = [trimtab.SelectEnv(SMALL) for _ in range(2)]
    for single, seed, state in zip(singles, (6, 5), states, strict=True):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], state)
    for _ in range(3):
        states, *_ = many.step(np.asarray([0, 1]))
    for single, state in zip(singles, states, strict=True):
        np.testing.assert_array_equal(single.reset()[0], state, "the next connection is the same too")
    with pytest.raises(ValueError, match="2 connections and 3 seeds"):
        many.reset(seed=[1, 2, 3])


def test_the_action_is_the_algorithm_that_runs() -> None:
    env = trimtab.SelectEnv(trimtab.Settings(generated=8, conditions=20, start="cubic"))
    state, _ = env.reset(seed=2)
    names = env.course.features
    assert state[names.index("cca_cubic")] == 1
    state, *_ = env.step(env.settings.algorithms.index("bbr"))
    assert state[names.index("cca_bbr")] == 1 and state[names.index("cca_cubic")] == 0


def test_two_settings_of_one_algorithm_are_told_apart() -> None:
    copas = ("cubic", "copa:delta=0.1", "copa:delta=0.5")
    env = trimtab.SelectEnv(trimtab.Settings(algorithms=copas, generated=8, conditions=20, start="cubic"))
    state, _ = env.reset(seed=2)
    first = env.course.features.index("candidate_0")
    assert env.course.features[first:] == ["candidate_0", "candidate_1", "candidate_2"]
    assert state[first:].tolist() == [1, 0, 0]
    for action in (2, 1, 2):
        state, *_ = env.step(action)
        assert state[first:].tolist() == [float(i == action) for i in range(3)]
        assert state[env.course.features.index("cca_copa")] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (trimtab.Settings(algorithms=("cubic", "nosuch")), "nosuch"),
        (trimtab.Settings(traffic=("voice",)), "web, web-burst, download"),
        (trimtab.Settings(start="vegas"), "none of the algorithms"),
        (trimtab.Settings(generated=0), "at least one of the links"),
        (trimtab.Settings(split="both"), "train, validate or test"),
        (trimtab.Settings(rivals=(1,), rival_kinds=("reno",)), "cubic, bbr, bbr3, copa, web, download"),
        (trimtab.Settings(rivals=()), "at least one of the rivals"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: trimtab.Settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings.course()


def test_actions_that_cannot_be_are_refused() -> None:
    env = trimtab.SelectEnv(SMALL)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="there are 4 algorithms"):
        env.step(4)


def test_stable_baselines_takes_it_as_it_is() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="it brings PyTorch: install it to run this test")
    from stable_baselines3.common.env_checker import check_env as check_for_sb3  # noqa: PLC0415

    env = trimtab.SelectEnv(SMALL)
    check_for_sb3(env)
    sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1).learn(32)
