// Experiments and staged rollouts: lists, and one of each with what it has shown.

import { ask, tell } from "/assets/api.js";
import { newExperiment, newRollout } from "/assets/begin.js";
import { arms, interval, label } from "/assets/chart.js";
import { confirmed, make, table, time } from "/assets/views.js";
import { address, arm, effect, facts } from "/assets/words.js";

const percent = (one) => {
  const [value, low, high] = [one.value, one.low, one.high].map((v) => `${(100 * v).toFixed(1)}%`);
  return `${value} (${low} to ${high})`;
};
const state = (word) => make("span", { class: `hold ${word.replace(" ", "-")}` }, word);
const button = (text, act) => make("button", { type: "button", class: "main", onclick: act }, text);
const faint = (text) => make("p", { class: "faint" }, text);

/** Every experiment and rollout. */
export async function studies() {
  const [{ experiments }, { rollouts }, { role }] = await Promise.all([
    ask("/v1/experiments"), ask("/v1/rollouts"), ask("/v1/status"),
  ]);
  const heads = [["Service", ""], ["Experiment", ""], ["State", ""], ["Treatment", ""], ["Control", ""], ["Effect", ""],
    ["Begun (UTC)", "time"]];
  const lines = experiments.map((one) => [
    one.service, make("a", { href: address("experiment", one) }, one.name), state(one.state), arm(one.spec.treatment),
    arm(one.spec.control), effect(one.report?.effect), time(one.begun_ms),
  ]);
  const heads2 = [["Service", ""], ["Rollout", ""], ["State", ""], ["Stage", ""], ["To", ""], ["From", ""], ["Why", ""],
    ["Begun (UTC)", "time"]];
  const lines2 = rollouts.map((one) => [
    one.service, make("a", { href: address("rollout", one) }, one.name), state(one.phase.replace("-", " ")),
    `${one.stage} of ${one.spec.stages.length}`, arm(one.spec.to), arm(one.spec.from), one.why, time(one.begun_ms),
  ]);
  const list = (caption, heads, lines, none) => lines.length > 0 ? table(caption, heads, lines) : faint(none);
  const bar = (text, act) => role === "operator" ? [make("div", { class: "bar" }, button(text, act))] : [];
  return [
    make("h2", {}, "Experiments"), ...bar("New experiment…", newExperiment),
    list("Experiments", heads, lines, "None yet. `trimtab engine experiment start` begins one."),
    make("h2", {}, "Rollouts"), ...bar("New rollout…", newRollout),
    list("Rollouts", heads2, lines2, "None yet. `trimtab engine rollout start` begins one."),
  ];
}

function guards(all) {
  if (all.length === 0) return faint("No guard metrics.");
  const heads = [["Guard metric", ""], ["Verdict", ""], ["Control", "number"], ["Treatment", "number"],
    ["Beyond the limit by", ""], ["", ""]];
  return table("Guard metrics", heads, all.map((one) => [
    one.guard, state(one.verdict), label(one.control), label(one.treatment), effect(one.excess),
    one.excess ? interval(`${one.guard}: beyond the limit by ${effect(one.excess)}`, one.excess) : "",
  ]));
}

