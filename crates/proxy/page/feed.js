// What the gateway tells, once a second: a whole at first, then only what changes.

const ROWS_MAX = 300;
const DECISIONS_MAX = 80;
const PATIENCE_MS = 10_000;

/**
 * Asks the gateway for its state and hands on a model:
 *
 * * `who`, `news`: as /debug/live has them;
 * * `history`: the last five minutes of the whole gateway, `poolHistory[i]`: of each pool since this
 *   page was opened; rows of `{at_ms, requests, …}`, the oldest first;
 * * `decisions`: the last ones, newest first.
 *
 * A connection is held for the moment of an answer only: browsers keep six for each gateway, and more
 * pages than that may be open.
 */
export class Feed {
  constructor({ onBeat, onLink, onToken }) {
    this.onBeat = onBeat;
    this.onLink = onLink;
    this.onToken = onToken;
    this.token = null;
    this.model = null;
    this.etag = null;
    this.failures = 0;
    this.timer = null;
    this.heldUntil = 0;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) clearTimeout(this.timer);
      else this.poll();
    });
  }

  useToken(token) {
    this.token = token;
    this.poll();
  }

  /** One question of another kind; answers JSON or throws what went wrong. */
  async ask(path) {
    const answer = await this.fetch(path, {});
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 200).trim() || `status ${answer.status}`);
    return answer.json();
  }

  fetch(path, headers) {
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    // Not `no-store` at first: the page's head has asked for the whole already, and that answer must match.
    const cache = this.model ? "no-store" : "default";
    return fetch(path, { headers, cache, signal: AbortSignal.timeout(PATIENCE_MS) });
  }

  async poll() {
    clearTimeout(this.timer);
    if (this.polling) return;
    this.polling = true;
    const began = performance.now();
    let [wait, isNew] = [1000, false];
    try {
      const shape = this.model && this.isFresh() ? this.model.news.shape : null;
      const path = shape ? `/debug/live?shape=${encodeURIComponent(shape)}` : "/debug/live";
      const answer = await this.fetch(path, shape && this.etag ? { "if-none-match": this.etag } : {});
      if (answer.status === 401 || answer.status === 403) {
        this.onToken();
        return;
      }
      if (answer.status !== 304) {
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        const told = await answer.json();
        this.etag = answer.headers.get("etag");
        this.take(told);
      }
      this.failures = 0;
      this.toldAt = performance.now();
      wait = this.model.news.interval_ms - (performance.now() - began);
      isNew = true;
    } catch (error) {
      this.failures += 1;
      // Quick at first: most often it is a restart.
      wait = Math.min(500 * 2 ** Math.min(this.failures, 5), 10_000);
      this.onLink({ live: false, since: this.toldAt, why: error.message });
    } finally {
      this.polling = false;
      if (!document.hidden) this.timer = setTimeout(() => this.poll(), Math.max(wait, 100));
    }
    // Outside of the above: a fault of the page must not look like one of the gateway.
    if (isNew) {
      this.onLink({ live: true });
      this.onBeat(this.model);
    }
  }

  /** Whether the rows in each beat still join on to those that we have. */
  isFresh() {
    return performance.now() - this.toldAt < 8000;
  }

  take(told) {
    const known = this.model;
    const isSame = known && known.news.boot === told.boot;
    if (!told.who && (!known || known.news.shape !== told.shape)) {
      // Something came or went since we asked: the next question is for the whole.
      this.model = null;
      throw new Error("the fleet has changed");
    }
    const model = isSame ? known : { history: [], poolHistory: new Map(), decisions: [] };
    if (told.who) model.who = told.who;
    if (told.history) model.history = rows(told.history);
    else join(model.history, rows(told.recent));
    told.pools.forEach((pool, at) => {
      const name = model.who.pools[at].name;
      const history = model.poolHistory.get(name) ?? [];
      history.push({ at_ms: told.at_ms, ...pool.pulse });
      if (history.length > ROWS_MAX) history.shift();
      model.poolHistory.set(name, history);
    });
    const newest = model.decisions[0]?.number ?? -1;
    const fresh = told.decisions.filter((decision) => decision.number > newest);
    model.decisions = [...fresh, ...model.decisions].slice(0, DECISIONS_MAX);
    model.news = told;
    this.model = model;
  }
}

/** Columns become rows. */
function rows(columns) {
  const { first, ...rest } = columns;
  const names = Object.keys(rest);
  return columns.at_ms.map((_, at) => {
    const row = { number: first + at };
    for (const name of names) row[name] = rest[name][at];
    return row;
  });
}

function join(history, recent) {
  const last = history.at(-1)?.number ?? -1;
  history.push(...recent.filter((row) => row.number > last));
  if (history.length > ROWS_MAX) history.splice(0, history.length - ROWS_MAX);
}
