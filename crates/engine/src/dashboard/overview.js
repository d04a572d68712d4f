// The first page: for each service what is tried where, what it gains, and what is held and why.

import { ask } from "/assets/api.js";
import { interval, label } from "/assets/chart.js";
import { link, make, time } from "/assets/views.js";
import { address, arm, effect, facts } from "/assets/words.js";

const faint = (...parts) => make("p", { class: "faint" }, ...parts);
const signed = (value, text) => (value > 0 ? "+" : "") + text(value);
const percent = (value) => `${(100 * value).toFixed(1)}%`;
const list = (items) => make("ul", { class: "plain" }, ...items.map((one) => make("li", {}, ...one)));

function minutes(ms) {
  return ms % 60000 === 0 ? `${ms / 60000} min` : `${label(ms / 1000)} s`;
}

/** What was learnt compared with the safe configuration: a number with its interval, and what it is made of. */
function gained(service, { gain }) {
  const safe = service.incumbent ?? "the safe configuration";
  const title = make("h3", {}, `Learnt vs. ${safe}`);
  if (!gain) {
    return [title, faint("Too little is known yet: three aggregates need intervals under both.")];
  }
  const part = gain.safe > 0;
  const scale = part ? gain.safe : 1;
  const [value, low, high] = ["value", "low", "high"].map((key) => gain.effect[key] / scale);
  const text = (one) => signed(one, part ? percent : label);
  const said = low > 0 ? "better" : high < 0 ? "worse" : "no difference shows";
  const kind = low > 0 ? "holds" : high < 0 ? "broken" : "open";
  return [
    title,
    make("p", { class: "gain" }, make("strong", {}, text(value)), ` (${text(low)} to ${text(high)}) `,
      make("span", { class: `hold ${kind}` }, said)),
    interval(`The gain is ${text(value)}, between ${text(low)} and ${text(high)}`, { value, low, high }),
    faint(`Reward${part ? "" : ", in its own unit"}, interval of 95%. ${gain.aggregates} aggregates, ` +
      `${gain.learnt_intervals} intervals of what was learnt and ${gain.safe_intervals} of ${safe}. ` +
      "An experiment says it with less doubt."),
  ];
}

/** A bar of what runs, the safe configuration last. */
function running({ aggregates, more, in_force: all }) {
  if (aggregates === 0) return "no edge has reported an aggregate yet";
  const name = (one) => `${one.aggregates} ${one.algorithm}${one.safe ? " (safe)" : ""}`;
  const parts = all.map((one, i) =>
    make("span", { class: one.safe ? "part safe" : `part tone${i % 3}`, "data-share": one.aggregates, title: name(one) }));
  parts.forEach((part, i) => { part.style.flexGrow = all[i].aggregates; });
  const words = all.map(name).join(", ");
  return make("div", {}, make("div", { class: "share", role: "img", "aria-label": words }, ...parts),
    `${words}${more ? `, of the first ${aggregates}` : ""}`);
}

function tried(service, { experiments, rollouts }) {
  const now = (one) => one.service === service.name;
  const lines = [
    ...experiments.filter((one) => now(one) && ["running", "waiting"].includes(one.state)).map((one) => [
      make("a", { href: address("experiment", one) }, one.name),
      ` (experiment): ${arm(one.spec.treatment)} vs. ${arm(one.spec.control)}`,
      one.report?.effect ? `, effect ${effect(one.report.effect)}` : ", no estimate yet",
    ]),
    ...rollouts.filter((one) => now(one) && one.in_force).map((one) => [
      make("a", { href: address("rollout", one) }, one.name),
      ` (rollout, ${one.phase.replace("-", " ")}): ${arm(one.spec.to)} instead of ${arm(one.spec.from)}, ` +
        `stage ${one.stage} of ${one.spec.stages.length}`,
    ]),
  ];
  if (lines.length > 0) return list(lines);
  const choice = service.others?.length > 0 ? `${service.algorithm}, ${service.others.join(", ")}` : service.algorithm;
  return `the learner's own trials, each for an interval: ${choice}; no experiment and no rollout`;
}

function holding(service, { held }) {
  if (held.length === 0) return "nothing";
  return list(held.map((one) => [
    make("a", { href: link({ service: service.name, prefix: one.prefix }) }, one.prefix), " ",
    make("span", { class: `hold ${one.hold}` }, one.hold),
    one.who ? ` by ${one.who}, ${time(one.at_ms)} UTC${one.why ? `: ${one.why}` : ""}` : " by an order of long ago",
  ]));
}

function card(service, known, status, studies) {
  const order = status.safe.find((one) => one.service === null || one.service === service.name);
  const aside = status.damaged.filter((one) => one.service === service.name);
  const fell = known.fell_back.map((one) => [`${time(one.at_ms)} UTC: ${one.detail}`]);
  return make("section", { class: "panel service", "aria-label": service.name },
    make("h2", {}, service.name, " ", make("span", { class: `hold ${order ? "broken" : "learning"}` }, order ? "kept safe" : "learning")),
    faint(`A decision for each aggregate every ${minutes(service.interval_ms)}. Reward: ${service.reward}` +
      (service.side_by_side
        ? `, of trials next to ${Math.round(100 * service.side_by_side)}% of the clients ` +
          "that run the safe configuration"
        : "")),
    make("div", { class: "columns" },
      make("div", {}, ...gained(service, known)),
      facts([
        ["In force", running(known)],
        ["Tried", order ? `nothing: by order of ${order.who} the safe configuration is in force everywhere, ${order.why}` : tried(service, studies)],
        ["Held", holding(service, known)],
        ["Fell back", fell.length > 0 ? list(fell) : "nobody within a day"],
        ["Set aside", aside.length > 0 ? list(aside.map((one) => [`${one.prefix}: ${one.reason}`])) : null],
      ])));
}

/** Every service at a glance. */
export async function overview() {
  const [{ services }, status, { experiments }, { rollouts }] = await Promise.all([
    ask("/v1/overview"), ask("/v1/status"), ask("/v1/experiments"), ask("/v1/rollouts"),
  ]);
  const open = experiments.filter((one) => ["running", "waiting"].includes(one.state));
  const whole = await Promise.all(open.map((one) => ask("/v1/experiment", { service: one.service, name: one.name })));
  const known = (name) => services.find((one) => one.name === name);
  const cards = status.services.filter((one) => known(one.name))
    .map((one) => card(one, known(one.name), status, { experiments: whole, rollouts }));
  const { counts } = status;
  return [
    faint(`Services: ${status.services.length}. Aggregates: ${counts.aggregates}, of these paused: ${counts.paused}, ` +
      `pinned: ${counts.pinned}. Edges: ${counts.edges}. Decisions: ${counts.decisions.toLocaleString("en")}.`),
    ...cards,
  ];
}
