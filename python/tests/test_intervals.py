"""The environments for rates and windows keep Gymnasium's contract, and say what the simulator says."""

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import trimtab
from trimtab.task import ACTIONS, MEASURES, OBSERVATIONS, REWARDS

#: Quick: episodes of three seconds.
SHORT: dict[str, Any] = {"duration": "3s"}
ENVIRONMENTS = ["trimtab/Rate-v0", "trimtab/Window-v0"]


def steps(env: trimtab.RateEnv | trimtab.WindowEnv, action: float, count: int) -> dict[str, Any]:
    """Take the action so often; what the last step said."""
    info: dict[str, Any] = {}
    for _ in range(count):
        *_, info = env.step(action)
    return info


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("interval", ["1rtt", "30ms", "ack"])
def test_the_single_environments_pass_the_checker(name: str, interval: str) -> None:
    env = gym.make(name, interval=interval, **SHORT)
    with warnings.catch_warnings():
        warnings.filterwarnings("error")
        # The ranges of actions are those of the papers, and most measures have no bound.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        warnings.filterwarnings("ignore", message=".*Box observation space (minimum|maximum) value")
        check_env(env.unwrapped)


def test_a_rate_is_what_the_link_carries_or_loses() -> None:
    env = trimtab.RateEnv(action="set", interval="100ms", buffer="100packets")
    env.reset(seed=1)
    below = steps(env, 6.0, 10)
    assert below["throughput_mbps"] == pytest.approx(6.0, rel=0.03)
    assert (below["loss"], below["pace_mbps"], below["capacity_mbps"]) == (0.0, 6.0, 12.0)
    above = steps(env, 15.0, 20)
    assert above["throughput_mbps"] == pytest.approx(12.0, rel=0.03)
    assert above["loss"] == pytest.approx(0.2, abs=0.03), "a fifth of 15 Mbit/s is too much for 12"
    assert above["queue_packets"] > 95


def test_a_window_sets_the_round_trip_time() -> None:
    env = trimtab.WindowEnv(action="set", interval="100ms")
    env.reset(seed=1)
    info = steps(env, 30.0, 10)
    # Little's law: 30 packets of 1500 bytes over 12 Mbit/s are 30 ms.
    assert info["rtt_ms"] == pytest.approx(30.0, abs=3.0)


@pytest.mark.parametrize("kind", [trimtab.RateEnv, trimtab.WindowEnv])
def test_equal_seeds_give_equal_episodes(kind: type[trimtab.RateEnv]) -> None:
    def run(seed: int) -> bytes:
        env = kind(traces="cellular:seed=3", loss="1%", jitter="2ms", next_to="cubic", **SHORT)
        seen, _ = env.reset(seed=seed)
        parts = [seen.tobytes()]
        for action in (1.0, -0.5, 0.3):
            seen, reward, *_ = env.step(action)
            parts += [seen.tobytes(), np.float64(reward).tobytes()]
        return b"".join(parts)

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_an_episode_can_be_asked_for_by_number() -> None:
    env = trimtab.RateEnv(rtt=["20ms", "80ms"], traces="cellular:seed=3", **SHORT)
    first, info = env.reset(seed=1)
    again, _ = env.reset(seed=2, options={"episode": info["episode"]})
    np.testing.assert_array_equal(first, again)
    *_, info = env.step(0.0)
    env.reset(options={"start": 3.0})
    assert env.step(0.0)[-1]["pace_mbps"] == 3.0
    assert {env.paths.describe(i).split("round trip ")[1][:4] for i in range(20)} == {"20ms", "80ms"}


def test_episodes_end_by_time_or_steps() -> None:
    def lasts(**changes: Any) -> int:
        env = trimtab.RateEnv(**changes)
        env.reset(seed=1)
        for count in range(1, 1000):
            _, _, terminated, truncated, _ = env.step(0.0)
            assert not terminated, "the connection could go on"
            if truncated:
                return count
        raise AssertionError("no end")

    assert lasts(duration="1s", interval="100ms") == 10, "the first acknowledgement came before 100 ms"
    assert lasts(steps=7) == 7


def test_rivals_take_their_share() -> None:
    def throughput(**changes: Any) -> float:
        env = trimtab.WindowEnv(action="set", interval="1s", **changes)
        env.reset(seed=1)
        return float(steps(env, 30.0, 8)["throughput_mbps"])

    assert throughput() > 11.0
    # Of a queue of 100 packets that CUBIC fills, 30 packets in flight are a fourth or so.
    assert throughput(next_to="cubic") < 6.0


