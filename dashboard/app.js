// The page: tabs, the sign-in dialog, and one open view, which is refreshed every two seconds.
import { json, onUnauthorized, signInWith, signOut } from "./api.js";
import { destroyCharts } from "./chart.js";
import { el } from "./dom.js";
import * as views from "./views.js";

const TABS = {
  overview: "Overview",
  nodes: "Nodes",
  jobs: "Jobs",
  actors: "Actors",
  groups: "Groups",
  train: "Train",
  tasks: "Tasks",
  workers: "Processes",
  objects: "Objects",
  logs: "Logs",
  timeline: "Timeline",
};
const REFRESH_MS = 2000;
const place = document.getElementById("view"),
  status = document.getElementById("state");
// Number of the open view. A refresh of an earlier view stops when it sees another number.
let shown = 0;

// The resolve functions of requests that wait for the sign-in.
const waiting = [];
function signIn() {
  return new Promise((resolve) => {
    waiting.push(resolve);
    const dialog = document.getElementById("login");
    if (!dialog.open) dialog.showModal();
  });
}

document.getElementById("login").addEventListener("cancel", (event) => event.preventDefault());
document.getElementById("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const error = document.getElementById("login-error");
  try {
    await signInWith(document.getElementById("token").value.trim());
    error.textContent = "";
    document.getElementById("token").value = "";
    document.getElementById("login").close();
    for (const resolve of waiting.splice(0)) resolve();
  } catch (problem) {
    error.textContent = problem.message;
  }
});
onUnauthorized(signIn);

const signOutButton = document.getElementById("sign-out");
signOutButton.addEventListener("click", async () => {
  await signOut();
  location.reload();
});
json("api/authentication_mode").then(
  (mode) => {
    signOutButton.hidden = mode.authentication_mode !== "token";
  },
  () => {},
);

function open() {
  const [name, query] = location.hash.slice(1).split("?");
  const view = Object.hasOwn(views, name) ? name : "overview";
  destroyCharts();
  const number = ++shown,
    built = views[view](Object.fromEntries(new URLSearchParams(query || "")));
  for (const tab of document.querySelectorAll("nav a"))
    tab.setAttribute("aria-selected", tab.hash === `#${view}`);
  document.title = `${TABS[view] || view} · Ray cluster`;
  place.replaceChildren(built.element);
  const turn = async () => {
    if (number !== shown) return;
    try {
      if (!document.hidden) await built.refresh();
      if (number === shown) say("");
    } catch (error) {
      if (number === shown) say(error.message);
    }
    if (!built.once) setTimeout(turn, REFRESH_MS);
  };
  turn();
}

function say(text) {
  status.textContent = text;
  status.className = text ? "bad" : "";
}

document
  .getElementById("tabs")
  .replaceChildren(
    ...Object.entries(TABS).map(([name, text]) => el("a", { href: `#${name}`, role: "tab" }, text)),
  );
addEventListener("hashchange", open);
open();
json("api/version").then(
  (answer) => {
    document.getElementById("cluster").textContent = answer.session_name;
  },
  () => {},
);
