// A Chromium without a window, driven over its debugging pipe: no port, no package, nothing from elsewhere.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Longest that anything is waited for, milliseconds. */
const PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 15;

export class Chromium {
  static async start() {
    const browser = new Chromium();
    await browser.send("Browser.getVersion");
    return browser;
  }

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "wicketgate-page-"));
    const flags = [
      "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
      "--disable-background-networking", "--disable-component-update", "--no-proxy-server", `--user-data-dir=${this.folder}`,
      // As root, as in most containers, Chromium refuses its own sandbox; the only page that it sees is ours.
      ...(process.getuid() === 0 ? ["--no-sandbox"] : []),
    ];
    const program = process.env.WICKETGATE_TEST_CHROMIUM ?? "chromium";
    this.child = spawn(program, [...flags, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.waiting = new Map();
    this.sessions = new Map();
    this.next = 1;
    let rest = Buffer.alloc(0);
    this.child.stdio[4].on("data", (data) => {
      rest = Buffer.concat([rest, data]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        this.hear(JSON.parse(rest.subarray(0, end).toString()));
        rest = rest.subarray(end + 1);
      }
    });
    this.child.stdio[3].on("error", () => {});
  }

  hear(message) {
    if (message.id !== undefined) {
      const { resolve, reject } = this.waiting.get(message.id) ?? {};
      this.waiting.delete(message.id);
      if (message.error) reject?.(new Error(`${message.error.message} ${message.error.data ?? ""}`));
      else resolve?.(message.result);
      return;
    }
    this.sessions.get(message.sessionId)?.hear(message.method, message.params);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const late = AbortSignal.timeout(PATIENCE_MS);
    return Promise.race([answer, new Promise((_, reject) => late.addEventListener("abort", () => reject(new Error(`${method}: no answer`))))]);
  }

  /** A new page of its own profile. */
  async page({ width = 1440, height = 900, dark = false, phone = false, calm = false, scale = 1 } = {}) {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, browserContextId);
    this.sessions.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log", "Network", "Performance"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: phone });
    const features = [
      { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
      { name: "prefers-reduced-motion", value: calm ? "reduce" : "no-preference" },
    ];
    await page.send("Emulation.setEmulatedMedia", { features });
    return page;
  }

  /** Ends it in its own way first: a killed one leaves helpers that go on writing into its folder for a moment. */
  async stop() {
    const killer = setTimeout(() => this.child.kill("SIGKILL"), PATIENCE_MS / 6);
    await this.send("Browser.close").catch(() => {});
    await this.ended;
    clearTimeout(killer);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

export class Page {
  constructor(browser, sessionId, context) {
    this.browser = browser;
    this.sessionId = sessionId;
    this.context = context;
    /** What went wrong in the page: exceptions, refused resources, violations of its policy. */
    this.faults = [];
    /** Addresses that it asked for. */
    this.requests = [];
    this.stubs = new Map();
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  hear(method, params) {
    if (method === "Runtime.exceptionThrown") this.faults.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Log.entryAdded" && params.entry.level === "error") this.faults.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    if (method === "Page.javascriptDialogOpening") {
      this.faults.push(`a dialog: ${params.message}`);
      this.send("Page.handleJavaScriptDialog", { accept: true }).catch(() => {});
    }
    if (method === "Network.requestWillBeSent") this.requests.push({ url: params.request.url, method: params.request.method });
    if (method === "Fetch.requestPaused") this.answer(params).catch(() => {});
  }

  /** Answers requests for a path (its query left out) with what `make(url)` returns, as JSON. */
  async stub(path, make) {
    this.stubs.set(path, make);
    await this.send("Fetch.enable", { patterns: [...this.stubs.keys()].map((path) => ({ urlPattern: `*${path}*` })) });
  }

  async answer({ requestId, request }) {
    const url = new URL(request.url);
    const make = this.stubs.get(url.pathname);
    if (!make) return this.send("Fetch.continueRequest", { requestId });
    const made = make(url, request);
    const { status = 200, body = made } = made?.status ? made : {};
    return this.send("Fetch.fulfillRequest", {
      requestId, responseCode: status,
      responseHeaders: [{ name: "content-type", value: "application/json" }],
      body: Buffer.from(JSON.stringify(body)).toString("base64"),
    });
  }

  async open(url) {
    await this.send("Page.navigate", { url });
  }

  /** Opens the live page and waits until it has drawn a beat. */
  async openLive(admin) {
    await this.open(`${admin}/`);
    await this.until("document.documentElement.dataset.drawn !== undefined");
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** Waits until an expression holds in the page, and returns its value. */
  async until(expression) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const value = await this.evaluate(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() > end) throw new Error(`waited in vain for ${expression}; ${await this.evaluate("document.body.innerText.slice(0, 600)")}; faults: ${this.faults.join(" | ")}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** Looks until what `look` finds is good, and returns it. */
  async settled(look, isGood) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const found = await look();
      if (isGood(found)) return found;
      if (Date.now() > end) throw new Error(`waited in vain; the last look found ${JSON.stringify(found).slice(0, 600)}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  async press(key, { shift = false } = {}) {
    const codes = { Enter: 13, Escape: 27, Tab: 9, " ": 32, End: 35, Home: 36, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const event = { key, code: key.length === 1 ? "" : key, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0), modifiers: shift ? 8 : 0, text };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  async type(text) {
    await this.send("Input.insertText", { text });
  }

  async point(selector, type = "mouseMoved", extra = {}) {
    const box = await this.evaluate(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({block: "nearest"}); const b = e.getBoundingClientRect(); return {x: b.left + b.width / 2, y: b.top + b.height / 2}; })()`);
    await this.send("Input.dispatchMouseEvent", { type, ...box, ...extra });
  }

  async click(selector) {
    await this.point(selector);
    for (const type of ["mousePressed", "mouseReleased"]) await this.point(selector, type, { button: "left", clickCount: 1 });
  }

  async picture({ whole = false } = {}) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    return Buffer.from(data, "base64");
  }

  /** CPU that the page's main thread took so far, seconds; waiting for a busy machine is not in it. */
  async cpu() {
    const { metrics } = await this.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "ThreadTime").value;
  }

  async close() {
    await this.browser.send("Target.disposeBrowserContext", { browserContextId: this.context }).catch(() => {});
    this.browser.sessions.delete(this.sessionId);
  }
}
