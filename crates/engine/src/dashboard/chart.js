// Draws values over time as SVG: a curve, dots, and marks where something changed.

const SVG = "http://www.w3.org/2000/svg";
// There is room for labels at the size that they have on a phone.
const SIZE = { width: 560, height: 190, left: 84, right: 10, top: 16, bottom: 26 };

function shape(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** A number as a label, with so many significant digits. */
export function label(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

/** The ends of an axis: a little beyond the values, and never the same. */
function ends(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

/**
 * @param {string} title what it shows, for those who do not see it
 * @param {{at: number, value: ?number}[]} curve in the order of time; joined by lines where none is missing
 * @param {{at: number, value: number}[]} dots
 * @param {number[]} marks times at which something changed
 * @param {boolean} factors whether equal steps are equal factors; values are above 0 then
 */
export function chart(title, curve, dots, marks, factors = false) {
  const { width, height, left, right, top, bottom } = SIZE;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const known = curve.filter((point) => point.value !== null);
  const all = [...known, ...dots];
  if (all.length === 0) {
    svg.append(shape("text", { x: left, y: height / 2 }, "nothing yet"));
    return svg;
  }
  const [up, down] = factors ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const [low, high] = ends(all.map((point) => up(point.value)));
  const times = [...curve, ...dots].map((point) => point.at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (at) => left + ((at - first) / (last - first || 1)) * (width - left - right);
  const y = (value) => top + ((high - up(value)) / (high - low)) * (height - top - bottom);

  for (const value of [low, (low + high) / 2, high].map(down)) {
    const at = y(value);
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(shape("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, label(value, 3)));
  }
  const clock = (at) => new Date(at).toISOString().slice(5, 16).replace("T", " ");
  svg.append(shape("text", { x: left, y: height - 6 }, `${clock(first)} UTC`));
  svg.append(shape("text", { x: width - right, y: height - 6, "text-anchor": "end" }, clock(last)));
  for (const at of marks.filter((at) => at >= first && at <= last)) {
    svg.append(shape("line", { class: "mark", x1: x(at), x2: x(at), y1: top, y2: height - bottom }));
  }
  let path = "";
  let joined = false;
  for (const point of curve) {
    if (point.value !== null) {
      path += `${joined ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`;
    }
    joined = point.value !== null;
  }
  svg.append(shape("path", { class: "curve", d: path || "M0 0" }));
  for (const point of dots) {
    const dot = shape("circle", { class: "dot", cx: x(point.at), cy: y(point.value), r: 2.4 });
    dot.append(shape("title", {}, `${clock(point.at)}: ${label(point.value)}`));
    svg.append(dot);
  }
  return svg;
}

/** Both arms of an experiment over time. */
export function arms(title, control, treatment) {
  const { width, height, left, right, top, bottom } = SIZE;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const known = [...control, ...treatment].filter((point) => point.value !== null);
  if (known.length === 0) {
    svg.append(shape("text", { x: left, y: height / 2 }, "nothing yet"));
    return svg;
  }
  const [low, high] = ends(known.map((point) => point.value));
  const times = known.map((point) => point.at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (at) => left + ((at - first) / (last - first || 1)) * (width - left - right);
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, label(value, 3)));
  }
  const clock = (at) => new Date(at).toISOString().slice(5, 16).replace("T", " ");
  svg.append(shape("text", { x: left, y: height - 6 }, `${clock(first)} UTC`));
  svg.append(shape("text", { x: width - right, y: height - 6, "text-anchor": "end" }, clock(last)));
  for (const [kind, points] of [["control", control], ["treatment", treatment]]) {
    const seen = points.filter((point) => point.value !== null);
    const path = seen.map((point, i) => `${i ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
    svg.append(shape("path", { class: `curve ${kind}`, d: path || "M0 0" }));
    for (const point of seen) {
      const dot = shape("circle", { class: `dot ${kind}`, cx: x(point.at), cy: y(point.value), r: 2.6 });
      dot.append(shape("title", {}, `${kind}, ${clock(point.at)}: ${label(point.value)}`));
      svg.append(dot);
    }
    const end = seen.at(-1);
    if (end) svg.append(shape("text", { class: kind, x: x(end.at) - 6, y: y(end.value) - 7, "text-anchor": "end" }, kind));
  }
  return svg;
}

/** A number with its confidence interval, drawn against zero. */
export function interval(title, effect, large = false) {
  const [width, height] = large ? [SIZE.width, 90] : [180, 22];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: large ? "" : "small" });
  const [low, high] = ends([effect.low, effect.high, 0]);
  const x = (value) => 20 + ((value - low) / (high - low)) * (width - 40);
  const middle = height / 2;
  svg.append(shape("line", { class: "axis", x1: x(0), x2: x(0), y1: 2, y2: height - (large ? 18 : 2) }));
  svg.append(shape("line", { class: "reach", x1: x(effect.low), x2: x(effect.high), y1: middle, y2: middle }));
  for (const end of [effect.low, effect.high]) {
    svg.append(shape("line", { class: "reach", x1: x(end), x2: x(end), y1: middle - 5, y2: middle + 5 }));
  }
  svg.append(shape("circle", { class: "dot", cx: x(effect.value), cy: middle, r: large ? 5 : 3.5 }));
  if (large) {
    for (const value of new Set([effect.low, 0, effect.high])) {
      svg.append(shape("text", { x: x(value), y: height - 4, "text-anchor": "middle" }, label(value)));
    }
  }
  return svg;
}
