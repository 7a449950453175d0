// The gateway's CPU for open pages, by the operating system's accounting, in paired windows with and without
// them; and the time from a navigation to the first view. bench/README.md explains the figures.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { Chromium } from "../../tests/page/chromium.mjs";
import { Stand } from "../../tests/page/stand.mjs";

const { values } = parseArgs({ options: {
  endpoints: { type: "string", default: "1000" }, pages: { type: "string", default: "10" },
  rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "10" }, json: { type: "boolean", default: false },
} });
const [endpoints, pages, rounds, seconds] = [values.endpoints, values.pages, values.rounds, values.seconds].map(Number);
const TICKS_PER_SECOND = 100;
/** What is measured is the page's own; nothing else may be near its limit. */
const VIEWS = 11;

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** User and system time of a process so far, seconds. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

const stand = await Stand.start({
  count: endpoints, crowd: "llama-3.1-8b",
  // Seldom scraped: the cost of scraping has a figure of its own.
  spec: (urls) => ({
    schedulers: [{ name: "chat", modelName: "llama-3.1-8b", endpoints: urls.map((url) => ({ url })) }],
    scrape: { busyInterval: "20s", idleInterval: "60s", timeout: "10s" },
  }),
});
const browser = await Chromium.start();
try {
  await stand.scraped(Math.floor(endpoints * 0.9));
  const stop = stand.load(["llama-3.1-8b"], 20);
  await pause(3000);

  /** What an open page asks, each second, from a moment of its own. */
  const look = (at, bytes) => {
    let [shape, etag, timer] = [null, null, null];
    const ask = async () => {
      const path = shape ? `/debug/live?shape=${encodeURIComponent(shape)}` : "/debug/live";
      const answer = await stand.send(`${stand.admin}${path}`, { headers: etag ? { "if-none-match": etag } : {} });
      if (answer.status !== 200) return;
      bytes.push(answer.text.length);
      shape = /"shape":"([^"]+)"/.exec(answer.text)[1];
      ({ etag } = answer.headers);
    };
    const begin = setTimeout(() => { ask(); timer = setInterval(ask, 1000); }, (1000 * at) / pages);
    return () => { clearTimeout(begin); clearInterval(timer); };
  };
  const share = async () => {
    const [before, began] = [cpu(stand.gateway.pid), performance.now()];
    await pause(seconds * 1000);
    return (100 * (cpu(stand.gateway.pid) - before)) / ((performance.now() - began) / 1000);
  };
  const [alone, open, bytes] = [[], [], []];
  for (let round = 0; round < rounds; round += 1) {
    alone.push(await share());
    const closes = Array.from({ length: pages }, (_, at) => look(at, bytes));
    await pause(1500);
    open.push(await share());
    for (const close of closes) close();
  }
  const views = [];
  for (let view = 0; view < VIEWS; view += 1) {
    const page = await browser.page({});
    await page.open(`${stand.admin}/`);
    views.push(await page.until("performance.getEntriesByName('drawn')[0]?.startTime"));
    await page.close();
  }
  stop();
  const added = open.map((value, at) => value - alone[at]);
  const figures = {
    endpoints, pages, rounds,
    cpu_percent_without: median(alone), cpu_percent_added: median(added), cpu_percent_added_range: [Math.min(...added), Math.max(...added)],
    brief_bytes: median(bytes), first_view_ms: median(views), first_view_ms_worst: Math.max(...views),
  };
  if (values.json) console.log(JSON.stringify(figures));
  else {
    console.log(`${endpoints} endpoints, ${pages} pages, ${rounds} rounds of ${seconds} s`);
    console.log(`CPU of the gateway, % of a core   without ${median(alone).toFixed(1)}   added by the pages ${median(added).toFixed(2)} (${Math.min(...added).toFixed(2)} to ${Math.max(...added).toFixed(2)})`);
    console.log(`a beat                            ${(median(bytes) / 1024).toFixed(0)} KiB`);
    console.log(`first view, ms                    median ${median(views).toFixed(0)}, worst of ${VIEWS} ${Math.max(...views).toFixed(0)}`);
  }
} finally {
  await stand.stop();
  await browser.stop();
}
