// A simulated fleet with a gateway in front of it, and requests to it.

import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const BINARY = process.env.WICKETGATE_TEST_BINARY ?? "target/debug/wicketgate";
const PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 20;

/** The first of `count` ports in a row that were free a moment ago. */
async function freePorts(count) {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const first = 20_000 + Math.floor(Math.random() * 12_000);
    const servers = [];
    const isFree = await Promise.all(Array.from({ length: count }, (_, at) => new Promise((resolve) => {
      const server = createServer().once("error", () => resolve(false)).once("listening", () => resolve(true)).listen(first + at, "127.0.0.1");
      servers.push(server);
    })));
    await Promise.all(servers.map((server) => new Promise((resolve) => (server.listening ? server.close(resolve) : resolve()))));
    if (isFree.every(Boolean)) return first;
  }
  throw new Error(`no ${count} free ports in a row`);
}

export class Stand {
  /**
   * `groups`: arguments of `sim --server`; `spec(urls)`: the document's spec, else the endpoints are
   * found out from themselves; `extra`: URLs of endpoints that are not there; `crowd`: the model of
   * endpoints that cost nearly nothing, instead of simulated engines.
   */
  static async start({ groups = [], simArguments = [], count = 3, crowd, spec, extra = [], command = "serve", kind = "InferenceGatewayConfig" }) {
    const stand = new Stand();
    stand.folder = mkdtempSync(join(tmpdir(), "wicketgate-stand-"));
    stand.agent = new Agent({ keepAlive: true, maxSockets: 256 });
    const first = count > 0 ? await freePorts(count) : 0;
    stand.urls = Array.from({ length: count }, (_, at) => `http://127.0.0.1:${first + at}`);
    if (crowd) {
      stand.sim = fork(new URL("crowd.mjs", import.meta.url), [String(first), String(count), crowd]);
      await once(stand.sim, "message");
    } else if (count > 0) {
      const servers = groups.length > 0 ? groups.flatMap((group) => ["--server", group]) : ["--count", String(count)];
      stand.sim = stand.run(["sim", "--port", String(first), ...servers, ...simArguments]);
    }
    const any = "127.0.0.1:0";
    const document = {
      apiVersion: "gateway.wicketgate.dev/v1alpha1", kind, metadata: { name: "page" },
      spec: { listener: { address: any }, admin: { address: any }, accessLog: { target: "off" }, ...spec?.([...stand.urls, ...extra]) },
    };
    const file = join(stand.folder, "gateway.json");
    writeFileSync(file, JSON.stringify(document));
    const endpoints = spec ? [] : [...stand.urls, ...extra].flatMap((url) => ["--endpoint", url]);
    const from = spec ? ["-f", file] : ["--listen", any, "--admin", any, "--access-log", "off", ...endpoints];
    stand.gateway = stand.run([command, ...from], true);
    await stand.until(() => stand.admin !== undefined && (command === "epp" || stand.traffic !== undefined), "the gateway's addresses");
    return stand;
  }

  /** A router over two clusters of simulated engines, `near` and `far`, and one that is not there, `gone`. */
  static async fleet({ model, count = 2, simArguments = [], member = {} }) {
    const reports = `127.0.0.1:${await freePorts(1)}`;
    const clusters = await Promise.all(["near", "far"].map((cluster) => Stand.start({
      count, simArguments: ["--model", model, ...simArguments],
      spec: (urls) => ({
        schedulers: [{ name: "chat", modelName: model, endpoints: urls.map((url) => ({ url })) }],
        global: { cluster, routers: [reports], interval: "500ms" },
      }),
    })));
    const [near, far] = clusters;
    const router = await Stand.start({ count: 0, command: "global", kind: "GlobalInferenceGateway", spec: () => ({
      region: "eu-central-1",
      members: [
        { name: "near", url: near.traffic, region: "eu-central-1", ...member },
        { name: "far", url: far.traffic, region: "us-west-2", ...member },
        { name: "gone", url: "http://127.0.0.1:1", region: "us-west-2" },
      ],
      heartbeats: { address: reports },
    }) });
    router.clusters = clusters;
    const fresh = async () => (await router.json("/debug/fleet")).members.filter(({ state }) => state === "fresh").length === 2;
    await router.until(() => fresh().catch(() => false), "reports of both clusters");
    return router;
  }

  run(args, listens = false) {
    const child = spawn(BINARY, args, { stdio: ["ignore", "ignore", "pipe"] });
    this.said = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (!listens) return;
      this.said.push(line);
      const address = /address=(\S+)/.exec(line)?.[1];
      if (line.includes("traffic: ")) this.traffic = `http://${address}`;
      if (line.includes("administration: ")) this.admin = `http://${address}`;
    });
    return child;
  }

  async until(holds, what) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`waited in vain for ${what}: ${this.said.slice(-5).join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** Waits until so many endpoints have told their signals. */
  async scraped(count) {
    const told = async () => {
      const { pools = [] } = await this.json("/debug/live");
      return pools.flatMap((pool) => pool.rows.age_ms).filter((age) => age !== null).length >= count;
    };
    await this.until(() => told().catch(() => false), `the signals of ${count} endpoints`);
  }

  async json(path) {
    const { text } = await this.send(`${this.admin}${path}`);
    return JSON.parse(text);
  }

  send(url, { method = "GET", headers = {}, body } = {}) {
    return new Promise((resolve, reject) => {
      const asked = request(url, { method, headers, agent: this.agent }, (answer) => {
        const chunks = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(chunks).toString() }));
        answer.on("error", reject);
      });
      asked.on("error", reject);
      asked.end(body);
    });
  }

  chat(model, prompt, more = {}) {
    const body = JSON.stringify({ model, messages: [{ role: "user", content: prompt }], max_tokens: 64, stream: true, stream_options: { include_usage: true }, ...more });
    return this.send(`${this.traffic}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
  }

  /** So many requests a second, with prompts that share their beginnings, until the returned function is called. */
  load(models, perSecond, { tokens = 900, answer = 96 } = {}) {
    const topics = Array.from({ length: 12 }, (_, at) => `Topic ${at}: ${"a word of the system prompt that all of them share, ".repeat(Math.ceil(tokens / 14))}`);
    let sent = 0;
    const timer = setInterval(() => {
      const model = models[sent % models.length];
      const prompt = `${topics[(sent * 7) % topics.length]} Question ${sent}: ${"why ".repeat((sent * 13) % 120)}?`;
      this.chat(model, prompt, { max_tokens: 16 + ((sent * 37) % answer) }).catch(() => {});
      sent += 1;
    }, 1000 / perSecond);
    return () => clearInterval(timer);
  }

  async stop() {
    this.agent?.destroy();
    for (const cluster of this.clusters ?? []) await cluster.stop();
    for (const child of [this.gateway, this.sim]) {
      if (!child || child.exitCode !== null) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
