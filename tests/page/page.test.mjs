// The live page in a real Chromium, in front of real gateways. `cargo xtask test --only page` runs it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Chromium } from "./chromium.mjs";
import { Stand } from "./stand.mjs";

const MODEL = "llama-3.1-8b";
const ADAPTERS = ["support-de", "sql-helper"];

let browser;
let stand;

before(async () => {
  browser = await Chromium.start();
  stand = await Stand.start({
    count: 4, simArguments: ["--model", MODEL, ...ADAPTERS.flatMap((name) => ["--lora", name])],
    spec: (urls) => ({ schedulers: [{
      name: "chat", modelName: MODEL, loraAdapters: ADAPTERS, endpoints: urls.map((url) => ({ url })),
      shadow: { policy: "reference", weights: { queue: 2, kvCache: 2, prefix: 3, predictedLatency: 0 } },
    }] }),
  });
  await stand.scraped(4);
  await Promise.all(ADAPTERS.flatMap((model) => [stand.chat(model, "What is a wicket gate? ".repeat(60)), stand.chat(MODEL, "Why? ".repeat(200))]));
});

after(async () => {
  await stand?.stop();
  await browser?.stop();
});

/** A page with the live view open; closed, and looked through for faults, when the test ends. */
async function live(t, options, at = stand.admin, prepare = async () => {}) {
  const page = await browser.page(options);
  t.after(() => page.close());
  await prepare(page);
  await page.openLive(at);
  return page;
}

