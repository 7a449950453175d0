// One decision: every candidate with its scores as a bar, what filters removed, and what another policy
// would have made of the same signals.

import { count, difference, el, exact, hour, percent, plural, time } from "./dom.js";

/** Candidates shown at first. */
const SHOWN = 12;

const POLICIES = [
  ["decided", "As decided"],
  ["wicketgate", "wicketgate"],
  ["reference", "reference 2/2/3"],
];

/** Shows the decision; `feed` answers questions, `panel` has a title and a body. */
export async function openReceipt(feed, panel, number) {
  panel.open(`Decision ${exact(number)}`);
  let decided;
  try {
    decided = (await feed.ask(`/debug/decisions?number=${number}`)).decisions[0];
    if (!decided) throw new Error("it is no longer kept: the gateway remembers the last 256");
  } catch (error) {
    panel.show(el("p", { class: "empty", text: `This decision cannot be shown: ${error.message}.` }));
    return;
  }
  const chosen = decided.order[0];
  panel.title(`Why ${chosen ?? "nowhere"}?`);
  const sheet = el("div", {});
  const show = async (policy) => {
    try {
      const view = policy === "decided" ? decided : await feed.ask(`/debug/rerate?number=${number}&policy=${policy}`);
      sheet.replaceChildren(...rated(view, decided, policy).filter(Boolean));
    } catch (error) {
      sheet.replaceChildren(el("p", { class: "empty", text: `It cannot be rated again: ${error.message}.` }));
    }
  };
  const choices = POLICIES.map(([policy, text], at) =>
    el("label", {}, el("input", { type: "radio", name: "policy", value: policy, checked: at === 0, on: { change: () => show(policy) } }), el("span", { text })));
  panel.show(
    el("dl", { class: "facts" }, ...facts(decided).flatMap(([term, text]) => [el("dt", { text: term }), el("dd", { text })])),
    decided.shadow ? trial(decided) : null,
    el("fieldset", { class: "choice" }, el("legend", { text: "Rated by" }), ...choices),
    sheet);
  await show("decided");
}

function facts(decision) {
  const cached = decision.candidates.find(({ endpoint }) => endpoint === decision.order[0])?.matched_blocks;
  return [
    ["Model", decision.model],
    ["Pool", decision.pool],
    ["When", hour(decision.time)],
    ["Prompt", `${exact(decision.prompt_tokens)} tokens, ${exact(cached)} of ${plural(decision.prompt_blocks, "block")} cached there`],
    ["Took", `${decision.took_us < 1000 ? `${Math.round(decision.took_us)} µs` : time(decision.took_us / 1000)} for ${plural(decision.candidates.length, "endpoint")}`],
    ["Request", decision.request_id],
  ];
}

function trial({ shadow }) {
  const by = shadow.scorers.map(({ name }) => name).join(", ");
  if (shadow.same) return el("p", { class: "trial", text: `The policy on trial (${by}) would have chosen the same.` });
  if (!shadow.endpoint) return el("p", { class: "trial", text: `The policy on trial (${by}) found no endpoint.` });
  const gain = shadow.regret_ms === null ? "" : `, first token ${difference(-shadow.regret_ms)} by prediction`;
  return el("p", { class: "trial differs", text: `The policy on trial (${by}) would have chosen ${shadow.endpoint}${gain}.` });
}

function rated(view, decided, policy) {
  const chosen = decided.order[0];
  const kept = view.candidates.filter(({ removed_by }) => !removed_by).toSorted((a, b) => rank(view, a) - rank(view, b) || b.total - a.total);
  const removed = view.candidates.filter(({ removed_by }) => removed_by);
  const most = Math.max(view.scorers.reduce((sum, { weight }) => sum + weight, 0), 1e-6);
  const list = el("ol", { class: "candidates" });
  const draw = (many) => list.replaceChildren(...kept.slice(0, many).map((one) => candidate(one, view, chosen, policy, most)));
  draw(SHOWN);
  const more = kept.length > SHOWN
    ? el("button", { type: "button", class: "more", text: `Show all ${exact(kept.length)}`, on: { click: (event) => { draw(kept.length); event.currentTarget.remove(); } } })
    : null;
  return [
    verdict(view, decided, policy),
    el("ul", { class: "scorers", "aria-label": "Scorers and their weights" }, ...view.scorers.map(({ name, weight }, at) => el("li", {}, el("i", { class: `s${at % 8}` }), el("span", { text: `${name} × ${Math.round(weight * 100) / 100}` })))),
    list, more, losses(removed),
  ];
}

