// Draws every chart with Vega, in the order of the page. Colours are custom properties of the page.
const charts = JSON.parse(document.getElementById("charts").textContent);
const options = {
  mode: "vega-lite", actions: false, renderer: "svg", config: charts.config, defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
  ast: true,  // expressions are interpreted: the page's policy allows no eval
};

for (const box of document.querySelectorAll(".chart")) {
  try {
    await vegaEmbed(box, charts.specs[box.id], options);
  } catch (error) {
    box.textContent = `This chart could not be drawn: ${error.message}`;
  }
}
document.documentElement.dataset.charts = "drawn";
performance.mark("charts drawn");