const text = (page, selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
const number = (page, selector) => page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
const focused = (page, what) => page.evaluate(`document.activeElement.${what}`);

/** What /debug/live says, with `change` made to it. */
async function altered(change) {
  const told = await stand.json("/debug/live");
  change(told);
  return told;
}

test("every endpoint is a cell, all comes from the gateway, and nothing is asked but by GET", async (t) => {
  const page = await live(t, {});
  assert.equal(await number(page, ".cell"), 4);
  assert.match(await text(page, "#census"), /^4 endpoints/);
  assert.match(await text(page, ".pool"), /chat[\s\S]*llama-3.1-8b[\s\S]*expected-time/);
  const beat = await page.evaluate("Number(document.documentElement.dataset.drawn)");
  await page.until(`Number(document.documentElement.dataset.drawn) > ${beat + 1}`);
  assert.ok(page.requests.every(({ url, method }) => url.startsWith(stand.admin) && method === "GET"), JSON.stringify(page.requests));
  assert.deepEqual(page.faults, []);
});

test("a chosen decision shows each candidate's scores, and what other policies would have done", async (t) => {
  const page = await live(t, {});
  await page.until("document.querySelector('#decisions button')");
  await page.click("#decisions button");
  await page.until("document.querySelectorAll('.candidates li').length === 4");
  assert.match(await text(page, "#panel-title"), /^Why 127\.0\.0\.1:\d+\?$/);
  assert.match(await text(page, ".trial"), /policy on trial/);
  assert.equal(await number(page, ".tag.picked"), 1);
  assert.ok(await page.evaluate("document.querySelector('.is-picked .scores i').getBoundingClientRect().width > 100"), "the best has a long bar");
  await page.click("input[value=reference]");
  await page.until("document.querySelector('.scorers').children.length === 3");
  assert.match(await text(page, ".scorers"), /queue × 2[\s\S]*kv-cache × 2[\s\S]*prefix × 3/);
  await page.press("Escape");
  await page.until("!document.querySelector('#panel').open");
  assert.deepEqual(page.faults, []);
});

test("an endpoint's panel shows its adapters by name and goes on being told", async (t) => {
  const page = await live(t, {});
  const { endpoints } = await stand.json("/debug/endpoints");
  const holder = endpoints.findIndex(({ adapters }) => adapters.length > 0);
  assert.ok(holder >= 0, "some endpoint has an adapter");
  await page.evaluate(`document.querySelectorAll(".cell")[${holder}].click()`);
  await page.until("document.querySelector('.adapters')");
  assert.match(await text(page, ".adapters"), /support-de|sql-helper/);
  await page.evaluate("document.querySelector('.sheet').dataset.old = 1");
  await page.until("document.querySelector('.sheet') && !document.querySelector('.sheet').dataset.old");
  assert.deepEqual(page.faults, []);
});

test("the keyboard reaches everything, and focus comes back from where it went", async (t) => {
  const page = await live(t, {});
  await page.press("/");
  assert.equal(await focused(page, "id"), "find");
  await page.type("127.0.0.1");
  await page.press("Escape");
  assert.equal(await focused(page, "value"), "");
  for (let stops = 0; stops < 12 && !(await focused(page, "classList.contains('cell')")); stops += 1) await page.press("Tab");
  assert.equal(await focused(page, "dataset.at"), "0", "one stop leads into the fleet");
  assert.notEqual(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none", "focus is seen");
  await page.press("ArrowRight");
  assert.equal(await focused(page, "dataset.at"), "1");
  await page.press("End");
  assert.equal(await focused(page, "dataset.at"), "3");
  await page.press("Home");
  await page.press("ArrowRight");
  await page.press("Enter");
  await page.until("document.querySelector('#panel').open && document.querySelector('.tank')");
  await page.press("Escape");
  await page.until("!document.querySelector('#panel').open");
  assert.equal(await focused(page, "dataset.at"), "1");
  await page.press("Tab");
  await page.until("document.activeElement.closest('#decisions') !== null");
  await page.press("ArrowDown");
  assert.equal(await page.evaluate("[...document.querySelectorAll('#decisions button')].indexOf(document.activeElement)"), 1);
});

test("up and down go to the cell above and below, also in the last row", async (t) => {
  const endpoints = Array.from({ length: 300 }, (_, at) => `10.0.${at >> 8}.${at & 255}:8000`);
  const told = await altered((told) => crowd(told, endpoints));
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/live", () => told));
  const columns = await page.evaluate("(() => { const cells = [...document.querySelectorAll('.cell')]; return cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length; })()");
  await page.evaluate("document.querySelector('.cell').focus()");
  const at = () => focused(page, "dataset.at").then(Number);
  await page.press("ArrowRight");
  await page.press("ArrowDown");
  assert.equal(await at(), columns + 1);
  await page.press("ArrowUp");
  assert.equal(await at(), 1);
  await page.press("ArrowLeft");
  await page.press("ArrowUp");
  assert.equal(await at(), 0, "there is nothing above the first row");
  await page.evaluate(`document.querySelectorAll(".cell")[${columns - 1}].focus()`);
  for (let row = 0; row < 40; row += 1) await page.press("ArrowDown");
  assert.equal(await at(), 299, "a short last row is entered at its end");
});

/** Makes one pool of these endpoints out of what was told. */
function crowd(told, endpoints) {
  told.who.pools = [{ ...told.who.pools[0], endpoints }];
  told.pools = [told.pools[0]];
  const { rows } = told.pools[0];
  for (const [name, column] of Object.entries(rows)) rows[name] = endpoints.map((_, at) => column[at % column.length]);
}

test("names that are markup stay names, from a model server to the receipt", async (t) => {
  const [model, adapter] = ["<img src=x onerror=alert(1)>", "\"><script>alert(2)</script>"];
  const hostile = await Stand.start({ count: 2, simArguments: ["--model", model, "--lora", adapter] });
  t.after(() => hostile.stop());
  await hostile.scraped(2);
  await hostile.until(async () => (await hostile.chat(adapter, "hello")).status === 200, "an answer");
  await hostile.chat(model, "hello");
  const page = await live(t, {}, hostile.admin);
  assert.equal(await text(page, ".pool h3"), model);
  await page.until("document.querySelectorAll('#decisions button').length === 2");
  assert.match(await text(page, "#decisions"), /<img src=x onerror=alert\(1\)>/);
  await page.click("#decisions li:nth-child(2) button");
  await page.until("document.querySelector('.candidates li')");
  assert.match(await text(page, "#panel-body"), /"><script>alert\(2\)<\/script>/);
  await page.press("Escape");
  assert.equal(await page.evaluate("document.querySelectorAll('img, iframe, script:not([src])').length"), 0);
  assert.deepEqual(page.faults, []);
});

test("whatever text the gateway could be made to tell stays text", async (t) => {
  const bad = "<img src=x onerror=alert(3)>\u202e<svg onload=alert(4)>";
  const told = await altered((told) => {
    told.who.version = bad;
    told.who.pools = told.who.pools.map((pool) => ({ ...pool, name: bad, model: bad, endpoints: pool.endpoints.map(() => bad), scorers: [{ name: bad, weight: 1 }], shadow: [{ name: bad, weight: 1 }] }));
    told.decisions = told.decisions.map((decision) => ({ ...decision, model: bad, pool: bad, endpoint: bad, request_id: bad, time: bad }));
    told.flow = [{ pool: bad, band: 0, requests: 3, tokens: 900, oldest_ms: 20, flows: 1 }];
  });
  const { decisions: [decision] } = await stand.json("/debug/decisions");
  const receipt = { ...decision, model: bad, pool: bad, request_id: bad, order: [bad], scorers: [{ name: bad, weight: 1 }], candidates: decision.candidates.map((one, at) => ({ ...one, endpoint: bad, lora: bad, scores: [1], removed_by: at > 0 ? bad : null })) };
  const page = await live(t, {}, stand.admin, async (page) => {
    await page.stub("/debug/live", () => told);
    await page.stub("/debug/decisions", () => ({ decisions: [receipt] }));
    await page.stub("/debug/endpoints", () => ({ endpoints: [{ pool: bad, endpoint: bad, state: bad, engine: bad, health: bad, adapters: [bad] }] }));
  });
  await page.click("#decisions button");
  await page.until("document.querySelector('.candidates li')");
  await page.press("Escape");
  await page.evaluate("document.querySelector('.cell').click()");
  await page.until("document.querySelector('.adapters')");
  assert.equal(await page.evaluate("document.querySelectorAll('img, iframe, svg[onload], script:not([src])').length"), 0);
  assert.deepEqual(page.faults, []);
});

test("the page fits a phone of 360 pixels, with few endpoints and with a thousand", async (t) => {
  const many = await altered((told) => crowd(told, Array.from({ length: 1000 }, (_, at) => `10.1.${at >> 8}.${at & 255}:8000`)));
  for (const told of [null, many]) {
    const page = await live(t, { width: 360, height: 780, phone: true }, stand.admin, (page) => (told ? page.stub("/debug/live", () => told) : undefined));
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 360);
    await page.evaluate("document.querySelector('#decisions button').click()");
    await page.until("document.querySelector('.candidates li')");
    assert.ok(await page.evaluate("document.querySelector('#panel').scrollWidth <= 360"), "the receipt fits as well");
  }
});

test("a thousand endpoints are drawn and redrawn without a stall", async (t) => {
  const told = await altered((told) => crowd(told, Array.from({ length: 1000 }, (_, at) => `10.1.${at >> 8}.${at & 255}:8000`)));
  let beat = told.beat;
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/live", () => {
    beat += 1;
    const { rows } = told.pools[0];
    return { ...told, beat, pools: [{ ...told.pools[0], rows: { ...rows, kv: rows.kv.map((_, at) => ((at * 7 + beat * 13) % 100) / 100) } }] };
  }));
  assert.equal(await number(page, ".cell"), 1000);
  const [began, drawn] = [await page.cpu(), beat];
  await page.until(`Number(document.documentElement.dataset.drawn) > ${drawn + 4}`);
  const each = (await page.cpu() - began) / (beat - drawn);
  // Some tens of milliseconds on an idle machine; a stall of the page is what this is about.
  assert.ok(each < 0.5, `${Math.round(each * 1000)} ms of the main thread for a beat`);
});

