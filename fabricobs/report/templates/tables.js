// Lets the reader sort tables by the heads of their columns, filter them, and save them as CSV.
const cellValue = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.sort ?? cell.textContent.trim();
};

function compare(a, b) {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}

function sortBy(head) {
  const body = head.closest("table").tBodies[0];
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const column = head.cellIndex;
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [cellValue(a, column), cellValue(b, column)];
    // What is not known stays last, whichever way.
    const known = (value) => value && value !== "-";
    if (!known(x) || !known(y)) return (known(x) ? 0 : 1) - (known(y) ? 0 : 1);
    return sign * compare(x, y);
  });
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  body.append(...rows);
}

function csv(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = [table.tHead.rows[0], ...[...table.tBodies[0].rows].filter((row) => !row.hidden)];
  return rows
    .map((row) => [...row.cells].map((cell) => quoted(cell.innerText.trim())).join(","))
    .join("\r\n");
}

function saveCsv(table) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${csv(table)}\r\n`], { type: "text/csv" }));
  const label = table.closest("[aria-label]")?.getAttribute("aria-label");
  const name = label ?? table.closest("[id]")?.id ?? "table";
  link.download = `${name.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 60)}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

// A row is shown if the words of the filter are in it and it lies in the chosen range of time.
function showRow(row) {
  row.hidden = row.dataset.unlike === "true" || row.dataset.outside === "true";
}

const FEWEST_TO_FILTER = 8;
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(head));
    head.append(button);
  }
  const bar = document.createElement("p");
  bar.className = "bar";
  if (table.tBodies[0].rows.length >= FEWEST_TO_FILTER) {
    const filter = document.createElement("input");
    filter.type = "search";
    filter.placeholder = "Filter rows";
    filter.setAttribute("aria-label", `Filter rows: ${table.caption?.textContent.trim() ?? ""}`);
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.dataset.unlike = String(!words.every((word) => text.includes(word)));
        showRow(row);
      }
    });
    bar.append(filter);
  }
  const save = document.createElement("button");
  save.type = "button";
  save.className = "act";
  save.textContent = "partial" in table.dataset ? "Save the rows shown as CSV" : "Save as CSV";
  save.addEventListener("click", () => saveCsv(table));
  bar.append(save);
  table.before(bar);
}
