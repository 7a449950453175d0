// A router's fleet: a card for each member cluster, what it gets, and why.

import { arrowed, byId, count, el, exact, percent, plural, say, time } from "./dom.js";

/** Ages beyond which a report is worth a warning. */
const REPORT_OLD_MS = 6000;
const REASONS = {
  local: "it is in the router's region", soonest: "it would answer soonest", spill: "others had no room", affinity: "it has the session or the prompt's beginning",
  shaped: "it was cheapest or greenest in time", weights: "by the weights", only: "no other could", failover: "another had failed it", overflow: "all were nearly full",
};

const sum = (member, of) => member.models.reduce((all, model) => all + model[of], 0);

/** Requests that came because there was no room elsewhere. */
const spilled = (member) => (member.reasons.spill ?? 0) + (member.reasons.overflow ?? 0);

/** Money in the unit of the document's prices, which has no name. */
const amount = (value) => (Math.abs(value) >= 1 ? value.toFixed(2) : String(Number(value.toPrecision(2))));

const load = (member) => (member.models.length > 0 ? Math.max(...member.models.map((model) => model.load)) : null);

export class Members {
  /** `onOpen(name)`: a member was chosen. */
  constructor({ onOpen }) {
    this.onOpen = onOpen;
    this.root = byId("members");
    this.cards = [];
    this.wanted = "";
    this.root.addEventListener("keydown", (event) => {
      const at = this.cards.findIndex(({ button }) => button === event.target);
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      const next = arrowed(event, this.cards.map(({ button }) => button), at);
      if (next === null) return;
      event.preventDefault();
      this.cards[next].button.focus();
    });
  }

  /** `told`: as /debug/fleet has it; absent where the gateway is no router. */
  draw(told) {
    this.told = told;
    this.root.hidden = !told;
    byId("find").placeholder = told ? "Find a member" : "Find an endpoint";
    document.documentElement.classList.toggle("is-router", Boolean(told));
    if (!told) return;
    const names = told.members.map(({ member }) => member).join("\n");
    if (this.names !== names) {
      this.names = names;
      this.cards = told.members.map(({ member }) => new Card(member, this.onOpen));
      this.root.replaceChildren(...this.cards.map(({ button }) => button));
      this.find(this.wanted);
    }
    told.members.forEach((member, at) => this.cards[at].draw(member));
    const out = told.members.filter((member) => !member.takes_requests).length;
    const flying = told.members.reduce((all, member) => all + member.in_flight, 0);
    const left = told.budgets.map(({ tenant, remaining, per_day }) => `${tenant} has ${amount(remaining)} of ${amount(per_day)} left today`);
    say(byId("census"), [
      plural(told.members.length, "member"), ...(out > 0 ? [`${exact(out)} out`] : []), `${exact(flying)} in flight`,
      ...(told.frozen ? ["most fell silent at once: this router holds on to what it knew"] : []), ...left,
    ].join(" · "));
  }

  find(text) {
    this.wanted = text;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.cards.forEach(({ button }, at) => {
      const { member, state, region } = this.told.members[at];
      const is = (word) => member.toLowerCase().includes(word) || state === word || region.toLowerCase().includes(word);
      button.classList.toggle("off", words.length > 0 && !words.every(is));
    });
  }

  of(name) {
    return this.told?.members.find(({ member }) => member === name);
  }
}

class Card {
  constructor(name, onOpen) {
    this.name = name;
    this.word = el("span", { class: "word" });
    this.share = el("b", {});
    this.used = el("i", {});
    this.full = el("span", {});
    this.facts = el("span", { class: "rest" });
    this.button = el("button", { type: "button", class: "member", on: { click: () => onOpen(name) } },
      el("span", { class: "name", text: name }), this.word, el("span", { class: "share" }, this.share, " of requests"),
      el("span", { class: "use" }, el("span", { class: "gauge" }, this.used), this.full), this.facts);
  }