test("light and dark follow the system until the switch says otherwise, and the switch is remembered", async (t) => {
  const shade = (page) => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const [light, dark] = [await live(t, {}), await live(t, { dark: true })];
  const [day, night] = [await shade(light), await shade(dark)];
  assert.notEqual(day, night);
  await dark.click("#theme");
  assert.equal(await shade(dark), day, "system, then light");
  await dark.openLive(stand.admin);
  assert.equal(await shade(dark), day, "remembered");
  await dark.click("#theme");
  assert.equal(await shade(dark), night, "then dark");
});

test("text stands out from its ground in both themes", async (t) => {
  for (const dark of [false, true]) {
    const page = await live(t, { dark });
    const ratios = await page.evaluate(`(() => {
      const colour = (name) => {
        const probe = document.createElement("i");
        document.body.append(probe);
        probe.style.color = "var(--" + name + ")";
        const canvas = new OffscreenCanvas(1, 1).getContext("2d");
        canvas.fillStyle = getComputedStyle(probe).color;
        canvas.fillRect(0, 0, 1, 1);
        probe.remove();
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => { const s = part / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
      };
      const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
      const ratio = (a, b) => { const [x, y] = [light(colour(a)), light(colour(b))]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
      return ["ink", "soft", "accent", "second", "warn", "bad"].flatMap((ink) => ["ground", "sheet", "raised"].map((ground) => [ink + " on " + ground, ratio(ink, ground)]));
    })()`);
    for (const [pair, ratio] of ratios) assert.ok(ratio >= 4.5, `${pair}: ${ratio.toFixed(2)} (${dark ? "dark" : "light"})`);
  }
});

test("who wants no motion sees none", async (t) => {
  const page = await live(t, { calm: true });
  const moving = await page.evaluate("document.getAnimations().length + [...document.querySelectorAll('.water, .link')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0).length");
  assert.equal(moving, 0);
});

