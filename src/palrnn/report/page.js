"use strict";
(() => {
  // Okabe and Ito's colours by name; on dark paper blue is lifted and black becomes the colour of the text.
  const colours = {
    light: { blue: "#0072B2", vermilion: "#D55E00", green: "#009E73", purple: "#CC79A7", orange: "#E69F00",
             sky: "#56B4E9", ink: "#1c1f23", soft: "#5b6169", faint: "#a9aeb5", grid: "#e9e7e2", card: "#ffffff" },
    dark: { blue: "#4AA8E0", vermilion: "#F0803C", green: "#2BBF95", purple: "#DB94BC", orange: "#F0B432",
            sky: "#8FD0F5", ink: "#e8e6e1", soft: "#a3a9b1", faint: "#656c75", grid: "#2c3138", card: "#1b1f24" },
  };
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chooser = document.getElementById("theme");
  const config = { responsive: true, displaylogo: false,
                   // on a narrow or a touch screen the buttons would cover the legend
                   displayModeBar: window.matchMedia("(hover: hover) and (min-width: 48rem)").matches ? "hover" : false,
                   // nothing of a page leaves the page: no button that sends data anywhere
                   showSendToCloud: false, modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"] };
  // what is left of a sheet of A4 within the margins of page.css and a figure's frame, in pixels
  const PAPER = 640;
  const plots = new Map();
  let printing = false;

  function theme() {
    if (printing) return "light";
    if (chooser.value !== "auto") return chooser.value;
    return system.matches ? "dark" : "light";
  }

  // "@blue" stands for the theme's blue and "@blue/0.2" for a fifth of it, wherever a colour may stand
  function coloured(value) {
    if (typeof value === "string") {
      const [name, share] = value.split("/");
      const colour = name.startsWith("@") ? colours[theme()][name.slice(1)] : undefined;
      if (!colour) return value;
      return share === undefined ? colour : colour + Math.round(255 * Number(share)).toString(16).padStart(2, "0");
    }
    if (Array.isArray(value)) return value.map(coloured);
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, coloured(part)]));
    }
    return value;
  }

  function axis(given) {
    return { gridcolor: "@grid", zerolinecolor: "@grid", linecolor: "@faint", tickcolor: "@faint",
             tickfont: { color: "@soft", size: 11 }, automargin: true, ...given };
  }

  function layoutOf(plot, view) {
    const given = { ...plot.layout, ...(view ? view.layout : {}) };
    const layout = {
      paper_bgcolor: "@card", plot_bgcolor: "@card", margin: { l: 54, r: 16, t: 12, b: 44 }, uirevision: "kept",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@ink" },
      hoverlabel: { bgcolor: "@card", bordercolor: "@faint", font: { color: "@ink" } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: "@soft", size: 11 }, itemsizing: "constant" },
      ...given,
    };
    for (const key of Object.keys(given)) {
      if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(given[key]);
      if (/^scene\d*$/.test(key)) {
        const scene = { ...given[key] };
        for (const name of ["xaxis", "yaxis", "zaxis"]) {
          scene[name] = { showbackground: false, showspikes: false, ...axis(given[key][name]) };
          delete scene[name].automargin;
        }
        layout[key] = scene;
      }
    }
    if (view && view.plane) delete layout.scene;
    if (printing) layout.width = PAPER;
    return coloured(layout);
  }

  function tracesOf(plot, view) {
    const visible = plot.choices[plot.choice];
    return plot.traces.map((trace, i) => {
      const shown = { ...coloured(trace) };
      if (visible) shown.visible = visible[i];
      if (view && view.plane) {
        const [x, y] = view.plane;
        Object.assign(shown, { type: "scatter", x: trace[x], y: trace[y] });
        delete shown.z;
      }
      return shown;
    });
  }

  // a scene in a narrow column: less tall, and seen from farther away, so that its axes fit
  function fitted(plot) {
    if (!plot.layout.scene || plot.node.clientWidth === 0 || plot.node.clientWidth > 480) return;
    plot.node.style.height = "410px";
    const camera = plot.layout.scene.camera;
    const eye = Object.fromEntries(Object.entries(camera.eye).map(([name, value]) => [name, 1.45 * value]));
    plot.layout = { ...plot.layout, scene: { ...plot.layout.scene, camera: { ...camera, eye } } };
  }

  function draw(plot) {
    const view = plot.views[plot.view];
    return Plotly.react(plot.node, tracesOf(plot, view), layoutOf(plot, view), config)
      .then(() => { plot.node.dataset.drawn = theme(); });
  }

  function drawAll() {
    if (!window.Plotly) return Promise.resolve();
    return Promise.all([...plots.values()].map(draw));
  }

  function webgl() {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  }

  function turn(plot, way) {
    const eye = plot.node._fullLayout.scene.camera.eye;
    const radius = Math.hypot(eye.x, eye.y, eye.z);
    let around = Math.atan2(eye.y, eye.x), above = Math.asin(eye.z / radius);
    if (way === "left") around -= Math.PI / 12;
    if (way === "right") around += Math.PI / 12;
    if (way === "up") above = Math.min(above + Math.PI / 12, 1.5);
    if (way === "down") above = Math.max(above - Math.PI / 12, -1.5);
    const flat = radius * Math.cos(above);
    const turned = { x: flat * Math.cos(around), y: flat * Math.sin(around), z: radius * Math.sin(above) };
    return Plotly.relayout(plot.node, { "scene.camera.eye": turned });
  }

  const deep = webgl();
  for (const source of document.querySelectorAll("script[data-plot]")) {
    const key = source.dataset.plot;
    const plot = { ...JSON.parse(source.textContent), node: document.getElementById(key), view: 0, choice: 0 };
    // without WebGL a 3-D figure starts as its shadow on a plane
    if (!deep) plot.view = Math.max(0, plot.views.findIndex((view) => view.plane));
    fitted(plot);
    plots.set(key, plot);
  }
  for (const select of document.querySelectorAll("select[data-view]")) {
    const plot = plots.get(select.dataset.view);
    const turns = select.parentElement.querySelector(".turns");
    const show = () => {
      plot.view = Number(select.value);
      if (turns) turns.hidden = Boolean(plot.views[plot.view].plane);
    };
    for (const option of select.options) option.disabled = !deep && !plot.views[Number(option.value)].plane;
    select.value = String(plot.view);
    show();
    select.addEventListener("change", () => { show(); draw(plot); });
  }
  for (const select of document.querySelectorAll("select[data-choice]")) {
    const plot = plots.get(select.dataset.choice);
    select.value = "0";
    select.addEventListener("change", () => { plot.choice = Number(select.value); draw(plot); });
  }
  for (const button of document.querySelectorAll("button[data-turn]")) {
    button.addEventListener("click", () => turn(plots.get(button.dataset.figure), button.dataset.turn));
  }

  function applyTheme() {
    if (chooser.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chooser.value;
    return drawAll();
  }
  // a private window may refuse storage; the choice is then forgotten with the page
  try { chooser.value = localStorage.getItem("palrnn-theme") ?? "auto"; } catch { chooser.value = "auto"; }
  if (!chooser.value) chooser.value = "auto";
  chooser.addEventListener("change", () => {
    try { localStorage.setItem("palrnn-theme", chooser.value); } catch { /* forgotten with the page */ }
    applyTheme();
  });
  system.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { printing = true; drawAll(); });
  window.addEventListener("afterprint", () => {
    printing = false;
    drawAll().then(() => { for (const plot of plots.values()) Plotly.Plots.resize(plot.node); });
  });
  document.getElementById("print").addEventListener("click", () => window.print());

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
  // a long file is packed in the page and leaves it unpacked
  async function hand(link) {
    const text = await unpacked(link.href.split(",")[1]);
    const file = document.createElement("a");
    file.href = URL.createObjectURL(new Blob([text], { type: link.dataset.packed }));
    file.download = link.textContent;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 60000);
  }
  if (typeof DecompressionStream !== "undefined") {
    for (const link of document.querySelectorAll("a[data-packed]")) {
      link.addEventListener("click", (event) => { event.preventDefault(); hand(link); });
    }
  }
  async function start() {
    const packed = document.getElementById("plotly");
    if (typeof DecompressionStream === "undefined") {
      for (const node of document.querySelectorAll(".plot, .controls")) node.hidden = true;
      document.getElementById("plain").hidden = false;
    } else {
      const library = document.createElement("script");
      library.textContent = await unpacked(packed.textContent);
      document.head.append(library);
      await applyTheme();
    }
    packed.remove();
    document.documentElement.dataset.ready = "yes";
  }
  start();
})();
