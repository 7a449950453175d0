// OpenAI's client for Node works unmodified against the gateway.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterEach, describe, test } from 'node:test';

import OpenAI, { toFile } from 'openai';

const variable = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run \`cargo xtask test --only sdk-node\``);
  return value;
};

const url = variable('WICKETGATE_TEST_URL');
const model = variable('WICKETGATE_TEST_MODEL');
const adapters = variable('WICKETGATE_TEST_ADAPTERS').split(',');
const endpoints = variable('WICKETGATE_TEST_ENDPOINTS').split(',');

let sentBody = '';
const client = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: 'none',
  maxRetries: 0,
  timeout: 30_000,
  fetch: (address, init) => {
    if (typeof init?.body === 'string') sentBody = init.body;
    return fetch(address, init);
  },
});

const messages = [{ role: 'user', content: 'Say hello.' }];
const sentDigest = () => createHash('sha256').update(sentBody).digest('hex');

async function fault(body) {
  for (const endpoint of endpoints) {
    const answer = await fetch(`${endpoint}/admin/fault`, {
      method: body ? 'POST' : 'DELETE',
      headers: { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    assert.ok(answer.ok, `fault: ${answer.status}`);
  }
}

/** The first request at any endpoint for which `condition` holds; waits up to ten seconds for it. */
async function received(condition) {
  const deadline = performance.now() + 10_000;
  const revisions = new Map(endpoints.map((endpoint) => [endpoint, 0]));
  while (performance.now() < deadline) {
    for (const [endpoint, after] of revisions) {
      // Answered as soon as something changed since the revision, else after 100 ms.
      const page = await (await fetch(`${endpoint}/admin/requests?after=${after}&wait=100`)).json();
      revisions.set(endpoint, page.revision);
      const found = page.requests.find(condition);
      if (found) return found;
    }
  }
  return assert.fail('no endpoint saw it within ten seconds');
}

describe('answers', () => {
  test('models list the base model and its adapters', async () => {
    const ids = [];
    for await (const card of client.models.list()) ids.push(card.id);
    assert.deepEqual(ids.sort(), [model, ...adapters].sort());
    assert.equal((await client.models.retrieve(model)).id, model);
  });

  test('chat answers with text and usage', async () => {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 9, ignore_eos: true });
    assert.ok(answer.choices[0].message.content);
    assert.equal(answer.usage.completion_tokens, 9);
  });

  test('chat streams token by token and ends with usage', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 9,
      ignore_eos: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    let pieces = 0;
    let usage;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) pieces += 1;
      usage = chunk.usage ?? usage;
    }
    assert.ok(pieces >= 2);
    assert.equal(usage.completion_tokens, 9);
  });

  test('completions answer', async () => {
    const answer = await client.completions.create({ model, prompt: 'Once upon', max_tokens: 4 });
    assert.ok(answer.choices[0].text);
  });

  test('embeddings answer with numbers', async () => {
    const answer = await client.embeddings.create({ model, input: ['one', 'two'] });
    assert.equal(answer.data.length, 2);
    assert.equal(typeof answer.data[1].embedding[0], 'number');
  });

  test('responses answer and stream', async () => {
    const whole = await client.responses.create({ model, input: 'Say hello.', max_output_tokens: 6 });
    assert.ok(whole.output_text);
    const kinds = [];
    for await (const event of await client.responses.create({ model, input: 'Hi.', max_output_tokens: 6, stream: true })) {
      kinds.push(event.type);
    }
    assert.equal(kinds[0], 'response.created');
    assert.match(kinds.at(-1), /^response\.(completed|incomplete)$/);
  });

  test('an audio file is transcribed', async () => {
    const file = await toFile(Buffer.alloc(5000), 'speech.wav', { type: 'audio/wav' });
    assert.ok((await client.audio.transcriptions.create({ model, file })).text);
  });

  test('an adapter is asked for by its name', async () => {
    const answer = await client.chat.completions.create({ model: adapters[1], messages, max_tokens: 2 });
    assert.equal(answer.model, adapters[1]);
  });

  test('the body reaches an endpoint byte for byte', async () => {
    await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Grüße aus Zürich 🌧 \u2028 "quoted" \\ end' }],
      tools: [{ type: 'function', function: { name: 'weather' } }],
      max_tokens: 1,
      unknown_to_everyone: [1e-7, null, { deep: [[[]]] }],
    });
    const wanted = sentDigest();
    await received((request) => request.body_sha256 === wanted);
  });
});

describe('failures', () => {
  afterEach(() => fault(null));

  test('an unknown model is not found and named', async () => {
    await assert.rejects(client.chat.completions.create({ model: 'no-such-model', messages }), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, 'model_not_found');
      assert.match(error.message, /no-such-model/);
      return true;
    });
  });

  test('a model that is no name is a bad request', async () => {
    await assert.rejects(client.post('/chat/completions', { body: { model: 7, messages } }), OpenAI.BadRequestError);
  });

  test('a full engine is a rate limit with its time', async () => {
    await fault({ kind: 'error', status: 429, retry_after: '7' });
    await assert.rejects(client.chat.completions.create({ model, messages }), (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError);
      assert.equal(error.headers.get('retry-after'), '7');
      return true;
    });
  });

  test('leaving a stream ends the request at the endpoint', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 4000,
      ignore_eos: true,
      stream: true,
    });
    const wanted = sentDigest();
    let seen = 0;
    for await (const _ of stream) {
      seen += 1;
      if (seen === 5) break; // the client aborts the request
    }
    const left = await received((request) => request.body_sha256 === wanted && request.outcome === 'cancelled');
    assert.ok(left.chunks_sent < 4000);
  });

  test('the client timing out ends the request at the endpoint', async () => {
    await fault({ kind: 'stall' });
    await assert.rejects(
      client.chat.completions.create({ model, messages, user: 'impatient-node' }, { timeout: 500 }),
      OpenAI.APIConnectionTimeoutError,
    );
    const wanted = sentDigest();
    await received((request) => request.body_sha256 === wanted && request.outcome === 'cancelled');
  });

  test('a stream that breaks off is an error and no normal end', async () => {
    await fault({ kind: 'cut', after_chunks: 3 });
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 50, ignore_eos: true, stream: true });
    let seen = 0;
    await assert.rejects(async () => {
      for await (const _ of stream) seen += 1;
    }, OpenAI.APIError);
    assert.ok(seen >= 1);
  });
});
