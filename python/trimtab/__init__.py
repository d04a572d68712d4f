"""Congestion control steered by quality of experience: comparisons, and environments for learning.

The simulator is Rust; this package compares congestion controls on it, makes Gymnasium environments of it
and trains policies on them::

    import gymnasium, trimtab
    runs = trimtab.compare(app="download", cc=["cubic", "mortise"], traces="cellular:seed=1")
    env = gymnasium.make("trimtab/Rate-v0", traces="cellular:seed=1", reward="aurora")
    many = gymnasium.make_vec("trimtab/Select-v0", num_envs=8, vectorization_mode="vector_entry_point")

Read first: ``comparison.py``; ``reproduction.py`` for the papers' figures; ``cluster/`` for many machines;
``task.py`` for agents that set a rate or a window, then ``intervals.py``; for the choice of algorithms
``course.py`` for what episodes are drawn from, then ``envs.py``.
"""

from gymnasium.envs.registration import register

from trimtab.comparison import Comparison, Table, compare, schemes
from trimtab.course import Settings
from trimtab.envs import SelectEnv, SelectVectorEnv
from trimtab.intervals import RateEnv, RateVectorEnv, WindowEnv, WindowVectorEnv
from trimtab.policy import Policy
from trimtab.reproduction import reproduce
from trimtab.task import Task

__all__ = [
    "Comparison",
    "Policy",
    "RateEnv",
    "RateVectorEnv",
    "SelectEnv",
    "SelectVectorEnv",
    "Settings",
    "Table",
    "Task",
    "WindowEnv",
    "WindowVectorEnv",
    "compare",
    "reproduce",
    "schemes",
]

register(
    id="trimtab/Select-v0",
    entry_point="trimtab.envs:SelectEnv",
    vector_entry_point="trimtab.envs:SelectVectorEnv",
)
register(
    id="trimtab/Rate-v0",
    entry_point="trimtab.intervals:RateEnv",
    vector_entry_point="trimtab.intervals:RateVectorEnv",
)
register(
    id="trimtab/Window-v0",
    entry_point="trimtab.intervals:WindowEnv",
    vector_entry_point="trimtab.intervals:WindowVectorEnv",
)
