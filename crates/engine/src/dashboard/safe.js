// "Everything safe": the banner that shows such orders, and the dialogs that give one and end it.

import { ask, tell } from "/assets/api.js";
import { note } from "/assets/tokens.js";
import { choices, confirmed, dialog, make, time } from "/assets/views.js";

const place = document.getElementById("safe");
const button = document.getElementById("make-safe");
let shown = "";

/** Shows the orders in force; `again` draws the page anew. */
export async function banner(again) {
  const { safe = [], services, role, expiring } = await ask("/v1/status");
  note(expiring);
  const may = role === "operator";
  document.getElementById("to-tokens").hidden = !may;
  button.hidden = !may || safe.some((order) => order.service === null);
  button.onclick = () => giving(services, again);
  // A banner that stays as it is keeps the focus of its buttons.
  const now = JSON.stringify([safe, may]);
  if (now === shown) return;
  shown = now;
  place.hidden = safe.length === 0;
  const line = (order) => make("p", {},
    make("strong", {}, `${order.service ?? "Every service"}: safe configuration in force`),
    ` since ${time(order.at_ms)} UTC, by order of ${order.who}: ${order.why} `,
    ...(may ? [make("button", { type: "button", onclick: () => ending(order, again) }, "End this order")] : []));
  place.replaceChildren(...safe.map(line));
}

/** Forgets what was shown: nobody is signed in. */
export function clear() {
  note();
  shown = "";
  place.hidden = true;
  place.replaceChildren();
}

const names = (service) => (service ? [service] : []);

function giving(services, again) {
  const service = make("select", { name: "service" },
    ...choices([["", "Every service"], ...services.map((one) => [one.name, one.name])]));
  const why = make("input", { name: "why", required: true, autocomplete: "off" });
  dialog([
    make("p", {}, "Put the safe configuration in force at once, for every aggregate? " +
      "Learning, experiments and rollouts stop until the order ends."),
    make("label", {}, "service", service), make("label", {}, "why", why),
  ], "Make safe", () => tell("/v1/safe", { services: names(service.value), why: why.value }).then(again));
  why.focus();
}

function ending(order, again) {
  const of = order.service ?? "every service";
  confirmed(`Put in force again, for ${of}, what was in force before ${order.who}'s order, and go on learning?`,
    () => tell("/v1/safe/end", { services: names(order.service), reason: "in the dashboard" }).then(again));
}
