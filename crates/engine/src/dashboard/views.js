// The pages: each is built from what the engine answers, and replaces what was there.

import { ask, tell } from "/assets/api.js";
import { chart, label } from "/assets/chart.js";

/** An element: attributes, listeners (`onclick`) and children, texts among them. */
export function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

export const time = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const hold = (kind) => make("span", { class: `hold ${kind}` }, kind);
const knobs = (configuration) =>
  Object.entries(configuration?.knobs ?? {}).map(([knob, value]) => `${knob} ${label(value)}`).join(", ");
const whole = (configuration) =>
  [configuration?.algorithm, knobs(configuration)].filter((part) => part).join(": ");
export const choices = (kinds) => kinds.map(([value, text]) => make("option", { value }, text));
export const link = (one) =>
  `#/aggregate?${new URLSearchParams({ service: one.service, prefix: one.prefix })}`;

/** Of narrower windows, in CSS pixels, each row of a table is a card: style.css. */
const NARROW = 600;

export function table(caption, heads, rows) {
  const head = make("tr", {}, ...heads.map(([text, kind]) => make("th", { scope: "col", class: kind }, text)));
  const cells = (row) => row.map((cell, i) => make("td", { class: heads[i][1], "data-head": heads[i][0] }, cell ?? ""));
  const body = rows.map((row) => make("tr", {}, ...cells(row)));
  const whole = make("table", { "aria-label": caption }, make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", { class: "wide" }, whole);
}

/** The list, with a search; `state` survives it, so that coming back finds what was typed. */
export async function list(state) {
  const { services } = await ask("/v1/services");
  const rows = make("div", {});
  const more = make("button", { type: "button", onclick: () => load(true) }, "More");
  let after = null;
  let turn = 0;
  async function load(further) {
    const mine = ++turn;
    const page = await ask("/v1/aggregates", {
      q: state.q, service: state.service, hold: state.hold,
      after_service: further ? after.service : "", after_prefix: further ? after.prefix : "",
    });
    // Somebody has typed on since.
    if (mine !== turn) return;
    const heads = [["Service", ""], ["Prefix", ""], ["State", ""], ["Reward", "number"], ["Decisions", "number"],
      ["Configuration in force", ""], ["Changed (UTC)", "time"]];
    const lines = page.aggregates.map((one) => [
      one.service, make("a", { href: link(one) }, one.prefix), hold(one.hold), label(one.reward), `${one.decisions}`,
      whole(one.configuration), time(one.changed_ms),
    ]);
    if (!further) rows.replaceChildren();
    if (lines.length > 0 || further) rows.append(table("Aggregates", heads, lines));
    else if (!page.unreadable) {
      rows.append(make("p", { class: "faint" }, "No matches. Aggregates appear when edges report."));
    }
    for (const one of page.unreadable ?? []) {
      rows.append(make("p", { role: "alert" }, `Damaged: ${one.service} to ${one.prefix}: ${one.damaged}`));
    }
    after = page.aggregates.at(-1) ?? after;
    more.hidden = !page.more;
  }
  const field = (name, node) => {
    node.addEventListener("input", () => {
      state[name] = node.value;
      load(false).catch(state.fail);
    });
    return node;
  };
  const search = field("q", make("input", {
    type: "search", id: "search", "aria-label": "Search", placeholder: "Search a service or prefix  ( / )",
  }));
  const service = field("service", make("select", { "aria-label": "Service" },
    ...choices([["", "Every service"], ...services.map((one) => [one.name, one.name])])));
  const held = field("hold", make("select", { "aria-label": "State" },
    ...choices([["", "Every state"], ["learning", "learning"], ["paused", "paused"], ["pinned", "pinned"]])));
  search.value = state.q ?? "";
  service.value = state.service ?? "";
  held.value = state.hold ?? "";
  await load(false);
  return [make("h2", {}, "Aggregates"), make("div", { class: "bar" }, search, service, held), rows, more];
}

/** One aggregate: what is in force, what came of it over time, and why. */
export async function aggregate(name, again) {
  const [one, history, { services, role }] = await Promise.all([
    ask("/v1/aggregate", name), ask("/v1/decisions", { ...name, limit: 300 }), ask("/v1/status"),
  ]);
  // The engine refuses orders of viewers: they get no buttons for them.
  const may = role === "operator";
  const service = services.find((known) => known.name === one.service);
  const decisions = [...history.decisions].reverse();
  const at = (decision) => decision.begins_ms;
  const marks = decisions.slice(1).filter((d, i) => d.version !== decisions[i].version).map(at);
  const reward = decisions.map((d) => ({ at: at(d), value: d.reward }));
  const panel = (title, picture) => make("section", { class: "panel" }, make("h3", {}, title), picture);
  const charts = [panel("Reward", chart("Reward over time", reward, reward.filter((p) => p.value !== null), marks))];
  for (const knob of service?.knobs ?? []) {
    const guess = (d) => d.why?.decision?.after?.find(([of]) => of === knob.name)?.[1] ?? null;
    const tried = decisions.map((d) => ({ at: at(d), value: d.configuration?.knobs?.[knob.name] }));
    const curve = decisions.map((d) => ({ at: at(d), value: guess(d) }));
    const title = `${knob.name}: best guess, and what was tried`;
    charts.push(panel(title, chart(title, curve, tried.filter((p) => p.value !== undefined), marks, knob.scale === "log")));
  }
  const order = (action, rest = {}) =>
    tell("/v1/aggregate", { ...name, action, version: one.version, reason: "in the dashboard", ...rest }).then(again);
  const button = (text, act) => make("button", { type: "button", class: "main", onclick: act }, text);
  const held = one.hold === "learning"
    ? button("Pause", () => confirmed(`Keep ${one.prefix} at its best guess?`, () => order("pause")))
    : button("Resume learning", () => confirmed(`Let ${one.prefix} learn again?`, () => order("resume")));
  const pin = button("Pin…", () => pinning(service, one, (values) => order("pin", { knobs: values })));
  const back = (d) => button("Roll back to this", () =>
    confirmed(`Put in force, and keep, what was in force at ${time(at(d))} UTC: ${whole(d.configuration)}?`,
      () => order("rollback", { interval: d.interval })));
  const heads = [["Interval (UTC)", "time"], ["Version", "number"], ["Reports", "number"], ["Reward", "number"],
    ["In force", ""], ["Why", ""], ...(may ? [["", ""]] : [])];
  const lines = history.decisions.slice(0, innerWidth < NARROW ? 20 : 100).map((d) => [
    time(at(d)), `${d.version}`, `${d.reports}`, label(d.reward), whole(d.configuration), d.why?.sentence ?? "", ...(may ? [back(d)] : []),
  ]);
  return [
    make("h2", {}, `${one.service} to ${one.prefix} `, hold(one.hold)),
    make("p", {}, `In force, ${one.safe ? "the safe configuration" : `version ${one.version}`} of ${one.configuration?.algorithm ?? "nothing"}: ${knobs(one.configuration)}`),
    ...(history.damaged ? [make("p", { role: "alert" }, `Damaged: ${history.damaged}`)] : []),
    ...(may ? [make("div", { class: "bar" }, held, pin)] : []),
    make("div", { class: "charts" }, ...charts),
    make("p", { class: "faint" }, "Dashed: another configuration was put in force."),
    make("h2", { id: "explain" }, "Explained"),
    table("Decisions, the latest first", heads, lines),
  ];
}

/** The audit log: what was done, and next to it what was refused, so that neither hides the other. */
export async function audit() {
  const [done, refused] = await Promise.all([
    ask("/v1/audit", { limit: 200, refused: false }), ask("/v1/audit", { limit: 50, refused: true }),
  ]);
  const heads = [["When (UTC)", "time"], ["Who", ""], ["What", ""], ["Of what", ""], ["How", ""]];
  const row = (line) => [time(line.at_ms), line.who, line.action, line.subject, line.detail];
  const part = (title, { lines, more }) => [
    make("h2", {}, title), table(title, heads, lines.map(row)),
    make("p", { class: "faint" }, more ? `These are the latest ${lines.length}; \`trimtab engine audit\` shows all.` : ""),
  ];
  return [...part("Audit log", done), ...part("Refused", refused)];
}

export function dialog(content, accept, act) {
  const box = make("dialog", {});
  const problem = make("p", { role: "alert" });
  const cancel = make("button", { type: "button", onclick: () => box.close() }, "Cancel");
  const form = make("form", { method: "dialog" }, ...content, problem,
    make("div", { class: "bar" }, make("button", { type: "submit", class: "main" }, accept), cancel));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act().then(() => box.close(), (error) => { problem.textContent = error.message; });
  });
  box.append(form);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