def test_every_name_of_the_tables_is_taken() -> None:
    assert {"aurora", "orca", "vivace"} <= REWARDS.keys() and {"aurora", "orca"} <= OBSERVATIONS.keys()
    env = trimtab.RateEnv(observe=tuple(MEASURES), history=2, **SHORT)
    seen, _ = env.reset(seed=1)
    assert seen.shape == (2 * len(MEASURES),)
    for _ in range(10):
        seen, *_, info = env.step(1.0)
        assert env.observation_space.contains(seen), dict(zip(MEASURES, seen[-len(MEASURES) :], strict=True))
    for name, (_, (low, high)) in MEASURES.items():
        place = len(MEASURES) + list(MEASURES).index(name)
        assert seen[place] == np.float32(min(max(info[name], low), high)), name
    for reward in REWARDS:
        for action in ACTIONS:
            env = trimtab.RateEnv(reward=reward, action=action, **SHORT)
            env.reset(seed=1)
            assert np.isfinite(env.step(1.0)[1]), (reward, action)


def aurora(info: Any) -> Any:
    """Its formula, by hand."""
    packets = info["throughput_mbps"] * 1e6 / 12e3
    return 1e-3 * (10 * packets - info["rtt_ms"] - 2e3 * info["loss"])


def test_a_reward_may_be_a_function_of_the_measures() -> None:
    named, own = trimtab.RateEnv(**SHORT), trimtab.RateEnv(reward=aurora, **SHORT)
    many = trimtab.RateVectorEnv(2, reward=aurora, **SHORT)
    for env in (named, own):
        env.reset(options={"episode": 3})
    many.reset(options={"episode": 3})
    for action in (4.0, 4.0, -2.0):
        want = named.step(action)[1]
        assert own.step(action)[1] == pytest.approx(want, rel=1e-12)
        np.testing.assert_allclose(many.step(np.full((2, 1), action))[1], want, rtol=1e-12)


@pytest.mark.parametrize(
    ("single", "several"),
    [(trimtab.RateEnv, trimtab.RateVectorEnv), (trimtab.WindowEnv, trimtab.WindowVectorEnv)],
)
def test_the_vector_environment_is_many_single_ones(
    single: type[trimtab.RateEnv], several: type[trimtab.RateVectorEnv]
) -> None:
    changes: dict[str, Any] = {"traces": ["cellular:seed=1", "constant:5Mbit/s"], "steps": 4}
    many = several(5, **changes)
    seen, info = many.reset(seed=4)
    assert seen.shape == many.observation_space.shape
    singles = [single(**changes) for _ in range(5)]
    for i, env in enumerate(singles):
        np.testing.assert_array_equal(env.reset(options={"episode": info["episode"][i]})[0], seen[i])
    for step in range(4):
        actions = np.random.default_rng(step).uniform(-1, 1, (5, 1)).astype(np.float32)
        seen, rewards, terminated, truncated, info = many.step(actions)
        assert not terminated.any() and truncated.all() == (step == 3)
        for i, env in enumerate(singles):
            want, reward, _, _, measures = env.step(actions[i])
            np.testing.assert_array_equal(info["final_obs"][i] if truncated[i] else seen[i], want)
            assert reward == rewards[i] and measures["rtt_ms"] == info["rtt_ms"][i]
    begun = info["final_obs"][0]
    assert not np.array_equal(seen[0], begun), "a new connection has begun"


def test_each_connection_may_have_a_seed_of_its_own() -> None:
    many = trimtab.RateVectorEnv(2, traces="cellular:seed=1", **SHORT)
    seen, _ = many.reset(seed=[6, np.int64(5)])
    for seed, row in zip((6, 5), seen, strict=True):
        np.testing.assert_array_equal(
            trimtab.RateEnv(traces="cellular:seed=1", **SHORT).reset(seed=seed)[0], row
        )
    with pytest.raises(ValueError, match="2 connections and 3 seeds"):
        many.reset(seed=[1, 2, 3])


#: An environment, and how to fork it.
Forks = Callable[[Any], Any]


@pytest.mark.parametrize("interval", ["1rtt", "ack"])
def test_a_fork_with_equal_actions_is_equal_to_the_last_byte(interval: str) -> None:
    env = trimtab.RateEnv(
        traces="cellular:seed=2", loss="1%", jitter="3ms", next_to=["bbr"], interval=interval, duration="5s"
    )
    env.reset(seed=3)
    steps(env, 1.0, 12)
    fork, other = env.fork(), env.fork()
    differs = False
    for i in range(30):
        action = float(np.sin(i))
        ours, theirs, elsewhere = env.step(action), fork.step(action), other.step(action + 2)
        assert ours[0].tobytes() == theirs[0].tobytes()
        assert ours[1:] == theirs[1:], "reward, ends, and every measure"
        differs |= ours[4] != elsewhere[4]
    assert differs, "other actions lead elsewhere"
    assert env.reset()[0].tobytes() == fork.reset()[0].tobytes(), "the next connection is the same, too"


