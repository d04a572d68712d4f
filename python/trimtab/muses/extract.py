"""Stage 2: trees that do what the LSTM does, each for networks of one kind (Muses, section III-E and F)."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score, silhouette_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from trimtab._native import MusesRollouts
from trimtab.muses import lstm
from trimtab.muses.chosen import Several, by_one
from trimtab.muses.drive import NONE, SHARING, WIRED, drive, environments, taught
from trimtab.muses.inputs import INPUTS, SIGNALS, inputs
from trimtab.muses.options import Stages, numbers
from trimtab.muses.trees import (
    ACTIONS,
    BINS,
    COMPONENTS,
    FACTOR_ONE,
    FACTORS,
    LEAF,
    WEIGHT_POINT,
    Node,
    Trees,
    actions_of,
    decide,
)

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
#: The search for a tree's settings looks at no more states than this, and a tree is fitted to no more.
SEARCHED = 100_000
FITTED = 500_000
#: The silhouette is that of so many flows.
SILHOUETTE = 2_000
#: The logarithm of what each action multiplies the window by.
RATIOS = np.log2([1 / 2, 1 / 1.2, 1 / 1.05, 1.0, 1.05, 1.2, 2.0])
#: What a group's tree is fitted to besides its own states: some of all, with this much weight in sum, so that
#: it does what is right on the whole where its own group never was. Without them a tree may double a window
#: that its group never saw as large.
OTHERS = 100_000
OTHERS_WEIGHT = 0.2
#: The largest one-way delay of the networks that are farther than those of Table II, in ms.
FAR_MS = 500
#: The distance of a centre that is never the nearest.
NEVER = (1 << 31) - 1
SPLITS = (2, 200, 50, 1_000)
DECREASES = (0.0, 1e-5, 1e-4, 1e-6)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class Demonstrations:
    """What the LSTM did: a row for each flow; an action of NONE is an interval that was not reached."""

    inputs: NDArray[np.int16]
    actions: NDArray[np.int8]

    def of(self, rows: Ints) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
        """Give the inputs and actions of these flows, one after the other."""
        actions = self.actions[rows]
        return self.inputs[rows][actions != NONE], actions[actions != NONE]

    def with_more(self, more: Demonstrations) -> Demonstrations:
        """Give these and those."""
        return Demonstrations(
            np.concatenate([self.inputs, more.inputs]), np.concatenate([self.actions, more.actions])
        )


@dataclass
class Projection:
    """The components of a state in whole numbers, as the file's reader computes them."""

    weights: Ints
    origin: Ints
    width: Ints

    @classmethod
    def of(cls, states: NDArray[np.int16]) -> Projection:
        """Find the components of these states, by standard deviations of each signal."""
        states = states[:, :SIGNALS]
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
    return np.asarray((states[:, :SIGNALS].astype(np.int64) @ weights.T) >> WEIGHT_POINT, np.int64)


