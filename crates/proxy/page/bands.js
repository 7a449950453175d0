// Who waits: the bands of each pool's queue, the highest priority first. Shown once there are any.

import { byId, el, exact, time } from "./dom.js";

export function drawBands(bands) {
  const root = byId("bands");
  root.hidden = !bands || bands.length === 0;
  if (root.hidden) return;
  const most = Math.max(1, ...bands.map((band) => band.requests));
  const ordered = bands.toSorted((a, b) => (a.pool === b.pool ? b.priority - a.priority : a.pool < b.pool ? -1 : 1));
  const head = ["Pool", "Band", "Requests", "Tokens", "Oldest", "Flows"];
  root.replaceChildren(
    el("h2", { text: "Queues" }),
    el("table", {},
      el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, ...ordered.map((band) => row(band, most)))));
}

function row(band, most) {
  const bar = el("i", {});
  bar.style.width = `${Math.round((band.requests / most) * 100)}%`;
  return el("tr", {},
    el("th", { scope: "row", text: band.pool }),
    el("td", { text: String(band.band) }),
    el("td", { class: "queue" }, el("span", { class: "gauge" }, bar), el("span", { text: exact(band.requests) })),
    el("td", { text: exact(band.tokens) }),
    el("td", { text: band.requests > 0 ? time(band.oldest_ms) : "–" }),
    el("td", { text: exact(band.flows) }));
}
