// Draws every chart with Vega in the colours of the reader's scheme; on paper always in light ones.
const specs = JSON.parse(document.getElementById("chart-specs").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const text = { color: "currentColor" };
const axis = {
  labelColor: "currentColor", titleColor: "currentColor", titleFontWeight: "normal",
  domainColor: "currentColor", domainOpacity: 0.5, tickColor: "currentColor", tickOpacity: 0.5,
  gridColor: "currentColor", gridOpacity: 0.12, labelFontSize: 11, titleFontSize: 12,
};
const colours = {
  light: {
    category: ["#8d98a5", "#12508f", "#b4501c"],
    heatmap: ["#f3efe9", "#f0c08a", "#c9591f", "#5c1f0a"],
  },
  dark: {
    category: ["#77828f", "#8fc1f7", "#ef9a5f"],
    heatmap: ["#1d2126", "#6b3413", "#d9722f", "#ffe3bd"],
  },
};
const drawn = new Map();

function config(theme) {
  return {
    background: null, aria: false, font: "system-ui, sans-serif",
    view: { stroke: null }, axis, text, range: colours[theme],
    legend: {
      orient: "top", labelColor: "currentColor", titleColor: "currentColor",
      titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 11, labelLimit: 520,
      symbolOpacity: 1, symbolType: "stroke", symbolSize: 260, symbolStrokeWidth: 2.5, columnPadding: 16,
    },
  };
}

async function draw(theme) {
  for (const box of document.querySelectorAll(".chart")) {
    try {
      drawn.get(box)?.finalize();
      drawn.set(box, await vegaEmbed(box, specs[box.id], {
        mode: "vega-lite", actions: false, renderer: "svg", config: config(theme),
        tooltip: { theme }, defaultStyle: false,
      }));
    } catch (error) {
      box.textContent = `This chart could not be drawn: ${error.message}`;
    }
  }
}

const scheme = () => (dark.matches ? "dark" : "light");
dark.addEventListener("change", () => draw(scheme()));
addEventListener("beforeprint", () => draw("light"));
addEventListener("afterprint", () => draw(scheme()));
draw(scheme());
