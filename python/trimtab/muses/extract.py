"""Stage 2: trees that do what the LSTM does, each for networks of one kind (Muses, section III-E and F)."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score, silhouette_score
from sklearn.tree import DecisionTreeClassifier

from trimtab._native import MusesRollouts
from trimtab.muses import lstm
from trimtab.muses.drive import NONE, drive, environments, taught
from trimtab.muses.options import Stages, numbers
from trimtab.muses.trees import ACTIONS, BINS, COMPONENTS, LEAF, WEIGHT_POINT, Node, Trees, decide

#: A selection looks at the states of T_l = 10 s (Muses, section III-F).
STATES = 1_000
#: Share of states beyond the first and beyond the last segment of a component; they count in these.
OUTSIDE = 0.005
#: What a component is measured in: parts of a standard deviation.
UNIT = 1_024
#: Of centres and weights of a selection.
SCALE = 1 << 20
#: Flows that no tree is fitted to: one in so many.
HELD_OUT = 5
#: The search for a tree's settings looks at no more states than this.
SEARCHED = 200_000
#: What a group's tree is fitted to besides its own states: some of all, with this much weight in sum, so that
#: it does what is right on the whole where its own group never was. Without them a tree may double a window
#: that its group never saw as large.
OTHERS = 100_000
OTHERS_WEIGHT = 0.2
#: The distance of a centre that is never the nearest.
NEVER = (1 << 31) - 1
SPLITS = (2, 200, 50, 1_000)
DECREASES = (0.0, 1e-5, 1e-4, 1e-6)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class Demonstrations:
    """What the LSTM did: a row for each flow; an action of NONE is an interval that was not reached."""

    states: NDArray[np.int16]
    actions: NDArray[np.int8]

    def of(self, rows: Ints) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
        """Give the states and actions of these flows, one after the other."""
        actions = self.actions[rows]
        return self.states[rows][actions != NONE], actions[actions != NONE]


@dataclass
class Projection:
    """The components of a state in whole numbers, as the file's reader computes them."""

    weights: Ints
    origin: Ints
    width: Ints

    @classmethod
    def of(cls, states: NDArray[np.int16]) -> Projection:
        """Find the components of these states, by standard deviations of each signal."""
        values = states.astype(np.float64)
        scale = np.maximum(values.std(axis=0), 1.0)
        _, vectors = np.linalg.eigh(np.cov((values / scale).T))
        chosen = vectors[:, ::-1][:, :COMPONENTS].T
        # Which way a component points is chance; it shall not be.
        chosen *= np.sign(chosen[np.arange(COMPONENTS), np.abs(chosen).argmax(axis=1)])[:, None]
        weights = np.rint(chosen / scale * UNIT * (1 << WEIGHT_POINT)).astype(np.int64)
        along = _along(states, weights)
        low, high = np.quantile(along, [OUTSIDE, 1.0 - OUTSIDE], axis=0)
        width = np.maximum(np.ceil((high - low) / BINS), 1).astype(np.int64)
        return cls(weights, np.floor(low).astype(np.int64), width)

    def segments(self, states: NDArray[np.int16]) -> Ints:
        """Give the segment of each component in which each state lies."""
        found = (_along(states, self.weights) - self.origin) // self.width
        return np.asarray(np.clip(found, 0, BINS - 1), np.int64)


def _along(states: NDArray[np.int16], weights: Ints) -> Ints:
    return np.asarray((states.astype(np.int64) @ weights.T) >> WEIGHT_POINT, np.int64)


def gather(stages: Stages, teacher: lstm.Teacher, tree: list[Node] | None, number: int) -> Demonstrations:
    """Ask the LSTM in the states of new flows over the networks of Table II.

    Their delays, losses, buffers and Wi-Fi links are drawn anew; the cellular links are those of training.
    It drives them itself (the paper's way), or a tree does: what a tree does wrong leads to states that the
    LSTM avoids, and there is no telling what to do there unless it is asked (Bastani et al., 2018).
    """
    world = environments(stages, "global", "train")
    random = np.random.default_rng((stages.seed, 2, number))
    states, actions = [], []
    start, done = time.perf_counter(), 0

    def of_tree(seen: NDArray[np.int16], _which: Ints, _best: Ints) -> Ints:
        return decide(tree or [], seen)

    while done < stages.flows:
        count = min(stages.parallel, stages.flows - done)
        seeds = [int(seed) for seed in random.integers(2**62, size=count)]
        rollouts = MusesRollouts(world, seeds, 1, stages.decisions)
        heavy = taught(teacher, count, 1)
        if tree is None:
            flows = drive(rollouts, heavy, 1, stages.decisions)
        else:
            flows = drive(rollouts, of_tree, 1, stages.decisions, asked=heavy)
        states.append(flows.states)
        actions.append(flows.actions)
        done += count
        print(f"{done} of {stages.flows} flows; {time.perf_counter() - start:.0f} s", flush=True)
    return Demonstrations(np.concatenate(states), np.concatenate(actions))