/** One experiment. */
export async function experiment(name, again) {
  const one = await ask("/v1/experiment", name);
  const report = one.report;
  const title = make("h2", {}, `${one.service}: ${one.name} `, state(one.state));
  const what = make("p", {}, `${arm(one.spec.treatment)} (treatment) vs. ${arm(one.spec.control)} (control); begun ${time(one.begun_ms)} UTC by ${one.begun_by}${one.reason ? `: ${one.reason}` : ""}`);
  const stopped = one.stopped ? [make("p", {}, `Stopped by ${one.stopped}`)] : [];
  const stop = one.state === "running" || one.state === "waiting"
    ? [make("div", { class: "bar" }, button("Stop", () => confirmed(`Stop ${one.name} before its end?`, () =>
      tell("/v1/experiment/stop", { ...name, reason: "in the dashboard" }).then(again))))]
    : [];
  if (!report) return [title, what, ...stopped, ...stop, faint("Its service no longer has what it compares.")];
  const at = (point) => point.interval * one.interval_ms;
  const series = (of) => report.series.map((point) => ({ at: at(point), value: point[of] }));
  const { left_out: left, units } = report;
  return [
    title, what, ...stopped, ...stop,
    make("p", { class: "verdict" }, report.verdict),
    make("div", { class: "charts" },
      make("section", { class: "panel" }, make("h3", {}, "Both arms over time"),
        arms("The metric under control and treatment, over time", series("control"), series("treatment"))),
      make("section", { class: "panel" }, make("h3", {}, "Treatment less control"),
        report.effect ? interval(`The effect is ${effect(report.effect)}`, report.effect, true) : faint("Too little is known yet."))),
    facts([
      ["Design", report.design],
      ["Share with the treatment", `${(100 * report.share).toFixed(0)}%`],
      ["Intervals", `${report.elapsed} of ${report.length} are over`],
      ["Units", `${units.control} under control, ${units.treatment} under treatment, of ${units.aggregates} aggregates${units.left ? `; ${units.left} taken out by operators` : ""}${units.adjusted ? "; adjusted for their rewards before" : ""}`],
      ["Means", `control ${label(report.control)}, treatment ${label(report.treatment)}`],
      ["Effect", report.effect ? `${effect(report.effect)} at ${(100 * report.confidence).toFixed(2)}%`
        : `no estimate yet (${(100 * report.confidence).toFixed(2)} % interval)`],
      ["As a share", report.relative ? percent(report.relative) : null],
      ["p", report.p == null ? null : report.p.toFixed(3)],
      ["Detectable with a power of 80%", report.detectable == null ? null : label(report.detectable)],
      ["Left out", `${left.wash_out} intervals after a change, ${left.other_version} under another version, ${left.no_value} without a value, ${left.unreported} unreported`],
    ]),
    make("h2", {}, "Guard metrics"), guards(report.guards),
  ];
}

/** What is known of a rollout's success metric. */
function success(one) {
  const known = one.treatment != null && one.control != null;
  const shown = { holds: "is better", open: "no difference shows", broken: "is worse" }[one.verdict];
  return `${one.guard}: ${known ? shown : "no data yet"}`;
}

/** One rollout. */
export async function rollout(name, again) {
  const one = await ask("/v1/rollout", name);
  const phase = one.phase.replace("-", " ");
  const order = (action) => tell("/v1/rollout/order", { ...name, action, reason: "in the dashboard" }).then(again);
  const asked = (text, question, action) => button(text, () => confirmed(question, () => order(action)));
  const buttons = [];
  if (one.phase === "running") buttons.push(asked("Hold", `Keep ${one.name} in this stage?`, "hold"));
  if (one.phase === "held") buttons.push(asked("Resume", `Let ${one.name} go on?`, "resume"));
  if (one.in_force) buttons.push(asked("Abort", `End ${one.name}, and take everything back?`, "abort"));
  const kept = one.phase === "running" || one.phase === "held" || one.phase === "done";
  const stages = ["before", ...one.spec.stages.map((share) => `${+(100 * share).toFixed(2)}%`)].map((text, i) => {
    const kind = !kept ? "back" : i < one.stage || one.phase === "done" ? "done" : i === one.stage ? "now" : "";
    return make("li", { class: kind, "aria-current": kind === "now" ? "step" : null }, text);
  });
  const known = one.judgement;
  return [
    make("h2", {}, `${one.service}: ${one.name} `, state(phase)),
    make("p", {}, `${arm(one.spec.to)} instead of ${arm(one.spec.from)}; begun ${time(one.begun_ms)} UTC by ${one.begun_by}${one.reason ? `: ${one.reason}` : ""}`),
    make("div", { class: "bar" }, ...buttons),
    make("ol", { class: "stages", "aria-label": "Stages" }, ...stages),
    make("p", { class: "verdict" }, `${phase}: ${one.why}`),
    known ? facts([
      ["Switched", `${known.switched} of ${known.aggregates} aggregates`],
      ["Intervals of the stage", `${known.elapsed} of ${one.spec.intervals} to ${3 * one.spec.intervals}`],
      ["Compared with", known.compared_with],
      ...(known.success ? [["Success metric", success(known.success)]] : []),
    ]) : "",
    make("h2", {}, "Guard metrics"), guards(known?.guards ?? []),
  ];
}
