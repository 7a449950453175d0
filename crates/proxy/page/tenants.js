// What each tenant's requests took of the GPUs, and what that costs by the price sheet. Asked for only while it is open.

import { byId, el, exact, percent } from "./dom.js";

/** Between two questions. */
const USAGE_EVERY_MS = 5000;
const TENANTS_MAX = 50;

/** An amount in the price sheet's currency. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return "–";
  const digits = amount !== 0 && Math.abs(amount) < 1 ? 4 : 2;
  return `${amount.toFixed(digits)} ${currency}`;
}

/** Seconds of GPUs, rounded as `wicketgate top` rounds them. */
function gpuTime(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  return seconds < 5970 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

export class Tenants {
  constructor(feed) {
    this.feed = feed;
    this.root = byId("tenants");
    this.body = byId("tenants-body");
    this.root.addEventListener("toggle", () => this.look());
    this.askedAt = -Infinity;
  }

  beat() {
    if (performance.now() - this.askedAt >= USAGE_EVERY_MS) this.look();
  }

  async look() {
    if (!this.root.open) return;
    this.askedAt = performance.now();
    try {
      this.draw(await this.feed.ask("/debug/usage"));
    } catch (error) {
      this.body.replaceChildren(el("p", { class: "empty", text: `The accounts cannot be shown: ${error.message}.` }));
    }
  }

  draw({ currency, rows, prices }) {
    if (rows.length === 0) {
      this.body.replaceChildren(el("p", { class: "empty", text: "No request has been accounted yet." }));
      return;
    }
    const taken = (row) => row.prefill_gpu_seconds + row.decode_gpu_seconds;
    const all = rows.reduce((sum, row) => sum + taken(row), 0);
    const ordered = rows.toSorted((a, b) => taken(b) - taken(a));
    const most = Math.max(1e-9, taken(ordered[0]));
    const head = ["Tenant", "Pool", "Requests", "GPU time", "Share", "Prefill", "Decode", "Saved by cache", "Cost"];
    const cost = rows.some((row) => row.cost !== null) ? rows.reduce((sum, row) => sum + (row.cost ?? 0), 0) : null;
    const sheet = prices.map(({ pool, gpu_hour, gpus_per_endpoint }) => `${pool}: ${money(gpu_hour, currency)} a GPU-hour${gpus_per_endpoint > 1 ? `, ${gpus_per_endpoint} GPUs an endpoint` : ""}`);
    this.body.replaceChildren(
      el("p", { class: "census", text: `${gpuTime(all)} of GPU time since the gateway started${cost === null ? "" : `, ${money(cost, currency)}`}. An estimate from learned speeds.` }),
      el("p", { class: "census", text: sheet.length > 0 ? `Prices: ${sheet.join("; ")}.` : "No price sheet: observability.prices in the document gives costs." }),
      el("div", { class: "wide" }, el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, ...ordered.slice(0, TENANTS_MAX).map((row) => {
          const bar = el("i", {});
          bar.style.width = `${Math.round((taken(row) / most) * 100)}%`;
          return el("tr", {},
            el("th", { scope: "row", text: row.tenant }), el("td", { text: row.pool }), el("td", { text: exact(row.requests) }),
            el("td", { class: "queue" }, el("span", { class: "gauge" }, bar), el("span", { text: gpuTime(taken(row)) })),
            el("td", { text: percent(all > 0 ? taken(row) / all : 0) }),
            el("td", { text: gpuTime(row.prefill_gpu_seconds) }), el("td", { text: gpuTime(row.decode_gpu_seconds) }),
            el("td", { text: gpuTime(row.saved_gpu_seconds) }), el("td", { text: money(row.cost, currency) }));
        })))),
      ...(ordered.length > TENANTS_MAX ? [el("p", { class: "census", text: `${exact(ordered.length - TENANTS_MAX)} more are at /debug/usage.` })] : []));
  }
}
