// Shows what the marks of a chart say, and one range of time in all charts of the page.
const SVG = "http://www.w3.org/2000/svg";
const numbers = (text) => text.split(" ").map(Number);
const rowsOf = (svg) => [...svg.closest("figure").querySelectorAll("tr[data-x]")];

// A scale: from pixels of the SVG to the values of its x axis and back.
function scaleOf(svg) {
  const [low, high] = numbers(svg.dataset.domain);
  const [left, top, width, height] = numbers(svg.dataset.frame);
  return {
    kind: svg.dataset.axis, low, high, left, top, width, height,
    value: (x) => low + ((x - left) / width) * (high - low),
    pixel: (value) => left + ((value - low) / (high - low)) * width,
  };
}

function pointOf(svg, event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}

// What rows share, then a line for each: marked ones before others, larger values before smaller.
const MOST_LINES = 8;
function wordsOf(table, rows) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const places = [...heads.keys()];
  const text = (row, n) => row.cells[n].textContent;
  const shared = places.filter((n) => rows.every((row) => text(row, n) === text(rows[0], n)));
  const own = places.filter((n) => !shared.includes(n));
  const told = shared.map((n) => `${heads[n]}: ${text(rows[0], n)}`);
  if (!own.length) return told.join("\n");
  const value = (row) => {
    const cell = row.cells[table.dataset.upright];
    return Number(cell?.dataset.sort ?? cell?.textContent) || 0;
  };
  const first = (row) => ("marked" in row.dataset ? 0 : 1);
  const sorted = [...rows].sort((a, b) => first(a) - first(b) || value(b) - value(a));
  const line = ([name, ...rest]) => `${name}${rest.length ? `: ${rest.join(", ")}` : ""}`;
  told.push(line(own.map((n) => heads[n])));
  told.push(...sorted.slice(0, MOST_LINES).map((row) => line(own.map((n) => text(row, n)))));
  if (rows.length > MOST_LINES) told.push(`and ${rows.length - MOST_LINES} more`);
  return told.join("\n");
}

// The words of a mark, else those of the rows of data nearest to the pointer.
function wordsAt(svg, event) {
  const title = event.target.querySelector?.(":scope > title");
  if (title) return title.textContent;
  if (!svg.dataset.domain) return "";
  const scale = scaleOf(svg);
  const { x, y } = pointOf(svg, event);
  if (x < scale.left || x > scale.left + scale.width) return "";
  if (y < scale.top || y > scale.top + scale.height) return "";
  const table = svg.closest("figure").querySelector(".data table");
  if (!table) return "";
  const at = scale.value(x);
  let rows = [...table.tBodies[0].querySelectorAll("tr[data-x]:not([data-x2])")];
  if (svg.dataset.bands) {
    const bands = JSON.parse(svg.dataset.bands);
    const band = bands[Math.floor(((y - scale.top) / scale.height) * bands.length)];
    rows = rows.filter((row) => row.cells[table.dataset.upright]?.textContent === band);
  }
  const far = (row) => Math.abs(Number(row.dataset.x) - at);
  const least = Math.min(...rows.map(far));
  const nearest = rows.filter((row) => far(row) === least);
  return nearest.length ? wordsOf(table, nearest) : "";
}

const tip = document.createElement("div");
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.body.append(tip);

function showTip(words, x, y) {
  tip.hidden = !words;
  tip.textContent = words;
  tip.style.left = `${Math.max(Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8), 4)}px`;
  const above = y + 18 + tip.offsetHeight > window.innerHeight;
  tip.style.top = `${Math.max(above ? y - tip.offsetHeight - 10 : y + 18, 4)}px`;
}

