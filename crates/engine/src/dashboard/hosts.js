// What hosts found by comparing their rules with control arms.

import { ask } from "/assets/api.js";
import { label } from "/assets/chart.js";
import { make, table, time } from "/assets/views.js";

const signed = (value, text) => (value > 0 ? "+" : "") + text(value);
const effect = (one, text) => `${signed(one.value, text)} (${signed(one.low, text)} to ${signed(one.high, text)})`;
const percent = (value) => `${(100 * value).toFixed(1)}%`;

function change(of) {
  if (of.change) return effect(of.change, percent);
  return of.difference ? effect(of.difference, label) : "–";
}

/** The last comparison of each host, rule and control. */
export async function hosts() {
  const { comparisons } = await ask("/v1/comparisons");
  const heads = [["Host", ""], ["Rule", ""], ["Control", ""], ["Networks", "number"], ["State", ""], ["Metric", ""],
    ["Steered", "number"], ["Control", "number"], ["Change (95% interval)", ""], ["Received (UTC)", "time"]];
  const lines = comparisons.flatMap(({ host, received_ms: at, found }) => {
    const begin = [host, found.rule, found.control, String(found.networks), found.over ? "over" : "running"];
    if (found.metrics.length === 0) return [[...begin, "too little is known", "", "", "", time(at)]];
    return found.metrics.map((of) => [...begin, of.metric, label(of.steered), label(of.control), change(of), time(at)]);
  });
  const none = make("p", { class: "faint" }, "None yet. Agents with `[compare]` and `[fleet]` send what they find.");
  return [make("h2", {}, "Hosts"), lines.length > 0 ? table("Comparisons of hosts", heads, lines) : none];
}
