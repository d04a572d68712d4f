// The note about tokens that expire soon.

import { make, time } from "/assets/views.js";

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
    " on the engine's machine makes another secret.");
  place.replaceChildren(...expiring.map(line));
}
