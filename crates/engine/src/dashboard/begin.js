// The dialogs that begin an experiment and a rollout.

import { ask, tell } from "/assets/api.js";
import { choices, dialog, make } from "/assets/views.js";
import { address } from "/assets/words.js";

/** An arm as people write it: learn, safe, an algorithm, or knobs such as gamma=900, omega=1. */
function arm(text) {
  const words = text.trim();
  if (words === "learn" || words === "safe") return words;
  if (!words.includes("=")) return { algorithm: words };
  const pairs = words.split(",").map((part) => part.split("=").map((word) => word.trim()));
  const wrong = pairs.find(([knob, value]) => !knob || value === undefined || value === "" || Number.isNaN(Number(value)));
  if (wrong) throw new Error(`${wrong.join("=")} is no knob with a value: write e.g. gamma=900`);
  return { knobs: Object.fromEntries(pairs.map(([knob, value]) => [knob, Number(value)])) };
}

const field = (name, attributes = {}) => make("input", { name, autocomplete: "off", required: true, ...attributes });
const number = (name, value, rest = {}) => field(name, { type: "number", value, min: 1, ...rest });
const labelled = (text, node) => make("label", {}, text, node);
const lines = (node) => node.value.split("\n").map((line) => line.trim()).filter((line) => line);
const ARM = "gamma=900, bbr, safe or learn";

async function service() {
  const { services } = await ask("/v1/services");
  return make("select", { name: "service" }, ...choices(services.map((one) => [one.name, one.name])));
}

/** Tells the engine, and shows what began. */
function begin(path, page, body) {
  return tell(path, body).then((one) => { location.hash = address(page, one); });
}

export async function newExperiment() {
  const of = await service();
  const name = field("name");
  const [treatment, control] = [field("treatment", { placeholder: ARM }), field("control", { value: "learn" })];
  const design = make("select", { name: "design" },
    ...choices([["prefixes", "by subnet"], ["switchback", "by time slot"]]));
  const [share, block] = [number("share", 0.5, { min: 0.01, max: 0.99, step: "any" }), number("block", 6)];
  const [length, metric] = [number("length", 144), field("metric", { value: "reward" })];
  const guards = make("textarea", { name: "guards", rows: 2, placeholder: "mean(loss) < +20%" });
  const reason = field("reason", { required: false });
  const [ofShare, ofBlock] = [labelled("Share with the treatment", share), labelled("Intervals of a slot", block)];
  const choose = () => {
    const is = design.value === "switchback";
    [ofShare.hidden, ofBlock.hidden, share.disabled, block.disabled] = [is, !is, is, !is];
  };
  design.addEventListener("input", choose);
  choose();
  const act = async () => begin("/v1/experiments", "experiment", {
    service: of.value, name: name.value, treatment: arm(treatment.value), control: arm(control.value),
    design: design.value === "switchback" ? { kind: "switchback", block: Number(block.value) }
      : { kind: "prefixes", share: Number(share.value) },
    length: Number(length.value), metric: metric.value, guards: lines(guards), reason: reason.value,
  });
  dialog([
    make("p", {}, "Compare two configurations of a service. It ends by itself, or when a guard metric breaks."),
    labelled("Service", of), labelled("Name", name), labelled("Treatment", treatment), labelled("Control", control),
    labelled("Arms are kept apart", design), ofShare, ofBlock, labelled("Length in intervals", length),
    labelled("Metric of which more is better", metric), labelled("Guard metrics, one in a line", guards), labelled("Why", reason),
  ], "Begin", act);
  name.focus();
}

export async function newRollout() {
  const of = await service();
  const [name, to, metric] = [field("name"), field("to", { placeholder: ARM }), field("metric", { value: "reward" })];
  const guards = make("textarea", { name: "guards", rows: 2, required: true, placeholder: "mean(loss) < +20%" });
  const [intervals, reason] = [number("intervals", 6), field("reason", { required: false })];
  const act = async () => begin("/v1/rollouts", "rollout", {
    service: of.value, name: name.value, to: arm(to.value), metric: metric.value, guards: lines(guards),
    intervals: Number(intervals.value), reason: reason.value,
  });
  dialog([
    make("p", {}, "Give a configuration to 1%, 5%, 25% and then all aggregates. It goes back when a guard metric breaks."),
    labelled("Service", of), labelled("Name", name), labelled("To", to), labelled("Metric of which more is better", metric),
    labelled("Guard metrics, one in a line", guards), labelled("Intervals of a stage", intervals), labelled("Why", reason),
  ], "Begin", act);
  name.focus();
}
