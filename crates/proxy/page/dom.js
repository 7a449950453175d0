// Elements and the writing of numbers. Text only ever becomes text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (`class`, `text`, `on…` handlers, else attributes) and children. */
export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same of a drawing. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Sets text only where it differs: an unchanged node costs no layout. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A count or rate in at most four characters or so: 0.4, 12, 940, 12.3K. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 9.95) return String(Math.round(value * 10) / 10);
  return value < 1000 ? whole.format(value) : compact.format(value);
}

/** A count or rate in at most five characters, as `wicketgate top` writes it: 7, 0.4, 1.2k, 35k, 1.4M. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const [unit, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, size]) => value >= size * 0.9995) ?? ["", 1];
  const scaled = Math.max(value, 0) / size;
  return `${scaled !== 0 && scaled < 9.95 && (unit !== "" || scaled % 1 !== 0) ? scaled.toFixed(1) : scaled.toFixed(0)}${unit}`;
}

export const exact = (value) => (value === null || value === undefined ? "–" : whole.format(value));

/** A share of one as a percentage. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`;
}

/** Milliseconds, in the unit that people would take. */
export function time(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms / 60_000) % 60} min`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

/** A difference of milliseconds with its sign. */
export function difference(ms) {
  return `${ms < 0 ? "−" : "+"}${time(Math.abs(ms))}`;
}

export const plural = (number, one, many = `${one}s`) => `${exact(number)} ${number === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function hour(moment) {
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? "–" : clock.format(date);
}

/** Which arrow key moves where among the children of a wrapping list; `null`: none of our keys. */
export function arrowed(event, cells, at) {
  const last = cells.length - 1;
  const row = (step) => {
    const from = cells[at].getBoundingClientRect();
    for (let next = at + step; next >= 0 && next <= last; next += step) {
      const to = cells[next].getBoundingClientRect();
      // Another row, and beside or past the column where we are: wrapping lists fill from the left.
      const other = step > 0 ? to.top > from.top + 1 : to.top < from.top - 1;
      if (!other) continue;
      if (step > 0 ? to.left >= from.left - 1 || isLastOfRow(cells, next) : to.left <= from.left + 1) return next;
    }
    return at;
  };
  switch (event.key) {
    case "ArrowRight": return Math.min(at + 1, last);
    case "ArrowLeft": return Math.max(at - 1, 0);
    case "ArrowDown": return row(1);
    case "ArrowUp": return row(-1);
    case "Home": return 0;
    case "End": return last;
    default: return null;
  }
}

function isLastOfRow(cells, at) {
  const next = cells[at + 1];
  return !next || next.getBoundingClientRect().top > cells[at].getBoundingClientRect().top + 1;
}
