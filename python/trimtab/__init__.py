"""Congestion control steered by quality of experience: comparisons, and environments for learning.

The simulator is Rust; this package compares congestion controls on it, makes Gymnasium environments of it
and trains policies on them::

    import gymnasium, trimtab
    runs = trimtab.compare(app="download", cc=["cubic", "mortise"], traces="cellular:seed=1")
    env = gymnasium.make("trimtab/Select-v0")
    many = gymnasium.make_vec("trimtab/Select-v0", num_envs=8, vectorization_mode="vector_entry_point")

Read first: ``comparison.py``; for learning ``course.py`` for what episodes are drawn from, then ``envs.py``.
"""

from gymnasium.envs.registration import register

from trimtab.comparison import Comparison, Table, compare, schemes
from trimtab.course import Settings
from trimtab.envs import SelectEnv, SelectVectorEnv
from trimtab.policy import Policy

__all__ = [
    "Comparison",
    "Policy",
    "SelectEnv",
    "SelectVectorEnv",
    "Settings",
    "Table",
    "compare",
    "schemes",
]

register(
    id="trimtab/Select-v0",
    entry_point="trimtab.envs:SelectEnv",
    vector_entry_point="trimtab.envs:SelectVectorEnv",
)