  draw(member) {
    const full = load(member);
    const level = full === null ? 0 : full >= 1 ? 4 : full >= 0.75 ? 3 : full >= 0.4 ? 2 : member.in_flight > 0 ? 1 : 0;
    this.button.className = `member ${member.state} l${level}${this.button.classList.contains("off") ? " off" : ""}`;
    const state = member.drained ? `${member.state} (by an operator)` : member.state;
    this.button.setAttribute("aria-label", `${this.name}, ${state}, ${percent(member.share_now)} of requests`);
    say(this.word, state);
    say(this.share, percent(member.share_now));
    this.used.style.width = `${Math.round(Math.min(full ?? 0, 1) * 100)}%`;
    say(this.full, full === null ? "load unknown" : `${percent(full)} in use`);
    const [ready, waiting, spill] = [sum(member, "endpoints_ready"), sum(member, "waiting"), spilled(member)];
    const age = member.heartbeat_age_ms;
    say(this.facts, [
      ...(member.region ? [member.region] : []),
      ...(age === null ? ["has not reported yet"] : [`heard ${time(age)} ago`, `way ${time(member.round_trip_ms)}`]), `${exact(member.in_flight)} in flight`,
      ...(member.ramp < 1 ? [`ramp ${percent(member.ramp)}`] : []), ...(age === null ? [] : [`${plural(ready, "endpoint")} ready`]),
      ...(waiting > 0 ? [`${exact(waiting)} waiting`] : []), ...(spill > 0 ? [`${count(spill)} spilled here`] : []),
      ...(member.failed >= 0.005 ? [`${percent(member.failed)} failed`] : []),
    ].join(" · "));
    this.facts.classList.toggle("late", age === null || age > REPORT_OLD_MS);
  }
}

/** Shows the member and goes on showing it with every beat. */
export function openMember(members, panel, name) {
  panel.open(name);
  const body = el("div", {});
  panel.show(body);
  const draw = () => {
    const member = members.of(name);
    body.replaceChildren(...(member ? memberSheet(member, members.told) : [el("p", { class: "empty", text: "This member has left the document." })]));
  };
  panel.onBeat = draw;
  draw();
}

function memberSheet(member, told) {
  const groups = [
    ["It says", [
      ["State", member.drained ? `${member.state} (by an operator)` : member.state],
      ["Last report", member.heartbeat_age_ms === null ? "none yet" : `${time(member.heartbeat_age_ms)} ago`],
      ["Reports late by", time(member.heartbeat_lag_ms)],
      ["Endpoints ready", exact(sum(member, "endpoints_ready"))],
      ["Waiting there", exact(sum(member, "waiting"))],
    ]],
    ["We see", [
      ["Way there and back", member.heartbeat_age_ms === null ? "not known yet" : time(member.round_trip_ms)],
      ["May be used", percent(member.ramp)],
      ["Failed lately", percent(member.failed)],
      ["In flight", exact(member.in_flight)],
      ["Sent there so far", `${exact(member.sent)}, ${percent(member.share)} of all`],
      ["Over five minutes", `${count(member.requests_per_second)} requests/s, ${count(member.failovers_per_second)} failovers/s`],
    ]],
  ];
  const why = Object.entries(member.reasons).toSorted(([, a], [, b]) => b - a);
  const most = Math.max(1, ...why.map(([, n]) => n));
  const money = told.savings.find((saving) => saving.member === member.member);
  const table = (head, rows) => el("div", { class: "wide" }, el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col", text })))),
    el("tbody", {}, ...rows)));
  return [
    el("p", { class: "pool-name", text: [member.url, member.region].filter(Boolean).join(" · ") }),
    el("div", { class: "sheet-body two" }, ...groups.map(([title, facts]) =>
      el("div", { class: "group" }, el("h3", { text: title }), el("dl", {}, ...facts.flatMap(([term, text]) => [el("dt", { text: term }), el("dd", { text })]))))),
    el("div", { class: "recent" }, el("h3", { text: "Why it got requests" }),
      why.length === 0 ? el("p", { class: "empty", text: "It has got none yet." }) : table(["", "Requests", "Because"], why.map(([reason, n]) => {
        const bar = el("i", {});
        bar.style.width = `${Math.round((n / most) * 100)}%`;
        return el("tr", {}, el("td", { class: "queue" }, el("span", { class: "gauge" }, bar)), el("td", { text: exact(n) }), el("td", { class: "words", text: `${reason}: ${REASONS[reason] ?? ""}` }));
      }))),
    el("div", { class: "recent" }, el("h3", { text: "Models" }), table(["Model", "Ready", "In flight, of", "Waiting", "In use", "Times take"], member.models.map((model) => el("tr", {},
      el("th", { scope: "row", text: model.model }), el("td", { text: exact(model.endpoints_ready) }), el("td", { text: `${exact(model.in_flight)} of ${exact(model.in_flight_max)}` }),
      el("td", { text: exact(model.waiting) }), el("td", { text: percent(model.load) }), el("td", { text: `${count(model.slowness)} × as expected` }))))),
    money && money.spent > 0 ? el("p", { class: "recent", text: `Spent there, by estimate: ${amount(money.spent)}; saved by shaping: ${amount(money.saved)}.` }) : null,
  ].filter(Boolean);
}
