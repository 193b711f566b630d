// Lets the reader sort tables: the heads of their columns become buttons.
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
    if (!x || !y) return (x ? 0 : 1) - (y ? 0 : 1);
    return sign * compare(x, y);
  });
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  body.append(...rows);
}

for (const head of document.querySelectorAll("table.sortable thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Sort by this column";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sortBy(head));
  head.append(button);
}
