/* Draws the charts of the data block, keeps their ranges together, and obeys the check boxes. */
"use strict";

(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const synced = [];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const config = {
    displaylogo: false,
    responsive: true,
    showLink: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["lasso2d", "select2d", "sendDataToCloud", "editInChartStudio"],
  };

  const color = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function theme() {
    const axis = { grid: color("--grid"), line: color("--line") };
    const look = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      "font.color": color("--ink"),
      "hoverlabel.bgcolor": color("--card"),
      "hoverlabel.bordercolor": axis.line,
      "hoverlabel.font.color": color("--ink"),
      "modebar.bgcolor": "rgba(0,0,0,0)",
      "modebar.color": color("--soft"),
      "modebar.activecolor": color("--ink"),
    };
    for (const name of ["xaxis", "yaxis"]) {
      look[`${name}.gridcolor`] = axis.grid;
      look[`${name}.linecolor`] = axis.line;
      look[`${name}.zerolinecolor`] = axis.line;
    }
    return look;
  }

  function layoutOf(figure) {
    const layout = {
      margin: { l: 58, r: 12, t: 26, b: 46 },
      font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
      showlegend: false,
      // A finger on a chart scrolls the page; the buttons above the chart still zoom.
      dragmode: touch ? false : "zoom",
      legend: { orientation: "h", x: 0, y: -0.22, yanchor: "top" },
      hoverlabel: { font: {} },
      modebar: {},
      ...figure.layout,
    };
    layout.xaxis = { automargin: true, zeroline: false, ...layout.xaxis };
    layout.yaxis = { automargin: true, hoverformat: ".4g", ...layout.yaxis };
    for (const [path, value] of Object.entries(theme())) {
      const keys = path.split(".");
      const last = keys.pop();
      keys.reduce((part, key) => (part[key] ??= {}), layout)[last] = value;
    }
    return layout;
  }

  function rangeOf(event) {
    if (event["xaxis.autorange"]) return { "xaxis.autorange": true };
    const range = event["xaxis.range"] ?? [event["xaxis.range[0]"], event["xaxis.range[1]"]];
    return range[0] === undefined ? null : { "xaxis.range": [...range] };
  }

  let following = false; // charts that follow another must not lead in turn
  async function follow(leader, event) {
    const range = rangeOf(event);
    if (following || range === null) return;
    following = true;
    try {
      await Promise.all(
        synced.filter((plot) => plot !== leader).map((plot) => Plotly.relayout(plot, range)),
      );
    } finally {
      following = false;
    }
  }

  function switchKind(box) {
    for (const plot of document.querySelectorAll("figure.output .plot.drawn")) {
      const traces = plot.data.flatMap((t, k) => (t.meta === box.dataset.kind ? [k] : []));
      if (traces.length) Plotly.restyle(plot, { visible: box.checked }, traces);
    }
  }

  function switchOutput(box) {
    const plot = document.getElementById(box.dataset.output);
    plot.closest("figure").hidden = !box.checked;
    if (box.checked) Plotly.Plots.resize(plot);
  }

  for (const figure of data.figures) {
    const plot = document.getElementById(figure.id);
    for (const trace of figure.data) {
      if (typeof trace.x === "string") trace.x = data.shared[trace.x];
    }
    await Plotly.newPlot(plot, figure.data, layoutOf(figure), config);
    plot.classList.add("drawn");
    if (figure.synced) {
      synced.push(plot);
      plot.on("plotly_relayout", (event) => follow(plot, event));
    }
    await new Promise((resolve) => setTimeout(resolve)); // the page answers between two charts
  }

  for (const box of document.querySelectorAll("input[data-kind]")) {
    box.addEventListener("change", () => switchKind(box));
    if (!box.checked) switchKind(box);
  }
  for (const box of document.querySelectorAll("input[data-output]")) {
    box.addEventListener("change", () => switchOutput(box));
  }
  dark.addEventListener("change", () => {
    for (const plot of document.querySelectorAll(".plot.drawn")) Plotly.relayout(plot, theme());
  });
  document.body.dataset.ready = "yes";
})();
