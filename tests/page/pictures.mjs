// Makes the pictures of docs/live-page.md, and those to look at after a change of the page's looks:
//
//   node tests/page/pictures.mjs docs/images          # those of the documentation
//   node tests/page/pictures.mjs FOLDER --all         # light and dark, desktop and phone, few, a thousand, a router, panels

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Chromium } from "./chromium.mjs";
import { Stand } from "./stand.mjs";

const [folder, ...flags] = process.argv.slice(2);
const isAll = flags.includes("--all");
const MODEL = "llama-3.1-8b";
const ADAPTERS = ["support-de", "sql-helper"];
/** How long a page is open before its picture: the cards' traces begin then. */
const WARM_MS = 75_000;
const SIZES = [["desktop", { width: 1440, height: 900 }], ["phone", { width: 360, height: 1500, phone: true, scale: 2 }]];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const few = () => Stand.start({
  count: 6, groups: ["hardware=llama-3.1-8b/h100,count=2", "hardware=llama-3.1-8b/a10g,count=4"],
  simArguments: ["--model", MODEL, ...ADAPTERS.flatMap((name) => ["--lora", name])],
  spec: (urls) => ({ schedulers: [{
    name: "chat", modelName: MODEL, loraAdapters: ADAPTERS, endpoints: urls.map((url) => ({ url })),
    shadow: { policy: "reference", weights: { queue: 2, kvCache: 2, prefix: 3, predictedLatency: 0 } },
  }], observability: { currency: "USD", prices: [{ scheduler: "chat", gpuHour: 2.49 }] } }),
});

const router = () => Stand.fleet({ model: MODEL, count: 4, member: { price: { inputPerMillion: 0.2, outputPerMillion: 0.6 } } });

const thousand = () => Stand.start({
  count: 1000, crowd: MODEL,
  spec: (urls) => ({
    scrape: { busyInterval: "2s", idleInterval: "5s", timeout: "5s" },
    schedulers: [
      { name: "chat", modelName: MODEL, endpoints: urls.slice(0, 700).map((url) => ({ url })) },
      { name: "code", modelName: `${MODEL}-code`, endpoints: urls.slice(700).map((url) => ({ url })) },
    ],
  }),
});

async function take(page, name) {
  writeFileSync(join(folder, `${name}.png`), await page.picture());
  if (page.faults.length > 0) console.error(name, page.faults);
}

async function panels(page, name) {
  await page.click("#decisions li:nth-child(2) button");
  await page.until("document.querySelector('.candidates li')");
  await take(page, `${name}-receipt`);
  await page.click("input[value=reference]");
  await page.until("document.querySelector('.scorers')?.children.length === 3");
  await take(page, `${name}-reference`);
  await page.press("Escape");
  await page.evaluate("document.querySelector('.cell').click()");
  await page.until("document.querySelector('.tank')");
  await take(page, `${name}-endpoint`);
  await page.press("Escape");
  await page.click("#tenants summary");
  await page.until("document.querySelector('#tenants tbody')");
  await page.evaluate("document.querySelector('#tenants').scrollIntoView({ block: 'end' })");
  await take(page, `${name}-tenants`);
}

async function memberPanel(page, name) {
  await page.evaluate("document.querySelector('.member').click()");
  await page.until("document.querySelector('#panel').open");
  await take(page, `${name}-member`);
}

async function pictures(browser, start, scraped, models, perSecond, only) {
  const stand = await start();
  const kind = only.of.split("-")[0];
  try {
    if (kind !== "router") await stand.scraped(scraped);
    const stop = stand.load(models, perSecond, { tokens: 2400, answer: 480 });
    const pages = [];
    for (const dark of [false, true]) {
      for (const [size, options] of SIZES) {
        const name = `${kind}-${size}-${dark ? "dark" : "light"}`;
        if (!isAll && name !== only.of) continue;
        const page = await browser.page({ ...options, dark });
        await page.openLive(stand.admin);
        pages.push([page, isAll ? name : only.as]);
      }
    }
    await pause(WARM_MS);
    for (const [page, name] of pages) {
      await page.send("Page.bringToFront");
      await take(page, name);
      if (isAll) await (kind === "router" ? memberPanel : panels)(page, name);
      await page.close();
    }
    stop();
  } finally {
    await stand.stop();
  }
}

mkdirSync(folder, { recursive: true });
const browser = await Chromium.start();
try {
  await pictures(browser, few, 6, [MODEL, ...ADAPTERS], 14, { of: "few-desktop-light", as: "live-page" });
  await pictures(browser, router, 0, [MODEL], 20, { of: "router-desktop-light", as: "live-page-router" });
  await pictures(browser, thousand, 950, [MODEL], 40, { of: "thousand-desktop-dark", as: "live-page-1000" });
} finally {
  await browser.stop();
}