def distributions(shown: Demonstrations, projection: Projection) -> tuple[Floats, Floats]:
    """Give P(f) and P_s(f) of each flow: shares of its states by segment and action, and by segment."""
    flows = len(shown.states)
    joint = np.zeros((flows, COMPONENTS, BINS, ACTIONS))
    for flow in range(flows):
        states, actions = shown.of(np.array([flow]))
        for component, segments in enumerate(projection.segments(states).T):
            cells = np.bincount(segments * ACTIONS + actions, minlength=BINS * ACTIONS)
            joint[flow, component] = cells.reshape(BINS, ACTIONS) / max(1, len(states))
    return joint.reshape(flows, -1), joint.sum(axis=3).reshape(flows, -1)


def cluster(stages: Stages, points: Floats) -> tuple[Floats, Ints, dict[int, float]]:
    """Find the number of clusters with the best silhouette; gives centres, labels and all silhouettes."""
    scores: dict[int, float] = {}
    best: Any = None
    for k in numbers(stages.clusters):
        if k >= len(points):
            break
        means = KMeans(k, n_init=3, random_state=stages.seed).fit(points)
        scores[k] = float(silhouette_score(points, means.labels_)) if len(set(means.labels_)) > 1 else -1.0
        if best is None or scores[k] > scores[best.n_clusters]:
            best = means
    if best is None:
        raise ValueError(f"{len(points)} flows are too few for {stages.clusters} clusters: give more --flows")
    return best.cluster_centers_, best.labels_.astype(np.int64), scores


