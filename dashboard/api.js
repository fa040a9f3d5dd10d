// Requests to the head. A failed request throws an Error with the server's message. After 401 or
// 403 the visitor is asked for the token and the request is repeated, at most twice.

// Set by app.js to a function that returns a promise, which resolves when the cookie is set.
let signIn = null;
// Number of sign-ins that succeeded. A refusal of a request that was sent before the last of them
// says nothing about the visitor, who must not be asked again for it.
let signIns = 0;

export function onUnauthorized(handler) {
  signIn = handler;
}

// Returns the Response of a successful request.
export async function ask(path, options = {}) {
  for (let attempt = 0; ; ++attempt) {
    const before = signIns;
    const answer = await fetch(path, { cache: "no-store", ...options });
    if ((answer.status === 401 || answer.status === 403) && signIn && attempt < 2) {
      if (signIns === before) await signIn();
      continue;
    }
    if (!answer.ok) throw new Error(await reason(answer));
    return answer;
  }
}

async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).msg || text;
  } catch {
    return text || `${answer.status} ${answer.statusText}`;
  }
}

export async function json(path) {
  return (await ask(path)).json();
}

// Returns rows of a resource of the state API, and notes of the server about rows that are
// missing.
export async function list(resource, { detail = true, limit = 10000, filters = [] } = {}) {
  const query = new URLSearchParams({ limit, detail: detail ? 1 : 0 });
  for (const [key, predicate, value] of filters) {
    query.append("filter_keys", key);
    query.append("filter_predicates", predicate);
    query.append("filter_values", value);
  }
  const found = (await json(`api/v0/${resource}?${query}`)).data.result;
  const notes = [...(found.warnings || [])];
  if (found.partial_failure_warning) notes.push(found.partial_failure_warning);
  if (found.num_filtered > found.result.length)
    notes.push(
      `The first ${found.result.length} of ${found.num_filtered} rows: filter to see others.`,
    );
  return { rows: found.result, notes };
}

export async function signOut() {
  await fetch("api/sign_out", { method: "POST" });
}

export async function signInWith(token) {
  const answer = await fetch("api/authenticate", {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
  });
  if (!answer.ok) throw new Error(await reason(answer));
  ++signIns;
}