export function confirmed(question, act) {
  dialog([make("p", {}, question)], "Yes", act);
}

function pinning(service, one, act) {
  const { algorithm: own, others = [], knobs: learnt = [] } = service ?? {};
  const running = one.configuration?.algorithm;
  const fields = learnt.map((knob) => {
    const value = running === own ? one.configuration?.knobs?.[knob.name] : knob.safe;
    return make("input", { type: "number", step: "any", name: knob.name, value, min: knob.min, max: knob.max, required: true });
  });
  const labels = fields.map((field) => make("label", {}, `${field.name} (${label(+field.min)} to ${label(+field.max)})`, field));
  const algorithm = make("select", { name: "algorithm" }, ...choices([own, ...others].map((name) => [name, name])));
  algorithm.value = others.find((name) => name.split(":")[0] === running) ?? own;
  // Another algorithm runs as the service describes it: its knobs cannot be set here.
  const choose = () => labels.forEach((knob, i) => {
    knob.hidden = algorithm.value !== own;
    fields[i].disabled = knob.hidden;
  });
  algorithm.addEventListener("input", choose);
  choose();
  const wanted = () => (algorithm.value === own
    ? Object.fromEntries(fields.map((field) => [field.name, Number(field.value)]))
    : { algorithm: algorithm.value });
  const kinds = others.length > 0 ? [make("label", {}, "algorithm", algorithm)] : [];
  dialog([make("p", {}, `Put this in force for ${one.prefix}, and keep it:`), ...kinds, ...labels], "Pin", () => act(wanted()));
}