def gather(
    stages: Stages, teacher: lstm.Teacher, by: list[Node] | Trees | None, number: int
) -> tuple[Demonstrations, Ints]:
    """Ask the LSTM in the states of new flows over the networks of Table II.

    Their delays, losses, buffers and Wi-Fi links are drawn anew; the cellular links are those of training.
    On a part of them several flows share a link, and a part of them is farther away than Table II has it: an
    LSTM carries what it knows to longer delays better than a tree that never saw any.
    It drives them itself (the paper's way), or a tree does:
    what a tree does wrong leads to states that the LSTM avoids, and there is no telling what to do there
    unless it is asked (Bastani et al., 2018). Where
    several trees drive, what counts is what comes after their first choice. Also gives the tree of each flow.
    """
    several = isinstance(by, Trees)
    # Half the flows, twice as long.
    total = max(1, stages.flows // 2) if several else stages.flows
    decisions = stages.decisions * (2 if several else 1)
    worlds = [environments(stages, setting, "train", decisions) for setting in ("global", WIRED)]
    away = environments(replace(stages, delay_max_ms=FAR_MS), "global", "train", decisions)
    random = np.random.default_rng((stages.seed, 2, number))
    seen, actions, chosen = [], [], []
    start, done = time.perf_counter(), 0
    batches, shared, far = 0, 0, 0
    sizes = random.permutation(SHARING)
    while done < total:
        count = min(stages.parallel, total - done)
        batches += 1
        # The share of sharing is even, whatever is drawn.
        each, world = 1, worlds[0]
        if int(batches * stages.sharing) > shared:
            each, world = int(sizes[shared % len(sizes)]), worlds[shared % len(worlds)]
            shared += 1
        elif int(batches * stages.far) > far:
            world = away
            far += 1
        networks = -(-count // each)
        count = networks * each
        seeds = [int(seed) for seed in random.integers(2**62, size=networks)]
        rollouts = MusesRollouts(world, seeds, each, decisions * each)
        heavy = taught(teacher, networks, each)
        trees = np.zeros(count, np.int64)
        if by is None:
            flows = drive(rollouts, heavy, each, decisions)
        elif isinstance(by, Trees):
            light = Several(by, networks, each, stages.decisions)
            flows = drive(rollouts, light.act, each, decisions, asked=heavy)
            trees = light.trees
        else:
            flows = drive(rollouts, by_one(by, networks, each), each, decisions, asked=heavy)
        known = inputs(flows.states)[
            :, -stages.decisions :, : INPUTS if stages.inputs == "memory" else SIGNALS
        ]
        done_here = flows.actions[:, -stages.decisions :]
        # A flow that others left no room may not have come so far.
        came = (done_here != NONE).any(axis=1)
        seen.append(known[came])
        actions.append(done_here[came])
        chosen.append(trees[came])
        done += count
        print(f"{done} of {total} flows; {time.perf_counter() - start:.0f} s", flush=True)
    return Demonstrations(np.concatenate(seen), np.concatenate(actions)), np.concatenate(chosen)


def distributions(shown: Demonstrations, projection: Projection) -> tuple[Floats, Floats]:
    """Give P(f) and P_s(f) of each flow: shares of its states by segment and action, and by segment."""
    flows = len(shown.inputs)
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
        scores[k] = _silhouette(stages, points, means.labels_)
        if best is None or scores[k] > scores[best.n_clusters]:
            best = means
    if best is None:
        raise ValueError(f"{len(points)} flows are too few for {stages.clusters} clusters: give more --flows")
    return best.cluster_centers_, best.labels_.astype(np.int64), scores


def _silhouette(stages: Stages, points: Floats, labels: Any) -> float:
    if len(set(labels)) < 2:
        return -1.0
    some = np.random.default_rng((stages.seed, 6)).permutation(len(points))[:SILHOUETTE]
    if len(set(labels[some])) < 2:
        return -1.0
    return float(silhouette_score(points[some], labels[some]))


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
    judged = some(random, *shown.of(mixed[:apart]), SEARCHED // 5)
    fitted = some(random, *shown.of(mixed[apart:] if len(mixed) > 1 else mixed), SEARCHED - SEARCHED // 5)
    best: tuple[float, dict[str, Any]] = (-np.inf, {})
    for split, decrease in product(SPLITS[: stages.grid], DECREASES[: stages.grid]):
        wanted: dict[str, Any] = {"min_samples_split": split, "min_impurity_decrease": decrease}
        tree = nodes_of(_fitted(stages, wanted, *fitted))
        score = _score(stages, decide(tree, judged[0]), judged[1])
        if score > best[0]:
            best = (score, wanted)
    states, actions = some(random, *shown.of(rows), FITTED)
    weights = np.ones(len(states))
    if others is not None:
        each = OTHERS_WEIGHT * len(states) / max(1, len(others[0]))
        weights = np.concatenate([weights, np.full(len(others[0]), each)])
        states, actions = np.concatenate([states, others[0]]), np.concatenate([actions, others[1]])
    tree = _fitted(stages, best[1], states, actions, weights)
    return nodes_of(tree), ", ".join(f"{name} {value}" for name, value in best[1].items())


def _score(stages: Stages, done: Ints, actions: NDArray[np.int8]) -> float:
    """Say how good these factors are beside what the LSTM did; more is better."""
    if stages.criterion == "entropy":
        return float((actions_of(done) == actions).mean())
    return -float(((np.log2(done / FACTOR_ONE) - RATIOS[actions]) ** 2).mean())


def some(
    random: np.random.Generator, states: NDArray[np.int16], actions: NDArray[np.int8], most: int
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Give so many of these states with their actions, or all."""
    chosen = random.permutation(len(states))[:most]
    return states[chosen], actions[chosen]


def _fitted(
    stages: Stages,
    settings: dict[str, Any],
    seen: NDArray[np.int16],
    actions: NDArray[np.int8],
    weights: Floats | None = None,
) -> Any:
    """Fit a tree to actions, or to the logarithms of what they multiply the window by.

    To an entropy all actions are equally wrong beside the right one, be it a step of 5 % or a halving.
    """
    common: dict[str, Any] = {"max_leaf_nodes": stages.leaves, "random_state": stages.seed, **settings}
    if stages.criterion == "entropy":
        return DecisionTreeClassifier(criterion="entropy", **common).fit(seen, actions, weights)
    return DecisionTreeRegressor(**common).fit(seen, RATIOS[actions], weights)


def nodes_of(fitted: Any) -> list[Node]:
    """Write a tree as nodes, parents first; parts that all do the same are one leaf."""
    tree = fitted.tree_
    if isinstance(fitted, DecisionTreeClassifier):
        done = FACTORS[fitted.classes_[tree.value[:, 0].argmax(axis=1)]]
    else:
        done = np.rint(np.exp2(tree.value[:, 0, 0]) * FACTOR_ONE).astype(np.int64)
    nodes: list[Node] = []

    def leaf_of(at: int) -> int | None:
        """Give the factor of all leaves below, if it is one."""
        left, right = tree.children_left[at], tree.children_right[at]
        if left < 0:
            return int(done[at])
        both = leaf_of(left), leaf_of(right)
        return both[0] if both[0] == both[1] else None

    def write(at: int) -> None:
        factor = leaf_of(at)
        if factor is not None:
            nodes.append((LEAF, 0, factor))
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
    shown, _ = gather(stages, teacher, None, 0)
    for number in range(1, stages.passes + 1):
        tree, _ = fit(stages, shown, np.arange(len(shown.inputs)))
        more, _ = gather(stages, teacher, tree, number)
        shown = shown.with_more(more)
    flows = len(shown.inputs)
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
    low, high = everywhere[0].min(axis=0)[:SIGNALS], everywhere[0].max(axis=0)[:SIGNALS]
    common = {"low": low, "high": high, **vars(projection), "states": STATES, "inputs": shown.inputs.shape[2]}

    def fit_all(shown: Demonstrations, kept: Ints, labels: Ints) -> tuple[Trees, list[str]]:
        whole, found = fit(stages, shown, kept)
        seen, actions = shown.of(kept)
        others = some(np.random.default_rng((stages.seed, 5)), seen, actions, OTHERS)
        trees, settings = [], []
        for j in range(k):
            # Where flows are equal there may be fewer groups than asked for.
            mine = kept[labels == j] if (labels == j).any() else kept
            tree, searched = fit(stages, shown, mine, others)
            trees.append(tree)
            settings.append(searched)
            print(f"tree {j + 1} of {k}: {len(tree)} nodes of {len(mine)} flows, {searched}", flush=True)
        # While nothing is known of the path the global tree is asked; it is never the nearest.
        many = Trees(
            norms=np.append(norms, NEVER),
            centres=np.append(weights, np.zeros_like(weights[:1]), axis=0),
            nodes=[*trees, whole],
            first=k,
            **common,
        )
        return many, [*settings, found]

    many, settings = fit_all(shown, kept, labels)
    mine = {j: int((labels == j).sum()) for j in range(k)}
    if stages.passes:
        # What a group's tree does wrong is corrected, too.
        more, chosen = gather(stages, teacher, many, stages.passes + 1)
        more_rows = np.arange(flows, flows + len(more.inputs))
        all_ = shown.with_more(more)
        many, settings = fit_all(all_, np.append(kept, more_rows), np.append(labels, chosen))
    one = Trees(norms=norms[:1], centres=weights[:1], nodes=[many.nodes[k]], first=0, **common)
    nearest = distances(points[held], centres).argmin(axis=1)
    rows = [
        {
            "flows": mine[j] + int((nearest == j).sum()),
            **agreement(many.nodes[j], *shown.of(held[nearest == j])),
            "nodes": len(many.nodes[j]),
            "search": settings[j],
        }
        for j in range(k)
    ]
    whole = many.nodes[k]
    about = {
        "flows": flows,
        "held": len(held),
        "silhouettes": scores,
        "clusters": rows,
        "treeg": {**agreement(whole, *shown.of(held)), "nodes": len(whole), "search": settings[k]},
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
    done = actions_of(decide(tree, states))
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