test("everything that can be operated has a name", async (t) => {
  const page = await live(t, {});
  await page.until("document.querySelector('#decisions button')");
  // The tree follows the page with some delay, so a look may find it half made.
  const operable = await page.settled(async () => {
    const { nodes } = await page.send("Accessibility.getFullAXTree");
    return nodes.filter(({ ignored, role }) => !ignored && ["button", "searchbox", "combobox", "link", "radio", "img"].includes(role?.value));
  }, (found) => found.length > 12);
  assert.deepEqual(operable.filter(({ name }) => !name?.value).map(({ role }) => role.value), []);
  const names = operable.map(({ name }) => name.value);
  assert.ok(names.some((name) => /^127\.0\.0\.1:\d+, ready, (idle|working)/.test(name)), names.join(" | "));
});

test("a search dims what does not match", async (t) => {
  const page = await live(t, {});
  const name = await page.evaluate("document.querySelectorAll('.cell .name')[2].textContent");
  await page.press("/");
  await page.type(name);
  assert.equal(await number(page, ".cell.off"), 3);
  await page.press("Escape");
  assert.equal(await number(page, ".cell.off"), 0);
});

test("pause holds everything still, and it goes on with the newest", async (t) => {
  const page = await live(t, {});
  await page.click("#pause");
  const drawn = await page.evaluate("document.documentElement.dataset.drawn");
  const asked = page.requests.length;
  while (page.requests.length < asked + 2) await page.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))");
  assert.equal(await page.evaluate("document.documentElement.dataset.drawn"), drawn);
  await page.click("#pause");
  await page.until(`Number(document.documentElement.dataset.drawn) > ${drawn}`);
});

test("the charts show one pool when asked to", async (t) => {
  const page = await live(t, {});
  await page.click(".scope-to");
  assert.match(await text(page, "#scope"), /pool chat/);
  await page.click(".scope-to");
  assert.equal(await text(page, "#scope"), "");
});

test("queues are shown by band once there are any", async (t) => {
  const told = await altered((told) => {
    told.flow = [
      { pool: "chat", band: "-1", priority: -1, requests: 40, tokens: 36_000, oldest_ms: 12_400, flows: 3 },
      { pool: "chat", band: "10", priority: 10, requests: 4, tokens: 3_600, oldest_ms: 300, flows: 1 },
    ];
  });
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/live", () => told));
  assert.match(await text(page, "#bands tbody tr:nth-child(1)"), /chat\s+10\s+4\s+3,600\s+300 ms\s+1/);
  assert.match(await text(page, "#bands tbody tr:nth-child(2)"), /-1\s+40\s+36,000\s+12\.4 s\s+3/);
  assert.equal(await number((await live(t, {})), "#bands:not([hidden])"), 0);
});

test("a gateway that is gone is said to be, and one that comes back is taken up anew", async (t) => {
  const told = await stand.json("/debug/live");
  let answer = () => told;
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/live", () => answer()));
  answer = () => ({ status: 503, body: {} });
  await page.until("document.querySelector('#link').innerText.startsWith('no answer')");
  const restarted = await altered((told) => {
    told.boot += 1;
    told.shape = `${told.boot}.1`;
    told.beat = 1;
    told.decisions = told.decisions.slice(0, 1).map((decision) => ({ ...decision, number: 0, model: "after-the-restart" }));
  });
  answer = () => restarted;
  await page.until("document.querySelector('#link').innerText === 'live' && document.querySelector('#decisions').innerText.includes('after-the-restart')");
  assert.equal(await number(page, "#decisions li"), 1, "the old gateway's decisions are gone");
});

test("a fleet that changes is drawn anew, and what had the focus keeps it", async (t) => {
  const told = await stand.json("/debug/live");
  let now = told;
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/live", () => now));
  await page.evaluate("document.querySelectorAll('.cell')[3].focus()");
  const name = await page.evaluate("document.activeElement.querySelector('.name').textContent");
  now = await altered((told) => {
    told.shape += "9";
    crowd(told, [told.who.pools[0].endpoints[3], "10.9.9.9:8000"]);
  });
  await page.until("document.querySelectorAll('.cell').length === 2");
  assert.equal(await page.evaluate("document.activeElement.querySelector('.name')?.textContent"), name);
});

