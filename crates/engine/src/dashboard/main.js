// Which page is shown, by the address behind `#`, and who may see it.

import { ask, token } from "/assets/api.js";
import { hosts } from "/assets/hosts.js";
import { overview } from "/assets/overview.js";
import { banner, clear } from "/assets/safe.js";
import { experiment, rollout, studies } from "/assets/studies.js";
import { tokens } from "/assets/tokens.js";
import { aggregate, audit, list, make } from "/assets/views.js";

/** How often a page that nobody works in is drawn anew. */
const AGAIN_MS = 15000;

const main = document.getElementById("main");
const message = document.getElementById("message");
const nav = document.getElementById("nav");
const listState = { fail };

function fail(error) {
  if (error.status === 401) {
    token.forget();
    signIn(error.message);
    return;
  }
  message.textContent = error.message;
}

function signIn(problem) {
  nav.hidden = true;
  clear();
  message.textContent = problem ?? "";
  const field = make("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const submit = (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    ask("/v1/status").then(show, fail);
  };
  main.replaceChildren(
    make("h2", {}, "Sign in"),
    make("p", { class: "faint" }, "A token of an operator or viewer: `trimtab engine token add NAME --role viewer` makes one."),
    make("form", { class: "bar", onsubmit: submit }, make("label", { for: "token" }, "Token"), field,
      make("button", { type: "submit", class: "main" }, "Sign in")),
  );
  field.focus();
}

let turn = 0;

async function show() {
  if (!token.get()) return signIn();
  const mine = ++turn;
  const [path, query] = location.hash.slice(1).split("?");
  const name = Object.fromEntries(new URLSearchParams(query));
  const pages = {
    "/aggregates": () => list(listState), "/aggregate": () => aggregate(name, show), "/audit": audit, "/hosts": hosts,
    "/tokens": () => tokens(show), "/experiments": studies,
    "/experiment": () => experiment(name, show), "/rollout": () => rollout(name, show),
  };
  try {
    const [nodes] = await Promise.all([(pages[path] ?? overview)(), banner(show)]);
    if (mine !== turn) return;
    nav.hidden = false;
    message.textContent = "";
    main.replaceChildren(...nodes);
    main.dataset.page = path || "/";
  } catch (error) {
    if (mine !== turn) return;
    fail(error);
    if (error.status === 401) return;
    // A person who has signed in sees the pages, whatever this one lacks.
    nav.hidden = false;
    main.replaceChildren(make("p", {}, "This page cannot be shown: ", make("a", { href: "#/" }, "the overview"), "."));
  }
}

document.getElementById("leave").addEventListener("click", () => {
  token.forget();
  signIn();
});
const search = () => document.getElementById("search");
let searching = false;
addEventListener("hashchange", () => show().then(() => {
  ((searching && search()) || main).focus();
  searching = false;
}));
addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key !== "/" || typing || nav.hidden || document.querySelector("dialog")) return;
  event.preventDefault();
  if (search()) return search().focus();
  searching = true;
  location.hash = "#/aggregates";
});
setInterval(() => {
  // A person who types, chooses or answers a question is left alone.
  const active = document.activeElement;
  const busy = (active !== main && main.contains(active)) || document.querySelector("dialog");
  if (token.get() && !busy && !document.hidden) show();
}, AGAIN_MS);
show();
