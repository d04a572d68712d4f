// Asks the engine. The token stays in this tab, and goes when it is closed.

const KEY = "trimtab-token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

export class Refused extends Error {
  constructor(status, body) {
    super(body.message);
    this.status = status;
    this.reason = body.reason;
  }
}

async function request(path, options) {
  const headers = { Authorization: `Bearer ${token.get()}`, ...options.headers };
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response.json();
  const unreadable = { reason: "", message: `the engine answers ${response.status}` };
  throw new Refused(response.status, await response.json().catch(() => unreadable));
}

/** Asks; parameters that are empty are left out. */
export function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value != null);
  const query = new URLSearchParams(given).toString();
  return request(query ? `${path}?${query}` : path, {});
}

/** Tells. */
export function tell(path, body) {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method: "POST", headers, body: JSON.stringify(body) });
}
