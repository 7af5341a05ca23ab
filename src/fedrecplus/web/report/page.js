// Draws every plot, in the reader's colours, and again when these change or the page is printed.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 40rem)");
  const paper = matchMedia("print");
  const PRINT_WIDTH = 660;
  // After: Okabe and Ito 2008, colours that colour-blind readers can tell apart
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#444444", "#7a3e9d", "#b03030", "#2f7f4f"];
  const DARK = ["#56b4e9", "#ff9d5c", "#3fd0a4", "#f0a6cc", "#f0e442", "#8ab4ff", "#c0c0c0", "#c79bf0", "#ff8a8a", "#9be29b"];

  const colours = (printing) => {
    const night = dark.matches && !printing;
    return { night, ink: night ? "#e6edf3" : "#1b1f24", grid: night ? "#343c45" : "#d1d9e0",
      ground: night ? "#12161b" : "#ffffff", way: night ? DARK : LIGHT };
  };

  const axis = (given, c) => ({ gridcolor: c.grid, zerolinecolor: c.grid, linecolor: c.grid, automargin: true,
    ...(given && given.type === "log" ? { dtick: "D2" } : {}), ...given });

  const layoutOf = (given, c, printing) => {
    const small = narrow.matches && !printing;
    const layout = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: c.way,
      font: { color: c.ink, size: small ? 10 : 12, family: "system-ui, sans-serif" },
      margin: { l: small ? 46 : 64, r: small ? 8 : 24, t: 16, b: 60 }, hovermode: "closest",
      legend: { orientation: "h", y: -0.24, yanchor: "top" }, ...given };
    for (const name of new Set(["xaxis", "yaxis", ...Object.keys(given).filter((key) => /^[xy]axis/.test(key))])) {
      layout[name] = axis(given[name], c);
    }
    layout.shapes = (given.shapes || []).map((shape) => ({ ...shape, line: { color: c.ink, width: 1, ...shape.line } }));
    if (small) layout.annotations = []; // no room for names beside points; a touch shows them
    if (printing) layout.width = PRINT_WIDTH;
    else layout.autosize = true;
    return layout;
  };

  // a colour's number in the row of colours, or the name of one of the page's own
  const coloured = (look, c) => look && look.colour !== undefined
    ? { ...look, color: typeof look.colour === "number" ? c.way[look.colour] : c[look.colour] } : look;

  const dressed = (trace, c, small, printing) => trace.meta !== "diverging" ? {
    ...trace, ...(trace.marker && { marker: coloured(trace.marker, c) }), ...(trace.line && { line: coloured(trace.line, c) }) } : { ...trace,
    showscale: !small && !printing, // the caption names the colours, and cells need the room
    texttemplate: small ? "" : trace.texttemplate,
    colorscale: [[0, c.night ? "#2b7fc0" : "#4a9bd8"], [0.5, c.ground], [1, c.night ? "#c4561a" : "#e8853f"]],
    textfont: { color: c.ink }, colorbar: { ...trace.colorbar, tickfont: { color: c.ink } } };

  const draw = (printing) => {
    const c = colours(printing), small = narrow.matches && !printing;
    // on paper nobody can open what is closed, and a number without its origin is none
    for (const origin of document.querySelectorAll("details.made")) origin.open = printing;
    for (const script of document.querySelectorAll("script[data-for]")) {
      const place = document.getElementById(script.dataset.for), given = JSON.parse(script.textContent);
      const traces = given.data.map((trace) => dressed(trace, c, small, printing));
      Plotly.react(place, traces, layoutOf(given.layout, c, printing), { responsive: true, displaylogo: false });
    }
  };

  draw(paper.matches);
  dark.addEventListener("change", () => draw(false));
  narrow.addEventListener("change", () => draw(paper.matches));
  paper.addEventListener("change", () => draw(paper.matches));
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw(false));
})();