def fit(
    stages: Stages,
    shown: Demonstrations,
    rows: Ints,
    others: tuple[NDArray[np.int16], NDArray[np.int8]] | None = None,
) -> tuple[list[Node], str]:
    """Fit a tree to these flows, its settings by a search on a part of their states; gives both.

    The search judges by other flows than it fits to: states of one flow are too alike to tell anything.
    """
    random = np.random.default_rng((stages.seed, 3))
    mixed = random.permutation(rows)
    # Of a single flow there is nothing to judge by but itself.
    apart = max(1, len(mixed) // 5)
    judged = _some(random, *shown.of(mixed[:apart]), SEARCHED // 5)
    fitted = _some(random, *shown.of(mixed[apart:] if len(mixed) > 1 else mixed), SEARCHED - SEARCHED // 5)
    best: tuple[float, dict[str, Any]] = (-1.0, {})
    for split, decrease in product(SPLITS[: stages.grid], DECREASES[: stages.grid]):
        wanted: dict[str, Any] = {"min_samples_split": split, "min_impurity_decrease": decrease}
        tree = _classifier(stages, wanted).fit(*fitted)
        right = float((tree.predict(judged[0]) == judged[1]).mean())
        if right > best[0]:
            best = (right, wanted)
    states, actions = shown.of(rows)
    weights = np.ones(len(states))
    if others is not None:
        each = OTHERS_WEIGHT * len(states) / max(1, len(others[0]))
        weights = np.concatenate([weights, np.full(len(others[0]), each)])
        states, actions = np.concatenate([states, others[0]]), np.concatenate([actions, others[1]])
    tree = _classifier(stages, best[1]).fit(states, actions, weights)
    return nodes_of(tree), ", ".join(f"{name} {value}" for name, value in best[1].items())


def _some(
    random: np.random.Generator, states: NDArray[np.int16], actions: NDArray[np.int8], most: int
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Give so many of these states with their actions, or all."""
    chosen = random.permutation(len(states))[:most]
    return states[chosen], actions[chosen]


def _classifier(stages: Stages, settings: dict[str, Any]) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(
        criterion="entropy", max_leaf_nodes=stages.leaves, random_state=stages.seed, **settings
    )


def nodes_of(classifier: DecisionTreeClassifier) -> list[Node]:
    """Write a tree as nodes, parents first; parts that all do the same are one leaf."""
    tree, actions = classifier.tree_, classifier.classes_
    nodes: list[Node] = []

    def leaf_of(at: int) -> int | None:
        """Give the action of all leaves below, if it is one."""
        left, right = tree.children_left[at], tree.children_right[at]
        if left < 0:
            return int(actions[tree.value[at][0].argmax()])
        both = leaf_of(left), leaf_of(right)
        return both[0] if both[0] == both[1] else None

    def write(at: int) -> None:
        action = leaf_of(at)
        if action is not None:
            nodes.append((LEAF | action, 0, 0))
            return
        here = len(nodes)
        nodes.append((0, 0, 0))
        write(tree.children_left[at])
        # States are whole numbers: at most the threshold is at most its whole part.
        nodes[here] = (int(tree.feature[at]), int(np.floor(tree.threshold[at])), len(nodes))
        write(tree.children_right[at])

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    write(0)
    sys.setrecursionlimit(limit)
    return nodes


def extract(stages: Stages, teacher: lstm.Teacher) -> tuple[Trees, Trees, dict[str, Any]]:
    """Distil the trees, and the one global tree (TreeG); also gives what there is to say of them."""
    shown = gather(stages, teacher, None, 0)
    for number in range(1, stages.passes + 1):
        tree, _ = fit(stages, shown, np.arange(len(shown.states)))
        more = gather(stages, teacher, tree, number)
        shown = Demonstrations(
            np.concatenate([shown.states, more.states]), np.concatenate([shown.actions, more.actions])
        )
    flows = len(shown.states)
    # Nothing is fitted to the others, neither trees nor what selects among them.
    is_kept = np.arange(flows) % HELD_OUT != 0
    kept, held = np.nonzero(is_kept)[0], np.nonzero(~is_kept)[0]
    everywhere = shown.of(kept)
    projection = Projection.of(everywhere[0])
    points, margins = distributions(shown, projection)
    print("clustering", flush=True)
    centres, labels, scores = cluster(stages, points[kept])
    k = len(centres)
    matrix = np.linalg.lstsq(margins[kept], points[kept], rcond=None)[0].T
    weights = np.rint(2.0 * centres @ matrix * SCALE).astype(np.int64)
    norms = np.rint((centres**2).sum(axis=1) * SCALE).astype(np.int64)
    whole, found = fit(stages, shown, kept)
    some = np.random.default_rng((stages.seed, 5)).permutation(len(everywhere[0]))[:OTHERS]
    others = (everywhere[0][some], everywhere[1][some])
    nearest = distances(points[held], centres).argmin(axis=1)
    trees, rows = [], []
    for j in range(k):
        mine, apart = kept[labels == j], held[nearest == j]
        # Where flows are equal there may be fewer groups than asked for.
        tree, searched = fit(stages, shown, mine if len(mine) else kept, others)
        trees.append(tree)
        rows.append(
            {
                "flows": len(mine) + len(apart),
                **agreement(tree, *shown.of(apart)),
                "nodes": len(tree),
                "search": searched,
            }
        )
        print(f"tree {j + 1} of {k}: {rows[-1]}", flush=True)
    low, high = everywhere[0].min(axis=0), everywhere[0].max(axis=0)
    common = {"low": low, "high": high, **vars(projection), "states": STATES}
    # While nothing is known of the path the global tree is asked; it is never the nearest.
    many = Trees(
        norms=np.append(norms, NEVER),
        centres=np.append(weights, np.zeros_like(weights[:1]), axis=0),
        nodes=[*trees, whole],
        first=k,
        **common,
    )
    one = Trees(norms=norms[:1], centres=weights[:1], nodes=[whole], first=0, **common)
    about = {
        "flows": flows,
        "held": len(held),
        "silhouettes": scores,
        "clusters": rows,
        "treeg": {**agreement(whole, *shown.of(held)), "nodes": len(whole), "search": found},
        "top2": top_two(points[held], margins[held], centres, norms, weights),
        "bytes": (len(many.pack()), len(one.pack())),
    }
    return many, one, about


def agreement(
    tree: list[Node], states: NDArray[np.int16], actions: NDArray[np.int8]
) -> dict[str, float | None]:
    """Give how often a tree does what the LSTM did, and the F1 score, the mean over actions."""
    if not len(states):
        return {"agreement": None, "f1": None}
    done = decide(tree, states)
    return {
        "agreement": float((done == actions).mean()),
        "f1": float(f1_score(actions, done, average="macro", zero_division=0.0)),
    }


def distances(points: Floats, centres: Floats) -> Floats:
    """Give the squared distance of each point to each centre."""
    return np.asarray(((points[:, None, :] - centres) ** 2).sum(axis=2), np.float64)


def top_two(points: Floats, margins: Floats, centres: Floats, norms: Ints, weights: Ints) -> float:
    """Give the share of flows whose selected centre is one of the two that are nearest to P(f)."""
    chosen = (norms - margins @ weights.T).argmin(axis=1)
    nearest = distances(points, centres).argsort(axis=1, kind="stable")[:, :2]
    return float((nearest == chosen[:, None]).any(axis=1).mean())
