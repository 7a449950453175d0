// Four small charts of the last five minutes: requests, time to the first token, tokens, hits.

import { byId, count, el, hour, percent, say, svg, time } from "./dom.js";

const WIDTH = 300;
const HEIGHT = 84;
/** What the width stands for: at least and at most. */
const SPAN_MS = [60_000, 300_000];

/** What each chart shows. The headline is the first series that says something; one that is `rare` has no line at zero. */
const CHARTS = [
  {
    title: "Requests", unit: "/s", form: count, headline: (row) => count(row.requests),
    series: [
      { key: "requests", name: "ended", tone: "ok", area: true },
      { key: "failed", name: "failed", tone: "bad", area: true, rare: true },
      { key: "shed", name: "shed", tone: "warn", area: true, rare: true },
    ],
    aside: (row) => [`${count(row.in_flight)} in flight`],
  },
  {
    title: "First token", unit: "P95", form: time, headline: (row) => time(row.ttft_p95_ms),
    series: [
      { key: "ttft_p95_ms", name: "P95", tone: "ok" },
      { key: "ttft_p50_ms", name: "P50", tone: "second", area: true },
    ],
    aside: () => [],
  },
  {
    title: "Output", unit: "tokens/s", form: count, headline: (row) => count(row.tokens_out),
    series: [{ key: "tokens_out", name: "out", tone: "ok", area: true }],
    aside: (row) => [`${count(row.tokens_in)} in`],
  },
  {
    title: "Prefix hits", unit: "of blocks", form: percent, headline: (row) => percent(row.hit_ratio ?? row.cached_ratio), most: 1,
    series: [
      { key: "hit_ratio", name: "believed", tone: "ok", area: true },
      { key: "cached_ratio", name: "engines say", tone: "second" },
    ],
    aside: () => [],
  },
];

export class Charts {
  constructor() {
    this.charts = CHARTS.map((spec) => new Chart(spec));
    byId("charts").append(...this.charts.map((chart) => chart.figure));
  }

  draw(rows, nowMs) {
    for (const chart of this.charts) chart.draw(rows, nowMs);
  }
}

class Chart {
  constructor(spec) {
    this.spec = spec;
    this.rows = [];
    this.value = el("strong", { text: "–" });
    this.aside = el("p", { class: "aside" });
    this.most = el("span", { class: "most", "aria-hidden": "true" });
    this.past = el("span", { class: "past", "aria-hidden": "true" });
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.paths = spec.series.map(({ tone, area }) => ({
      area: area ? svg("path", { class: `area ${tone}` }) : null,
      line: svg("path", { class: `line ${tone}` }),
    }));
    const drawn = this.paths.toReversed().flatMap(({ area, line }) => (area ? [area, line] : [line]));
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      svg("line", { class: "rule", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
      svg("line", { class: "rule faint", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
      ...drawn, this.cursor);
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.leave());
    this.figure = el("figure", { class: "chart" },
      el("figcaption", {}, el("h3", { text: spec.title }), this.value, el("span", { class: "unit", text: spec.unit }), this.aside),
      el("div", { class: "plot" }, this.picture, this.most, this.past));
  }

  draw(rows, nowMs) {
    this.rows = rows;
    this.nowMs = nowMs;
    const { series, form } = this.spec;
    const highest = this.spec.most ?? ceiling(Math.max(0, ...rows.flatMap((row) => series.map(({ key }) => row[key] ?? 0))));
    const [least, longest] = SPAN_MS;
    this.span = Math.min(Math.max(nowMs - (rows[0]?.at_ms ?? nowMs), least), longest);
    say(this.past, `${time(this.span)} ago`);
    const x = (row) => WIDTH - ((nowMs - row.at_ms) / this.span) * WIDTH;
    const y = (value) => HEIGHT - 1 - (Math.min(value, highest) / (highest || 1)) * (HEIGHT - 6);
    series.forEach(({ key, rare }, at) => {
      const runs = unbroken(rows, rare ? (row, at) => row[key] > 0 || rows[at - 1]?.[key] > 0 || rows[at + 1]?.[key] > 0 : (row) => isNumber(row[key]));
      const points = (run) => run.map((row) => `${x(row).toFixed(1)} ${y(row[key] ?? 0).toFixed(1)}`);
      const line = runs.map((run) => `M${points(run).join("L")}`).join("");
      const area = runs.map((run) => `M${x(run[0]).toFixed(1)} ${HEIGHT}L${points(run).join("L")}L${x(run.at(-1)).toFixed(1)} ${HEIGHT}Z`).join("");
      this.paths[at].line.setAttribute("d", line);
      this.paths[at].area?.setAttribute("d", area);
    });
    say(this.most, highest > 0 ? form(highest) : "");
    if (!this.pointed) this.tell(rows.at(-1));
  }

  /** Writes one row's values: the last, or the one under the pointer. */
  tell(row) {
    const { title, unit, series, form, headline, aside } = this.spec;
    say(this.value, row ? headline(row) : "–");
    const others = row ? series.slice(1).filter(({ key }) => row[key]).map(({ key, name, tone }) => [tone, `${name} ${form(row[key])}`]) : [];
    const extra = row && !this.pointed ? aside(row).map((text) => ["", text]) : [];
    const at = row && this.pointed ? [["", hour(row.at_ms)]] : [];
    const spans = [...others, ...extra, ...at].map(([tone, text]) => el("span", { class: tone, text }));
    this.aside.replaceChildren(...spans);
    if (!this.pointed) this.picture.setAttribute("aria-label", `${title}: ${row ? headline(row) : "nothing yet"} ${unit}`);
  }

  point(event) {
    if (this.rows.length === 0) return;
    const box = this.picture.getBoundingClientRect();
    const wanted = this.nowMs - (1 - (event.clientX - box.left) / box.width) * this.span;
    const row = this.rows.reduce((best, row) => (Math.abs(row.at_ms - wanted) < Math.abs(best.at_ms - wanted) ? row : best));
    const x = WIDTH - ((this.nowMs - row.at_ms) / this.span) * WIDTH;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    this.cursor.setAttribute("visibility", "visible");
    this.pointed = true;
    this.tell(row);
  }

  leave() {
    this.pointed = false;
    this.cursor.setAttribute("visibility", "hidden");
    this.tell(this.rows.at(-1));
  }
}

const isNumber = (value) => value !== null && value !== undefined;

/** Runs of rows that count; a gap in the data is a gap in the line. */
function unbroken(rows, counts) {
  const runs = [];
  let run = [];
  rows.forEach((row, at) => {
    const hasGap = run.length > 0 && row.at_ms - run.at(-1).at_ms > 15_000;
    if (hasGap || !counts(row, at)) {
      if (run.length > 0) runs.push(run);
      run = [];
    }
    if (counts(row, at)) run.push(row);
  });
  if (run.length > 0) runs.push(run);
  return runs;
}

/** The next of 1, 2, 5, 10, …, so that the scale rarely moves. */
function ceiling(value) {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}