const drawings = [...document.querySelectorAll(".chart svg")];
for (const svg of drawings) {
  // The page shows the words of a mark itself, at once; the browser would show them a second time.
  for (const title of svg.querySelectorAll("title")) title.parentElement.append(title);
  svg.addEventListener("pointermove", (event) => {
    showTip(wordsAt(svg, event), event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => showTip("", 0, 0));
  svg.addEventListener("focusin", (event) => {
    const place = event.target.getBoundingClientRect();
    const words = event.target.querySelector("title")?.textContent ?? "";
    showTip(words, place.right, place.bottom);
  });
  svg.addEventListener("focusout", () => showTip("", 0, 0));
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") showTip("", 0, 0);
});

// Steps and times: what the step times of the page tell, if one job does.
const told = [...document.querySelectorAll("#step-time .data table")].find((table) =>
  [...table.tHead.rows[0].cells].some((cell) => cell.textContent.startsWith("ended")));
const clock = [];
if (told) {
  const column = [...told.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("ended"));
  const jobs = new Set();
  for (const row of told.tBodies[0].rows) {
    if (told.tHead.rows[0].cells[0].textContent.trim() === "job") jobs.add(row.cells[0].textContent);
    const time = Number(row.cells[column].dataset.sort);
    if (time) clock.push([Number(row.dataset.x), time]);
  }
  if (jobs.size > 1) clock.length = 0;
  clock.sort((a, b) => a[0] - b[0]);
}

function converted(value, from, to) {
  if (clock.length < 2) return NaN;
  let after = clock.findIndex((pair) => pair[from] >= value);
  if (after < 1) after = after === 0 ? 1 : clock.length - 1;
  const [a, b] = [clock[after - 1], clock[after]];
  return a[to] + ((value - a[from]) / (b[from] - a[from] || 1)) * (b[to] - a[to]);
}
const asTime = (value, kind) => (kind === "time" ? value : kind === "step" ? converted(value, 0, 1) : NaN);
const fromTime = (time, kind) => (kind === "time" ? time : kind === "step" ? converted(time, 1, 0) : NaN);

// The range: [from, to] in milliseconds, or null.
function showRange(range) {
  for (const svg of drawings) {
    svg.querySelector(".range")?.remove();
    if (!svg.dataset.domain) continue;
    const scale = scaleOf(svg);
    const ends = range && range.map((time) => fromTime(time, scale.kind));
    const applies = ends && !ends.some(Number.isNaN);
    if (applies) {
      const [a, b] = ends.map((end) => Math.min(Math.max(scale.pixel(end), scale.left), scale.left + scale.width));
      const mark = document.createElementNS(SVG, "rect");
      const place = { class: "range", x: a, y: scale.top, width: Math.max(b - a, 1), height: scale.height };
      for (const [name, value] of Object.entries(place)) mark.setAttribute(name, value);
      svg.append(mark);
    }
    for (const row of rowsOf(svg)) {
      const [x, x2] = [Number(row.dataset.x), Number(row.dataset.x2 ?? row.dataset.x)];
      row.dataset.outside = String(Boolean(applies) && (x2 < ends[0] || x > ends[1]));
      row.hidden = row.dataset.outside === "true" || row.dataset.unlike === "true";
    }
  }
  for (const row of document.querySelectorAll("tr[data-from]")) {
    const [from, to] = [Number(row.dataset.from), Number(row.dataset.to)];
    row.dataset.outside = String(Boolean(range) && (to < range[0] || from > range[1]));
    row.hidden = row.dataset.outside === "true" || row.dataset.unlike === "true";
  }
  chosen.classList.toggle("on", Boolean(range));
  [from.value, to.value] = range ? range.map((time) => new Date(time).toISOString().slice(0, 19)) : ["", ""];
}

const chosen = document.createElement("form");
chosen.id = "range";
chosen.setAttribute("aria-label", "Range of time of all charts");
chosen.append("Mark a time in all charts, here or by dragging in one:");
const [from, to] = ["From", "To"].map((word) => {
  const input = document.createElement("input");
  input.type = "datetime-local";
  input.step = 1;
  const label = document.createElement("label");
  label.append(`${word} (UTC) `, input);
  chosen.append(label);
  return input;
});
for (const [word, act] of [["Mark", null], ["Clear", () => showRange(null)]]) {
  const button = document.createElement("button");
  button.className = "act";
  button.textContent = word;
  button.type = act ? "button" : "submit";
  if (act) button.addEventListener("click", act);
  chosen.append(button);
}
chosen.addEventListener("submit", (event) => {
  event.preventDefault();
  const range = [from.value, to.value].map((text) => Date.parse(`${text}Z`));
  if (!range.some(Number.isNaN)) showRange(range.sort((a, b) => a - b));
});
const timed = drawings.filter((svg) => svg.dataset.domain && !Number.isNaN(asTime(0, svg.dataset.axis)));
if (timed.length) document.querySelector("main").prepend(chosen);

const LEAST_PIXELS = 5;
for (const svg of timed) {
  const scale = scaleOf(svg);
  svg.classList.add("timed");
  let began = null;
  svg.addEventListener("pointerdown", (event) => {
    const { x, y } = pointOf(svg, event);
    const inside = y >= scale.top && y <= scale.top + scale.height;
    began = event.button === 0 && inside && event.pointerType !== "touch" ? x : null;
  });
  svg.addEventListener("pointerup", (event) => {
    const { x } = pointOf(svg, event);
    if (began !== null && Math.abs(x - began) >= LEAST_PIXELS) {
      const times = [began, x].map((each) => asTime(scale.value(each), scale.kind));
      showRange(times.sort((a, b) => a - b));
    }
    began = null;
  });
}
document.documentElement.dataset.script = "done";
