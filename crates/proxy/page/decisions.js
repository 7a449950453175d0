// The stream of decisions. It holds still while somebody is about to choose one.

import { byId, count, el, hour, percent, say, time } from "./dom.js";

export class Decisions {
  /** `onOpen(number)`: one was chosen; `onLight(endpoint or null)`: one is looked at. */
  constructor({ onOpen, onLight }) {
    this.onOpen = onOpen;
    this.list = byId("decisions");
    this.held = byId("held");
    this.items = new Map();
    this.isPointed = false;
    this.list.addEventListener("pointerenter", () => { this.isPointed = true; });
    this.list.addEventListener("pointerleave", () => { this.isPointed = false; onLight(null); this.draw(this.decisions ?? []); });
    const look = (event) => onLight(this.itemOf(event)?.decision.endpoint ?? null);
    this.list.addEventListener("pointerover", look);
    this.list.addEventListener("focusin", look);
    this.list.addEventListener("focusout", () => onLight(null));
    this.list.addEventListener("keydown", (event) => this.key(event));
  }

  itemOf(event) {
    const button = event.target.closest?.("button");
    return button ? this.items.get(Number(button.dataset.number)) : null;
  }

  get isHeld() {
    return this.isPointed || this.list.contains(document.activeElement);
  }

  draw(decisions) {
    this.decisions = decisions;
    const newest = this.shown ?? -1;
    const fresh = decisions.filter((decision) => decision.number > newest);
    if (this.isHeld && this.items.size > 0) {
      say(this.held, fresh.length > 0 ? "held while you look" : "");
      return;
    }
    say(this.held, "");
    if (fresh.length === 0 && decisions.length === this.items.size) return;
    const before = this.items;
    this.items = new Map(decisions.map((decision) => [decision.number, before.get(decision.number) ?? this.item(decision)]));
    this.shown = decisions[0]?.number;
    if (decisions.length > 0) this.list.replaceChildren(...[...this.items.values()].map((item) => item.row));
  }

  /** Another gateway counts anew. */
  forget() {
    this.items = new Map();
    this.shown = -1;
  }

  item(decision) {
    const hits = decision.prompt_blocks > 0 ? decision.matched_blocks / decision.prompt_blocks : null;
    const differs = decision.shadow_same === false;
    const meter = el("span", { class: "hits", title: `${percent(hits)} of the prompt is cached there` }, el("i"));
    meter.firstChild.style.width = `${Math.round((hits ?? 0) * 100)}%`;
    const button = el("button", { type: "button", "data-number": decision.number, on: { click: (event) => this.onOpen(decision.number, event.currentTarget) } },
      el("span", { class: "at", text: hour(decision.time) }),
      el("span", { class: "model", text: decision.model }),
      el("span", { class: "to" }, el("span", { text: decision.endpoint ?? "(left)" }), differs ? el("b", { class: "differs", text: "≠ trial", title: "The policy on trial would have chosen another endpoint" }) : null),
      el("span", { class: "size", text: `${count(decision.prompt_tokens)} tok` }),
      meter,
      el("span", { class: "ttft", text: time(decision.predicted_ttft_ms), title: "Expected time to the first token" }));
    return { decision, row: el("li", {}, button) };
  }

  key(event) {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const row = event.target.closest?.("li");
    if (!step || !row) return;
    event.preventDefault();
    row[step]?.querySelector("button")?.focus();
  }
}
