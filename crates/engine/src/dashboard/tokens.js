// Tokens: the note about those that expire soon, and the page where operators make, rotate and revoke them.

import { ask, tell } from "/assets/api.js";
import { choices, confirmed, dialog, make, table, time } from "/assets/views.js";

const place = document.getElementById("tokens");
let shown = "";

/** Shows which tokens expire soon; a note that stays as it is is not read out again. */
export function note(expiring = []) {
  const now = JSON.stringify(expiring);
  if (now === shown) return;
  shown = now;
  place.hidden = expiring.length === 0;
  const line = (token) => make("p", {}, make("strong", {}, `The token ${token.name} expires`),
    ` on ${time(token.expires_ms)} UTC: `, make("code", {}, `trimtab engine token rotate ${token.name}`),
    " on the engine's machine, or ", make("a", { href: "#/tokens" }, "Tokens"), ", makes another secret.");
  place.replaceChildren(...expiring.map(line));
}

/** Shows a secret once. It is in no address and no store of the browser. */
function reveal({ name, token, expires_ms: expires }, again) {
  const secret = make("input", { readonly: true, value: token, "aria-label": "Secret", class: "secret" });
  dialog([
    make("p", {}, `The secret of ${name}. It is shown only now: copy it into the file of its user.`), secret,
    make("p", { class: "faint" }, expires ? `It expires on ${time(expires)} UTC.` : "It never expires."),
  ], "Done", async () => again());
  secret.focus();
  secret.select();
}

const words = (text) => text.split(/[\s,]+/).filter((word) => word);

function adding(services, again) {
  const field = (name, rest = {}) => make("input", { name, autocomplete: "off", ...rest });
  const name = field("name", { required: true });
  const role = make("select", { name: "role" }, ...choices([["viewer", "viewer"], ["operator", "operator"], ["edge", "edge"]]));
  const service = make("select", { name: "services", multiple: true, size: 3 }, ...choices(services.map((one) => [one.name, one.name])));
  const prefixes = field("prefixes", { placeholder: "any" });
  const expires = field("expires", { required: true, value: "365d" });
  const ofEdge = [make("label", {}, "Services that it reports for", service), make("label", {}, "Only within these subnets", prefixes)];
  const choose = () => ofEdge.forEach((one) => { one.hidden = role.value !== "edge"; });
  role.addEventListener("input", choose);
  choose();
  dialog([
    make("label", {}, "Name", name), make("label", {}, "Role", role), ...ofEdge,
    make("label", {}, "Valid for, e.g. 90d, or never", expires),
  ], "Make", async () => {
    const isEdge = role.value === "edge";
    const chosen = isEdge ? [...service.selectedOptions].map((one) => one.value) : [];
    const made = await tell("/v1/tokens", {
      name: name.value, role: role.value, services: chosen, prefixes: isEdge ? words(prefixes.value) : [], expires: expires.value,
    });
    reveal(made, again);
  });
  name.focus();
}

function rotating(name, again) {
  const overlap = make("input", { name: "overlap", value: "1d", required: true, autocomplete: "off" });
  dialog([
    make("p", {}, `Make another secret of ${name}, valid for a year?`),
    make("label", {}, "The one before stays valid for", overlap),
  ], "Rotate", async () => reveal(await tell("/v1/tokens/rotate", { name, expires: "365d", overlap: overlap.value }), again));
}

/** Every token. */
export async function tokens(again) {
  const [{ tokens: all }, { services }] = await Promise.all([ask("/v1/tokens"), ask("/v1/services")]);
  const state = (one) => one.revoked_ms ? "revoked" : one.expires_ms && one.expires_ms < Date.now() ? "expired" : "valid";
  const button = (text, act) => make("button", { type: "button", onclick: act }, text);
  const heads = [["Name", ""], ["Role", ""], ["Services", ""], ["Subnets", ""], ["Expires (UTC)", "time"],
    ["Last used (UTC)", "time"], ["State", ""], ["", ""]];
  const revoke = (one) => confirmed(`Revoke ${one.name}? Its reports that wait go with it.`,
    () => tell("/v1/tokens/revoke", { name: one.name }).then(again));
  const acts = (one) => one.revoked_ms ? "" : make("div", { class: "bar tight" },
    ...(one.name.startsWith("cert:") ? [] : [button("Rotate…", () => rotating(one.name, again))]), button("Revoke", () => revoke(one)));
  const lines = [...all].sort((a, b) => !!a.revoked_ms - !!b.revoked_ms).map((one) => [
    one.name, one.role, one.services.join(", "), one.prefixes.join(", "), one.expires_ms ? time(one.expires_ms) : "never",
    one.used_ms ? time(one.used_ms) : "–", make("span", { class: `hold ${state(one)}` }, state(one)), acts(one),
  ]);
  return [
    make("h2", {}, "Tokens"),
    make("div", { class: "bar" }, make("button", { type: "button", class: "main", onclick: () => adding(services, again) }, "New token…")),
    table("Tokens", heads, lines),
  ];
}
