// How experiments and rollouts are named and written, wherever they are shown.

import { label } from "/assets/chart.js";
import { make } from "/assets/views.js";

/** The address of an experiment or a rollout. */
export const address = (page, one) => `#/${page}?${new URLSearchParams({ service: one.service, name: one.name })}`;

/** An arm. */
export const arm = (kind) => typeof kind === "string" ? kind : kind.algorithm ? kind.algorithm
  : Object.entries(kind.knobs).map(([knob, value]) => `${knob} ${label(value)}`).join(", ");

const signed = (value) => (value > 0 ? "+" : "") + label(value);

/** A number with its interval. */
export const effect = (one) => one ? `${signed(one.value)} (${signed(one.low)} to ${signed(one.high)})` : "–";

/** Names and what they stand for; those without anything are left out. */
export function facts(pairs) {
  const items = pairs.filter(([, value]) => value != null).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", { class: "facts" }, ...items);
}
