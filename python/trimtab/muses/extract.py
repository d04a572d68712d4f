"""Stage 2: trees that do what the LSTM does, each for networks of one kind (Muses, section III-E and F)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from trimtab._native import MusesRollouts
from trimtab.muses import lstm
from trimtab.muses.chosen import Several, by_one
from trimtab.muses.drive import NONE, SHARING, WIRED, drive, environments, taught
from trimtab.muses.fit import Demonstrations, agreement, fit, some
from trimtab.muses.inputs import INPUTS, SIGNALS, inputs
from trimtab.muses.options import Stages, numbers
from trimtab.muses.trees import ACTIONS, BINS, COMPONENTS, WEIGHT_POINT, Node, Trees

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
#: The silhouette is that of so many flows.
SILHOUETTE = 2_000
#: What a group's tree is fitted to besides its own states: some of all, with the weight of `--others` in sum,
#: so that it does what is right on the whole where its own group never was. Without them a tree may double a
#: window that its group never saw as large.
OTHERS = 100_000
#: The largest one-way delay of the networks that are farther than those of Table II, in ms.
FAR_MS = 500
#: The distance of a centre that is never the nearest.
NEVER = (1 << 31) - 1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


@dataclass
class Groups:
    """Flows in groups, and what says of which one a flow is."""

    kept: Ints
    """The flows that anything is fitted to."""
    held: Ints
    """The others."""
    labels: Ints
    """The group of each that is kept."""
    points: Floats
    """P(f) of each flow."""
    margins: Floats
    """P_s(f)."""
    centres: Floats
    scores: dict[int, float]
    """Silhouettes by the number of groups."""
    norms: Ints
    weights: Ints
    """As `Trees.norms` and `Trees.centres`."""
    common: dict[str, Any]
    """What else a model has, whatever its trees."""


def grouped(stages: Stages, shown: Demonstrations) -> Groups:
    """Group the flows by how their states and actions are distributed, and fit what selects a group."""
    flows = len(shown.inputs)
    # Nothing is fitted to the others, neither trees nor what selects among them.
    is_kept = np.arange(flows) % HELD_OUT != 0
    kept, held = np.nonzero(is_kept)[0], np.nonzero(~is_kept)[0]
    states, _ = shown.of(kept)
    projection = Projection.of(states)
    points, margins = distributions(shown, projection)
    print("clustering", flush=True)
    centres, labels, scores = cluster(stages, points[kept])
    matrix = np.linalg.lstsq(margins[kept], points[kept], rcond=None)[0].T
    low, high = states.min(axis=0)[:SIGNALS], states.max(axis=0)[:SIGNALS]
    common = {"low": low, "high": high, **vars(projection), "states": STATES, "inputs": shown.inputs.shape[2]}
    return Groups(
        kept,
        held,
        labels,
        points,
        margins,
        centres,
        scores,
        norms=np.rint((centres**2).sum(axis=1) * SCALE).astype(np.int64),
        weights=np.rint(2.0 * centres @ matrix * SCALE).astype(np.int64),
        common=common,
    )


def fit_groups(
    stages: Stages, shown: Demonstrations, rows: Ints, labels: Ints, groups: Groups
) -> tuple[Trees, Trees, list[str]]:
    """Fit a tree to each group of these flows, and one to all; also gives the settings found for each."""
    whole, found = fit(stages, shown, rows)
    seen, actions = shown.of(rows)
    others = some(np.random.default_rng((stages.seed, 5)), seen, actions, OTHERS) if stages.others else None
    k = len(groups.centres)
    trees, settings = [], []
    for j in range(k):
        # Where flows are equal there may be fewer groups than asked for.
        mine = rows[labels == j] if (labels == j).any() else rows
        tree, searched = fit(stages, shown, mine, others)
        trees.append(tree)
        settings.append(searched)
        print(f"tree {j + 1} of {k}: {len(tree)} nodes of {len(mine)} flows, {searched}", flush=True)
    # While nothing is known of the path the global tree is asked; it is never the nearest.
    many = Trees(
        norms=np.append(groups.norms, NEVER),
        centres=np.append(groups.weights, np.zeros_like(groups.weights[:1]), axis=0),
        nodes=[*trees, whole],
        first=k,
        **groups.common,
    )
    one = Trees(norms=groups.norms[:1], centres=groups.weights[:1], nodes=[whole], first=0, **groups.common)
    return many, one, [*settings, found]


def corrected(stages: Stages, teacher: lstm.Teacher, shown: Demonstrations) -> Demonstrations:
    """Let a tree for all drive that was fitted to these flows, and ask the LSTM; gives all flows."""
    for number in range(1, stages.passes + 1):
        tree, _ = fit(stages, shown, np.arange(len(shown.inputs)))
        more, _ = gather(stages, teacher, tree, number)
        shown = shown.with_more(more)
    return shown


def extract(stages: Stages, teacher: lstm.Teacher) -> tuple[Trees, Trees, dict[str, Any]]:
    """Distil the trees, and the one global tree (TreeG); also gives what there is to say of them."""
    driven, _ = gather(stages, teacher, None, 0)
    shown = corrected(stages, teacher, driven)
    flows = len(shown.inputs)
    groups = grouped(stages, shown)
    kept, held, labels = groups.kept, groups.held, groups.labels
    many, one, settings = fit_groups(stages, shown, kept, labels, groups)
    if stages.passes:
        # What a group's tree does wrong is corrected, too.
        more, chosen = gather(stages, teacher, many, stages.passes + 1)
        more_rows = np.arange(flows, flows + len(more.inputs))
        all_ = shown.with_more(more)
        all_rows, all_labels = np.append(kept, more_rows), np.append(labels, chosen)
        many, one, settings = fit_groups(stages, all_, all_rows, all_labels, groups)
    nearest = distances(groups.points[held], groups.centres).argmin(axis=1)
    rows = [
        {
            "flows": int((labels == j).sum()) + int((nearest == j).sum()),
            **agreement(many.nodes[j], *shown.of(held[nearest == j])),
            "nodes": len(many.nodes[j]),
            "search": settings[j],
        }
        for j in range(len(groups.centres))
    ]
    whole = one.nodes[0]
    about = {
        "flows": flows,
        "held": len(held),
        "silhouettes": groups.scores,
        "clusters": rows,
        "treeg": {**agreement(whole, *shown.of(held)), "nodes": len(whole), "search": settings[-1]},
        "top2": top_two(
            groups.points[held], groups.margins[held], groups.centres, groups.norms, groups.weights
        ),
        "bytes": (len(many.pack()), len(one.pack())),
    }
    return many, one, about


def distances(points: Floats, centres: Floats) -> Floats:
    """Give the squared distance of each point to each centre."""
    return np.asarray(((points[:, None, :] - centres) ** 2).sum(axis=2), np.float64)


def top_two(points: Floats, margins: Floats, centres: Floats, norms: Ints, weights: Ints) -> float:
    """Give the share of flows whose selected centre is one of the two that are nearest to P(f)."""
    chosen = (norms - margins @ weights.T).argmin(axis=1)
    nearest = distances(points, centres).argsort(axis=1, kind="stable")[:, :2]
    return float((nearest == chosen[:, None]).any(axis=1).mean())