test("a gateway that asks for a token is given the one that was typed in", async (t) => {
  const told = await stand.json("/debug/live");
  const page = await browser.page({});
  t.after(() => page.close());
  await page.stub("/debug/live", (_, request) => (request.headers.authorization === "Bearer secret" ? told : { status: 401, body: {} }));
  await page.open(`${stand.admin}/`);
  await page.until("!document.querySelector('#token').hidden");
  await page.type("secret");
  await page.press("Enter");
  await page.until("document.querySelectorAll('.cell').length === 4");
  assert.ok(await page.evaluate("document.querySelector('#token').hidden"));
  assert.ok(!JSON.stringify(page.requests).includes("secret"), "it is in no address");
});

test("a router shows its members, what each gets and why, and nothing that only endpoints have", async (t) => {
  const router = await Stand.fleet({ model: MODEL, count: 1 });
  t.after(() => router.stop());
  await Promise.all(Array.from({ length: 6 }, (_, at) => router.chat(MODEL, `Question ${at}?`)));
  const page = await live(t, {}, router.admin);
  await page.until("document.querySelectorAll('.member').length === 3 && document.querySelector('.member b').innerText === '100 %'");
  assert.match(await text(page, "#census"), /^3 members · 1 out/);
  assert.match(await text(page, ".member.fresh"), /near[\s\S]*fresh[\s\S]*of requests[\s\S]*in use[\s\S]*heard .* ago · way .* · 1 endpoint ready/);
  assert.match(await text(page, ".member.unknown"), /gone[\s\S]*has not reported yet/);
  assert.equal(await number(page, ".cell"), 0);
  assert.doesNotMatch(await text(page, "main"), /saturation|stale|KV cache|Tenants|No request has been placed/);
  await page.evaluate("document.querySelector('.member').focus()");
  await page.press("ArrowRight");
  assert.match(await focused(page, "innerText"), /^far/);
  await page.press("ArrowLeft");
  await page.press("Enter");
  await page.until("document.querySelector('#panel').open");
  assert.match(await text(page, "#panel"), /near[\s\S]*Why it got requests[\s\S]*local: it is in the router's region[\s\S]*llama-3.1-8b/);
  const phone = await live(t, { width: 360, height: 780, phone: true }, router.admin);
  await phone.until("document.querySelectorAll('.member').length === 3");
  assert.equal(await phone.evaluate("document.documentElement.scrollWidth"), 360);
});

test("what tenants took of the GPUs is shown with its price, and asked for only while it is open", async (t) => {
  const usage = {
    currency: "USD", prices: [{ pool: "chat", gpu_hour: 2.49, gpus_per_endpoint: 8 }],
    rows: [
      { pool: "chat", tenant: "<b>small</b>", requests: 10, prefill_gpu_seconds: 1, decode_gpu_seconds: 4, saved_gpu_seconds: 0.5, cost: 0.00346, saved: 0.0003 },
      { pool: "chat", tenant: "large", requests: 1200, prefill_gpu_seconds: 41, decode_gpu_seconds: 378, saved_gpu_seconds: 107, cost: 12.3, saved: 0.07 },
    ],
  };
  const page = await live(t, {}, stand.admin, (page) => page.stub("/debug/usage", () => usage));
  assert.ok(!page.requests.some(({ url }) => url.includes("/debug/usage")));
  await page.click("#tenants summary");
  await page.until("document.querySelector('#tenants tbody')");
  assert.match(await text(page, "#tenants tbody tr:nth-child(1)"), /large\s+chat\s+1,200\s+7 min\s+99 %\s+41 s\s+6 min\s+2 min\s+12\.30 USD/);
  assert.match(await text(page, "#tenants tbody tr:nth-child(2)"), /<b>small<\/b>[\s\S]*5\.0 s[\s\S]*0\.0035 USD/);
  assert.match(await text(page, "#tenants-body"), /chat: 2\.49 USD a GPU-hour, 8 GPUs an endpoint/);
  assert.deepEqual(page.faults, []);
});

test("a speed is written as top writes it", async (t) => {
  const page = await live(t, {});
  const { endpoints: [endpoint] } = await stand.json(`/debug/endpoints?endpoint=${stand.urls[0].slice(7)}`);
  endpoint.speed = { idle_ttft_ms: 45, prefill_tokens_per_second: 41_500, base_ms: 20, step_ms: 7.4, output_tokens: 200, samples: 30 };
  await page.stub("/debug/endpoints", () => ({ endpoints: [endpoint] }));
  await page.evaluate("document.querySelector('.cell').click()");
  await page.until("document.querySelector('#panel').open && document.querySelector('#panel').innerText.includes('Prefill')");
  assert.match(await text(page, "#panel"), /Prefill\s+42k tokens\/s/);
});
