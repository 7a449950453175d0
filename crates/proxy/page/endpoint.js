// One endpoint: what it says, what we account, what it has proved to do.

import { count, el, exact, hour, percent, plural, short, time } from "./dom.js";

/** Shows the endpoint and goes on showing it with every beat, until the panel shows something else. */
export async function openEndpoint(feed, panel, authority, openDecision) {
  panel.open(authority);
  const body = el("div", {});
  panel.show(body);
  const draw = async () => {
    try {
      const { endpoints } = await feed.ask(`/debug/endpoints?endpoint=${encodeURIComponent(authority)}`);
      if (endpoints.length === 0) throw new Error("it has left");
      body.replaceChildren(...endpoints.map(sheet), recent(feed.model?.decisions ?? [], authority, openDecision));
    } catch (error) {
      body.replaceChildren(el("p", { class: "empty", text: `This endpoint cannot be shown: ${error.message}.` }));
    }
  };
  // Looked at by keyboard, it must not be rebuilt under the reader's focus.
  panel.onBeat = () => (body.contains(document.activeElement) ? undefined : draw());
  await draw();
}

function sheet(endpoint) {
  const tank = el("div", { class: `tank ${endpoint.state}`, role: "img", "aria-label": `KV cache ${percent(endpoint.kv_usage)}` }, el("i"), el("b", { text: percent(endpoint.kv_usage) }), el("span", { text: "KV cache" }));
  tank.style.setProperty("--kv", Math.min(endpoint.kv_usage ?? 0, 1));
  const groups = [
    ["It says", [
      ["State", endpoint.state + (endpoint.health === "Healthy" || !endpoint.health ? "" : ` (${endpoint.health.toLowerCase()})`)],
      ["Engine", endpoint.engine],
      ["Running", exact(endpoint.running)],
      ["Waiting", exact(endpoint.waiting)],
      ["Signals", endpoint.scrape_age_ms === null ? "none yet" : `${time(endpoint.scrape_age_ms)} old`],
      ...(endpoint.scrape_failures > 0 ? [["Failed scrapes", `${exact(endpoint.scrape_failures)} in a row`]] : []),
    ]],
    ["We account", [
      ["In flight", exact(endpoint.in_flight) + (endpoint.peers_in_flight > 0 ? `, ${exact(endpoint.peers_in_flight)} of them peers'` : "")],
      ["Running, waiting", `${count(endpoint.accounted_running)}, ${count(endpoint.accounted_waiting)}`],
      ["Prompt tokens ahead", exact(endpoint.prefill_tokens)],
      ["Saturation", percent(endpoint.saturation)],
      ["Sent there so far", exact(endpoint.picks)],
    ]],
    ["It has proved", endpoint.speed ? [
      ["1,000 prompt tokens", time(endpoint.speed.idle_ttft_ms)],
      ["Prefill", endpoint.speed.prefill_tokens_per_second === null ? "not known yet" : `${short(endpoint.speed.prefill_tokens_per_second)} tokens/s`],
      ["Constant part", time(endpoint.speed.base_ms)],
      ["Step", time(endpoint.speed.step_ms)],
      ["Answer", `${count(endpoint.speed.output_tokens)} tokens`],
      ["Rests on", `${count(endpoint.speed.samples)} answers`],
      ["Prediction off by", percent(endpoint.prediction_error)],
    ] : [["Speed", "nothing learned yet"]]],
  ];
  const slots = endpoint.adapters_max === null || endpoint.adapters_max === undefined ? "" : ` of ${plural(endpoint.adapters_max, "slot")}`;
  return el("section", { class: "sheet" },
    el("p", { class: "pool-name", text: `in pool ${endpoint.pool}` }),
    el("div", { class: "sheet-body" }, tank, ...groups.map(([title, facts]) =>
      el("div", { class: "group" }, el("h3", { text: title }), el("dl", {}, ...facts.flatMap(([term, text]) => [el("dt", { text: term }), el("dd", { text })]))))),
    endpoint.adapters?.length > 0
      ? el("div", { class: "adapters" }, el("h3", { text: `Adapters resident: ${exact(endpoint.adapters.length)}${slots}` }), el("ul", {}, ...endpoint.adapters.map((name) => el("li", { text: name }))))
      : null);
}

function recent(decisions, authority, openDecision) {
  const own = decisions.filter(({ endpoint }) => endpoint === authority).slice(0, 8);
  if (own.length === 0) return el("p", { class: "empty", text: "None of the last decisions led here." });
  return el("div", { class: "recent" }, el("h3", { text: "Last decisions for it" }),
    el("ul", {}, ...own.map((decision) => el("li", {},
      el("button", { type: "button", text: `${hour(decision.time)} · ${decision.model} · ${count(decision.prompt_tokens)} tokens`, on: { click: () => openDecision(decision.number) } })))));
}
