// The fleet: a cell for each endpoint, by pool. Cells keep their places; only what changes is touched.

import { arrowed, byId, count, el, exact, percent, plural, say, svg, time } from "./dom.js";

/** Cells that are drawn; a browser is slow beyond. */
const CELLS_MAX = 6000;
/** Beats that a large cell remembers of its running requests. */
const PAST = 90;
/** Ages beyond which a signal is worth a word. */
const OLD_MS = 5000;

export class Fleet {
  /** `onOpen(authority)`: a cell was chosen; `onScope(pool or null)`: the charts should show that pool. */
  constructor({ onOpen, onScope }) {
    this.onOpen = onOpen;
    this.onScope = onScope;
    this.root = byId("fleet");
    this.tip = byId("tip");
    this.wanted = "";
    this.size = "auto";
    this.scope = null;
    this.pools = [];
    this.cells = [];
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("click", (event) => {
      const cell = this.cellOf(event);
      if (cell) this.onOpen(cell.name, cell.button);
    });
    this.root.addEventListener("pointerover", (event) => this.point(this.cellOf(event)));
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("focusin", (event) => this.focus(this.cellOf(event)));
    this.root.addEventListener("focusout", () => this.point(null));
    addEventListener("resize", () => this.fit());
  }

  cellOf(event) {
    const button = event.target.closest?.(".cell");
    return button ? this.cells[Number(button.dataset.at)] : null;
  }

  draw(model) {
    this.model = model;
    if (this.shape !== model.news.shape) this.build(model);
    const { size } = this.root.dataset;
    model.news.pools.forEach((pool, at) => this.pools[at]?.draw(pool, size));
    this.count(model);
    if (this.pointed) this.tell(this.pointed);
  }

  /** Makes all cells anew: endpoints came or went. */
  build(model) {
    this.shape = model.news.shape;
    const focused = document.activeElement?.closest?.(".cell") ? this.cells[Number(document.activeElement.dataset.at)]?.name : null;
    this.cells = [];
    this.point(null);
    let room = CELLS_MAX;
    this.pools = model.who.pools.map((who) => {
      const drawn = who.endpoints.slice(0, room);
      room -= drawn.length;
      const pool = new Pool(who, drawn, model.who, this);
      for (const cell of pool.cells) {
        cell.button.dataset.at = this.cells.length;
        this.cells.push(cell);
      }
      return pool;
    });
    const empty = el("p", { class: "empty", text: "No endpoint has told yet which models it serves." });
    this.root.replaceChildren(...(this.pools.length > 0 ? this.pools.map((pool) => pool.section) : [empty]));
    if (room <= 0) this.root.append(el("p", { class: "empty", text: `Only the first ${exact(CELLS_MAX)} endpoints are drawn.` }));
    if (!this.pools.some((pool) => pool.name === this.scope)) this.scopeTo(null);
    this.fit(true);
    this.find(this.wanted);
    const again = this.cells.find((cell) => cell.name === focused) ?? this.cells[0];
    if (again) again.button.tabIndex = 0;
    if (focused && again) again.button.focus({ preventScroll: true });
  }

  /** Chooses how large cells are. */
  fit(isAboutToDraw = false) {
    const isNarrow = innerWidth < 700;
    const [large, medium] = isNarrow ? [8, 80] : [24, 240];
    const many = this.cells.length;
    const size = this.size === "auto" ? (many <= large ? "l" : many <= medium ? "m" : "s") : this.size;
    if (this.root.dataset.size === size) return;
    this.root.dataset.size = size;
    if (!isAboutToDraw && this.model) this.draw(this.model);
  }

  resize(size) {
    this.size = size;
    this.fit();
  }