/** Place in the order in which they would be tried; the others come after. */
function rank(view, { endpoint }) {
  const at = view.order.indexOf(endpoint);
  return at < 0 ? view.order.length : at;
}

function verdict(view, decided, policy) {
  if (view.refused) return el("p", { class: "verdict", text: `It would have refused: ${view.refused}.` });
  const chosen = decided.order[0];
  const pick = view.order[0];
  if (policy === "decided") {
    const predicted = view.candidates.find(({ endpoint }) => endpoint === pick)?.predicted_ttft_ms;
    return el("p", { class: "verdict", text: `First token expected after ${time(predicted)}.` });
  }
  if (pick === chosen) return el("p", { class: "verdict", text: "The same endpoint." });
  const predicted = (name) => view.candidates.find(({ endpoint }) => endpoint === name)?.predicted_ttft_ms ?? null;
  const [there, here] = [predicted(pick), predicted(chosen)];
  const gap = there !== null && here !== null ? `: first token ${difference(there - here)} by prediction` : "";
  return el("p", { class: "verdict differs", text: `It would have chosen ${pick}${gap}.` });
}

function candidate(one, view, chosen, policy, most) {
  const bar = el("span", { class: "scores", role: "img", "aria-label": view.scorers.map(({ name }, at) => `${name} ${Math.round((one.scores[at] ?? 0) * 1000) / 1000}`).join(", ") });
  view.scorers.forEach(({ name, weight }, at) => {
    const share = ((one.scores[at] ?? 0) * weight) / most;
    const part = el("i", { class: `s${at % 8}`, title: `${name}: ${one.scores[at]} × ${weight}` });
    part.style.width = `${(share * 100).toFixed(2)}%`;
    bar.append(part);
  });
  const tags = [
    one.endpoint === view.order[0] ? el("b", { class: "tag picked", text: policy === "decided" ? "chosen" : "its choice" }) : null,
    policy !== "decided" && one.endpoint === chosen ? el("b", { class: "tag", text: "chosen then" }) : null,
  ];
  const signals = [
    `first token ${time(one.predicted_ttft_ms)}`,
    `${count(one.running)} running, ${count(one.waiting)} waiting`,
    `KV ${percent(one.kv_usage)}`,
    ...(one.matched_blocks > 0 ? [`${plural(one.matched_blocks, "block")} cached`] : []),
    ...(one.lora !== "Unknown" ? [`adapter: ${one.lora.toLowerCase()}`] : []),
    one.scrape_age_ms === null ? "no signals" : `signals ${time(one.scrape_age_ms)} old${one.freshness < 0.995 ? `, trusted ${percent(one.freshness)}` : ""}`,
  ];
  return el("li", { class: one.endpoint === view.order[0] ? "is-picked" : "" },
    el("p", { class: "who" }, el("span", { class: "name", text: one.endpoint }), ...tags, el("span", { class: "total", text: one.total.toFixed(3) })),
    bar,
    el("p", { class: "signals", text: signals.join(" · ") }));
}

function losses(removed) {
  if (removed.length === 0) return el("p", { class: "removed", text: "No filter removed anything." });
  const by = Map.groupBy(removed, ({ removed_by }) => removed_by);
  return el("div", { class: "removed" },
    el("p", { text: `Filters removed ${plural(removed.length, "endpoint")}.` }),
    el("ul", {}, ...[...by].map(([filter, these]) =>
      el("li", {}, el("b", { text: `${filter} ${exact(these.length)}` }), el("span", { text: ` ${these.slice(0, 8).map(({ endpoint }) => endpoint).join(", ")}${these.length > 8 ? ", …" : ""}` })))));
}