def test_a_fork_of_many_tries_as_many_actions() -> None:
    many = trimtab.RateVectorEnv(2, action="set", interval="200ms", **SHORT)
    many.reset(seed=1)
    forks = many.fork(3)
    assert forks.num_envs == 6
    tried = np.asarray([[2.0], [4.0], [8.0]] * 2)
    *_, info = forks.step(tried)
    np.testing.assert_allclose(info["pace_mbps"], tried[:, 0])
    *_, untouched = many.step(np.asarray([[4.0], [4.0]]))
    np.testing.assert_array_equal(untouched["throughput_mbps"], info["throughput_mbps"][[1, 4]])


def test_a_course_of_actions_is_worth_the_sum_of_its_steps() -> None:
    env = trimtab.RateEnv(traces="cellular:seed=1")
    env.reset(seed=1)
    fork = env.fork()
    actions = np.linspace(-1, 2, 40, dtype=np.float32)
    assert fork.play(actions) == pytest.approx(sum(env.step(a)[1] for a in actions), rel=1e-12)
    whole = trimtab.RateEnv(traces="cellular:seed=1", duration="2s")
    with pytest.raises(RuntimeError, match="reset the environment first"):
        whole.play(actions)
    whole.reset(seed=1)
    fork, earned, over = whole.fork(), 0.0, False
    while not over:
        _, reward, _, over, _ = whole.step(np.float32(1))
        earned += reward
    assert fork.play(np.ones(10_000, dtype=np.float32)) == pytest.approx(earned, rel=1e-12)
    with pytest.raises(ValueError, match="by name only"):
        trimtab.RateEnv(reward=aurora).play(actions)


def test_a_scenario_gives_the_paths(tmp_path: Any) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        'cc = ["cubic", "bbr"]\ntraces = ["constant:9Mbit/s"]\nduration = "2s"\n[[app]]\nkind = "web"\n'
        '[[rivals]]\nname = "alone"\n[[rivals]]\nname = "cubic"\n[[rivals.competitor]]\ncc = "cubic"\n'
    )
    env = trimtab.RateEnv(scenario=file, interval="500ms")
    assert len(env.paths) == 2
    assert "constant:9Mbit/s" in env.paths.describe(0)
    env.reset(seed=1)
    assert [env.step(0.0)[3] for _ in range(4)] == [False, False, False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"traces": "constant:12"}, "needs a unit"),
        ({"traces": "no/such/file"}, "no trace file matches"),
        ({"next_to": "nosuch"}, "unknown congestion control"),
        ({"next_to": "omniscient"}, "cannot compete"),
        ({"reward": "money"}, "there are aurora, orca, vivace"),
        ({"observe": ("rtt_ms", "mood")}, "there are throughput_mbps"),
        ({"action": "jump"}, "there are set, aurora, orca"),
        ({"interval": "1"}, "30ms"),
        ({"low": 0.0}, "0 < low < high"),
        ({"history": 0}, "at least one measure"),
    ],
)
def test_tasks_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trimtab.RateEnv(**changes)


def test_actions_that_cannot_be_are_refused() -> None:
    env = trimtab.RateEnv(**SHORT)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0.0)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="not a number"):
        env.step(float("nan"))
    with pytest.raises(ValueError, match="2 actions for 1 agents"):
        env.step([0.0, 1.0])
    with pytest.raises(TypeError, match="nosuch"):
        trimtab.RateEnv(nosuch=1)


def test_agents_that_share_a_link_pass_pettingzoos_test() -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import parallel_api_test  # noqa: PLC0415 - an extra

    from trimtab.parallel import LinkParallelEnv  # noqa: PLC0415 - an extra

    parallel_api_test(LinkParallelEnv(3, **SHORT), num_cycles=100)
    env = LinkParallelEnv(2, action="set", interval="200ms")
    env.reset(seed=1)
    for _ in range(15):
        *_, infos = env.step({"agent_0": [12.0], "agent_1": [4.0]})
    got = [infos[agent]["throughput_mbps"] for agent in env.agents]
    assert sum(got) == pytest.approx(12.0, rel=0.05) and got[0] > 2 * got[1]
    fork = env.fork()
    actions = {"agent_0": [3.0], "agent_1": [3.0]}
    assert env.step(actions)[4] == fork.step(actions)[4]
