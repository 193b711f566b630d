// Adds a button to each command and statement that copies it.
async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  // A page of a file or of plain HTTP has no clipboard: the selection is copied.
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("aria-hidden", "true");
  area.className = "aside";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser does not allow it");
}

for (const source of document.querySelectorAll(".copy")) {
  const text = source.textContent;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "act";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${text.trim().split("\n")[0].slice(0, 60)}`);
  button.addEventListener("click", async () => {
    try {
      await copyText(text);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = `Not copied: ${error.message}`;
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  source.after(button);
}
