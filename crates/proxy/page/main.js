// The live page: what is told is drawn, what is chosen is opened. Nothing here changes the gateway.

import { drawBands } from "./bands.js";
import { Charts } from "./charts.js";
import { Decisions } from "./decisions.js";
import { byId, say, time } from "./dom.js";
import { openEndpoint } from "./endpoint.js";
import { Feed } from "./feed.js";
import { Fleet } from "./fleet.js";
import { Members, openMember } from "./members.js";
import { openReceipt } from "./receipt.js";
import { Tenants } from "./tenants.js";

const THEMES = ["system", "light", "dark"];
const THEME_NAMES = { system: "System colours", light: "Light", dark: "Dark" };

/** The panel beside or over everything: one thing at a time, closed by Esc. */
class Panel {
  constructor() {
    this.dialog = byId("panel");
    this.body = byId("panel-body");
    byId("close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => {
      // It is told late: something else may be shown by now.
      if (this.dialog.open) return;
      this.onBeat = null;
      this.body.replaceChildren();
    });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  open(title) {
    this.onBeat = null;
    this.title(title);
    this.body.replaceChildren();
    if (!this.dialog.open) this.dialog.showModal();
  }

  title(text) {
    say(byId("panel-title"), text);
  }

  show(...children) {
    this.body.replaceChildren(...children.filter(Boolean));
  }
}

const panel = new Panel();
const charts = new Charts();
const feed = new Feed({ onBeat: beat, onLink: link, onToken: askToken });
const openDecision = (number) => openReceipt(feed, panel, number);
const fleet = new Fleet({
  onOpen: (authority) => openEndpoint(feed, panel, authority, openDecision),
  onScope: (pool) => {
    scope = pool;
    say(byId("scope"), pool === null ? "" : `Charts show pool ${pool} only.`);
    if (feed.model) drawCharts(feed.model);
  },
});
const members = new Members({ onOpen: (name) => openMember(members, panel, name) });
const tenants = new Tenants(feed);
const decisions = new Decisions({ onOpen: openDecision, onLight: (endpoint) => fleet.light(endpoint) });

let scope = null;
let boot = null;
let isPaused = false;

function beat(model) {
  if (isPaused) return;
  if (boot !== model.news.boot) {
    boot = model.news.boot;
    decisions.forget();
  }
  fleet.draw(model);
  members.draw(model.news.fleet);
  tenants.beat();
  drawCharts(model);
  decisions.draw(model.decisions);
  drawBands(model.news.flow);
  const { gateway } = model.news;
  const state = gateway.draining ? "draining" : gateway.ready ? "ready" : "not ready";
  say(byId("about"), `${model.who.version} · ${state} · up ${time(gateway.uptime_ms)}`);
  panel.onBeat?.();
  const root = document.documentElement;
  // When people first saw something, for whoever measures it.
  if (root.dataset.drawn === undefined) requestAnimationFrame(() => performance.mark("drawn"));
  root.dataset.drawn = String(model.news.beat);
}

function drawCharts(model) {
  const rows = scope === null ? model.history : model.poolHistory.get(scope) ?? [];
  charts.draw(rows, model.news.at_ms);
}

function link({ live, since, why }) {
  const state = byId("link");
  state.className = `link ${isPaused ? "paused" : live ? "live" : "lost"}`;
  if (isPaused) say(state, "paused");
  else if (live) say(state, "live");
  else say(state, since === undefined ? `no answer: ${why}` : `no answer for ${time(performance.now() - since)}`);
  document.body.classList.toggle("is-lost", !live);
}

function askToken() {
  const form = byId("token");
  if (!form.hidden) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    form.hidden = true;
    feed.useToken(byId("key").value);
  }, { once: true });
  byId("key").focus();
}

/** What this browser remembers; some keep nothing, which is no reason to fail. */
const memory = {
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* then not */ } },
};

function useTheme(name) {
  const theme = THEMES.includes(name) ? name : "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").dataset.theme = theme;
  say(byId("theme"), THEME_NAMES[theme]);
  byId("theme").setAttribute("aria-label", `Colours: ${theme}. Change`);
}

useTheme(memory.get("theme"));
byId("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(byId("theme").dataset.theme) + 1) % THEMES.length];
  memory.set("theme", next);
  useTheme(next);
});
byId("size").addEventListener("change", (event) => fleet.resize(event.currentTarget.value));
const find = (text) => {
  fleet.find(text);
  members.find(text);
};
byId("find").addEventListener("input", (event) => find(event.currentTarget.value));
byId("find").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.currentTarget.value = "";
  find("");
});
byId("pause").addEventListener("click", (event) => {
  isPaused = !isPaused;
  event.currentTarget.setAttribute("aria-pressed", String(isPaused));
  link({ live: true });
  if (!isPaused && feed.model) beat(feed.model);
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea");
  if (event.key !== "/" || isTyping || panel.dialog.open) return;
  event.preventDefault();
  byId("find").focus();
});

feed.poll();