  /** Dims what does not match. */
  find(text) {
    this.wanted = text;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const cell of this.cells) {
      const is = (word) => cell.name.toLowerCase().includes(word) || cell.state === word || cell.engine === word || cell.pool.toLowerCase().includes(word);
      cell.button.classList.toggle("off", words.length > 0 && !words.every(is));
    }
    this.root.classList.toggle("finding", words.length > 0);
  }

  scopeTo(name) {
    this.scope = name;
    for (const pool of this.pools) pool.toggle.setAttribute("aria-pressed", String(pool.name === name));
    this.onScope(name);
  }

  /** Marks the cells of an endpoint, while somebody looks at a decision for it. */
  light(name) {
    for (const cell of this.cells) cell.button.classList.toggle("lit", cell.name === name);
  }

  count({ news, who }) {
    // Members are counted where they are drawn.
    if (news.fleet) return;
    const states = new Array(who.states.length).fill(0);
    let [running, waiting] = [0, 0];
    for (const { rows } of news.pools) {
      for (const state of rows.state) states[state] += 1;
      for (const value of rows.running) running += value;
      for (const value of rows.waiting) waiting += value;
    }
    const all = states.reduce((sum, value) => sum + value, 0);
    const others = states.map((value, at) => (value > 0 && who.states[at] !== "ready" ? `${exact(value)} ${who.states[at]}` : null)).filter(Boolean);
    say(byId("census"), [plural(all, "endpoint"), ...others, `${exact(running)} running`, `${exact(waiting)} waiting`].join(" · "));
  }

  key(event) {
    const cell = this.cellOf(event);
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = arrowed(event, this.cells.map((cell) => cell.button), Number(cell.button.dataset.at));
    if (next === null) return;
    event.preventDefault();
    this.cells[next].button.focus();
  }

  /** One cell of all is in the order of focus; arrow keys lead to the others. */
  focus(cell) {
    if (!cell) return;
    for (const other of this.root.querySelectorAll(".cell[tabindex='0']")) other.tabIndex = -1;
    cell.button.tabIndex = 0;
    this.point(cell);
  }

  point(cell) {
    this.pointed = cell;
    this.tip.hidden = !cell;
    if (cell) this.tell(cell);
  }

  tell(cell) {
    const { tip } = this;
    tip.replaceChildren(el("b", { text: cell.name }), ...cell.facts().map((text) => el("span", { text })));
    const box = cell.button.getBoundingClientRect();
    const room = { width: tip.offsetWidth, height: tip.offsetHeight };
    const left = Math.min(Math.max(8, box.left + box.width / 2 - room.width / 2), innerWidth - room.width - 8);
    const above = box.top - room.height - 8;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 8 ? above : box.bottom + 8) + scrollY}px`;
  }
}

class Pool {
  constructor(who, drawn, words, fleet) {
    this.name = who.name;
    this.cells = drawn.map((name) => new Cell(name, who.name, words));
    this.load = el("span", { class: "gauge", role: "img" }, el("i"));
    this.numbers = el("p", { class: "numbers" });
    this.isRouter = who.endpoints.length === 0 && who.scorers.length === 0;
    this.toggle = el("button", { type: "button", class: "scope-to", "aria-pressed": "false", title: "Show this pool in the charts", text: "Chart",
      "aria-label": `Show pool ${who.name} in the charts`,
      on: { click: () => fleet.scopeTo(fleet.scope === who.name ? null : who.name) } });
    const policy = who.scorers.map(({ name, weight }) => `${name} ${Math.round(weight * 100) / 100}`).join(", ");
    const trial = who.shadow ? `on trial: ${who.shadow.map(({ name, weight }) => `${name} ${Math.round(weight * 100) / 100}`).join(", ")}` : "";
    this.trial = el("span", {});
    const title = el("h3", { text: who.name });
    const model = who.model === who.name ? null : el("span", { class: "model", text: who.model });
    this.section = el("section", { class: "pool" },
      el("header", {}, title, model, this.isRouter ? null : this.load, this.toggle),
      this.numbers,
      el("p", { class: "policy" }, el("span", { text: policy }), trial ? el("span", { text: trial }) : null, this.trial),
      el("div", { class: "cells", role: "group", "aria-label": `Endpoints of pool ${who.name}` }, ...this.cells.map((cell) => cell.button)));
  }

  draw({ saturation, pulse, shadow, rows }, size) {
    this.load.setAttribute("aria-label", `saturation ${percent(saturation)}`);
    this.load.title = `saturation ${percent(saturation)}`;
    const bar = this.load.firstChild;
    bar.className = `l${level(saturation, saturation, true)}`;
    bar.style.width = `${Math.round(Math.min(saturation, 1) * 100)}%`;
    say(this.numbers, [
      ...(this.isRouter ? [] : [`saturation ${percent(saturation)}`]), `${count(pulse.requests)} requests/s`, `${exact(pulse.in_flight)} in flight`,
      ...(pulse.ttft_p50_ms === null ? [] : [`first token ${time(pulse.ttft_p50_ms)}, P95 ${time(pulse.ttft_p95_ms)}`]),
      ...(pulse.hit_ratio === null ? [] : [`${percent(pulse.hit_ratio)} prefix hits`]),
      ...(pulse.failed > 0 ? [`${count(pulse.failed)} failed/s`] : []), ...(pulse.shed > 0 ? [`${count(pulse.shed)} shed/s`] : []),
    ].join(" · "));
    if (shadow) {
      const all = shadow.same + shadow.different + shadow.refused;
      say(this.trial, all > 0 ? `agreed on ${percent(shadow.same / all)} of ${exact(all)}` : "has rated nothing yet");
    }
    this.cells.forEach((cell, at) => cell.draw(rows, at, size));
  }
}

class Cell {
  constructor(name, pool, words) {
    this.name = name;
    this.pool = pool;
    this.words = words;
    this.past = [];
    this.water = el("i", { class: "water" });
    this.button = el("button", { type: "button", class: "cell", tabindex: "-1" }, this.water);
  }

  /** Words and numbers, which the smallest cells have no room for: made when they are first seen. */
  parts() {
    if (this.name_) return;
    this.name_ = el("span", { class: "name", text: this.name });
    this.running = el("b", { class: "running" });
    this.waiting = el("span", { class: "waiting" });
    this.word = el("span", { class: "word" });
    this.rest = el("span", { class: "rest" });
    this.trace = svg("path", {});
    this.button.append(this.name_, this.word, this.running, this.waiting,
      svg("svg", { class: "trace", viewBox: `0 0 ${PAST} 20`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.trace), this.rest);
  }

  draw(rows, at, size) {
    const values = {
      running: rows.running[at], waiting: rows.waiting[at], kv: rows.kv[at], saturation: rows.saturation[at],
      adapters: rows.adapters[at], age: rows.age_ms[at], speed: rows.idle_ttft_ms[at], inFlight: rows.in_flight[at],
      prefill: rows.prefill_tokens[at], picks: rows.picks[at],
    };
    this.values = values;
    this.state = this.words.states[rows.state[at]] ?? "ready";
    this.engine = this.words.engines[rows.engine[at]] ?? "unknown";
    const isBusy = values.running + values.waiting + values.inFlight > 0;
    const [load, { button }] = [level(values.saturation, values.kv ?? 0, isBusy), this];
    const looks = `cell ${this.state} l${load}${values.waiting > 0 ? " queued" : ""}`;
    if (this.looks !== looks) {
      // What a search or a decision has marked stays so.
      for (const old of (this.looks ?? "").split(" ").filter(Boolean)) button.classList.remove(old);
      button.classList.add(...looks.split(" "));
      this.looks = looks;
      const busy = ["idle", "working", "busy", "nearly full", "full"][load];
      button.setAttribute("aria-label", `${this.name}, ${this.state}, ${busy}${values.waiting > 0 ? ", requests wait" : ""}`);
    }
    const height = Math.round(Math.min(values.kv ?? values.saturation, 1) * 100);
    if (this.height !== height) {
      this.height = height;
      this.water.style.transform = `translateY(${100 - height}%)`;
    }
    this.past.push(values.running);
    if (this.past.length > PAST) this.past.shift();
    if (size === "s") return;
    this.parts();
    say(this.running, exact(values.running));
    say(this.waiting, values.waiting > 0 ? `+${count(values.waiting)}` : "");
    if (size !== "l") return;
    say(this.word, this.state === "ready" ? "" : this.state);
    this.trace.setAttribute("d", trace(this.past));
    const isOld = values.age === null || values.age > OLD_MS;
    say(this.rest, [
      `KV ${percent(values.kv)}`, ...(values.speed ? [`1K in ${time(values.speed)}`] : []),
      ...(values.adapters > 0 ? [plural(values.adapters, "adapter")] : []),
      ...(isOld ? [values.age === null ? "no signals" : `${time(values.age)} old`] : []),
    ].join(" · "));
  }

  facts() {
    const { running, waiting, kv, adapters, age, speed, inFlight, saturation } = this.values ?? {};
    return [
      this.state === "ready" ? this.engine : `${this.state} · ${this.engine}`,
      `${exact(running)} running, ${exact(waiting)} waiting`,
      `${exact(inFlight)} in flight from here`,
      `KV cache ${percent(kv)}, saturation ${percent(saturation)}`,
      speed ? `a 1,000-token prompt takes it ${time(speed)}` : "speed not learned yet",
      ...(adapters > 0 ? [`${plural(adapters, "adapter")} resident`] : []),
      age === null ? "no signals yet" : `signals ${time(age)} old`,
    ];
  }
}

/** The running requests of the last beats, the newest on the right. */
function trace(past) {
  const most = Math.max(4, ...past);
  const points = past.map((value, at) => `${PAST - past.length + at} ${(19 - (value / most) * 18).toFixed(1)}`);
  return points.length > 1 ? `M${points.join("L")}` : "";
}

/** 0 idle to 4 full. A cache that is nearly full is no reason to refuse; a queue at its ceiling is. */
function level(saturation, kv, isBusy) {
  if (saturation >= 1) return 4;
  const most = Math.max(saturation, kv);
  if (most >= 0.75) return 3;
  if (most >= 0.4) return 2;
  return isBusy ? 1 : 0;
}
