// Many endpoints in one cheap process: each says what a vLLM in the midst of other clients' work would say,
// and answers with a short stream. For looking at a large fleet, not for measuring one.
//
//   node crowd.mjs FIRST_PORT COUNT MODEL

import { createServer } from "node:http";

const [first, count] = process.argv.slice(2, 4).map(Number);
const model = process.argv[4] ?? "llama-3.1-8b";
const began = Date.now();

/** How loaded the n-th is now, 0 to more than 1: slow waves over the fleet, a few hot spots. */
function load(n) {
  const seconds = (Date.now() - began) / 1000;
  const wave = 0.42 + 0.3 * Math.sin(n / 23 + seconds / 19) + 0.2 * Math.sin(n * 1.7 + seconds / 7);
  return n % 61 === 7 ? wave + 0.75 : Math.max(0, wave);
}

function page(n) {
  const labels = `{model_name="${model}",engine="0"}`;
  const busy = load(n);
  const waiting = Math.max(0, Math.round((busy - 0.8) * 60));
  const asleep = n % 97 === 50 ? 1 : 0;
  return [
    `vllm:num_requests_running${labels} ${asleep ? 0 : Math.round(Math.min(busy, 1) * 48)}`,
    `vllm:num_requests_waiting${labels} ${asleep ? 0 : waiting}`,
    `vllm:kv_cache_usage_perc${labels} ${asleep ? 0 : Math.min(busy * 0.9, 0.99).toFixed(4)}`,
    `vllm:cache_config_info{block_size="16",num_gpu_blocks="27000",engine="0"} 1`,
    `vllm:engine_sleep_state{engine="0",sleep_state="awake"} ${1 - asleep}`,
    `vllm:engine_sleep_state{engine="0",sleep_state="weights_offloaded"} ${asleep}`,
    `vllm:lora_requests_info{max_lora="4",waiting_lora_adapters="",running_lora_adapters=""} 1`,
    "",
  ].join("\n");
}

function chat(n, answer) {
  // These fail for good: the gateway ejects them.
  if (n % 83 === 11) {
    answer.socket.destroy();
    return;
  }
  answer.writeHead(200, { "content-type": "text/event-stream" });
  const event = (value) => answer.write(`data: ${JSON.stringify(value)}\n\n`);
  const chunk = (delta) => ({ id: "c", object: "chat.completion.chunk", created: 0, model, choices: [{ index: 0, delta, finish_reason: null }] });
  setTimeout(() => event(chunk({ role: "assistant", content: "Hello" })), 20 + 120 * load(n));
  setTimeout(() => {
    event({ ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
    event({ ...chunk({}), choices: [], usage: { prompt_tokens: 900, completion_tokens: 80, total_tokens: 980, prompt_tokens_details: { cached_tokens: 600 } } });
    answer.end("data: [DONE]\n\n");
  }, 600 + 1200 * load(n));
}

for (let n = 0; n < count; n += 1) {
  const server = createServer((request, answer) => {
    const json = (value) => answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    request.resume();
    if (request.url === "/metrics") {
      // These fall silent a while after the start: their signals go stale.
      if (n % 71 === 30 && Date.now() - began > 5000) answer.writeHead(500).end();
      else answer.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(page(n));
    } else if (request.url === "/v1/models") json({ object: "list", data: [{ id: model, object: "model", owned_by: "vllm", root: model, parent: null, max_model_len: 32768 }] });
    else if (request.method === "POST") request.on("end", () => chat(n, answer));
    else answer.writeHead(200).end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(first + n, "127.0.0.1", () => { if (n === count - 1) process.send?.("ready"); });
}
process.on("disconnect", () => process.exit());
