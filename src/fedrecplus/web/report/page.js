// Unpacks plotly.js and draws every plot, in the reader's colours, and again when these change or the page is printed.
// Says below a table or a plot that is wider than the page that it can be scrolled.
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

  // plotly's own labels between powers of ten are bare digits: "2" for 0.02
  const LEAST_PLAIN = 1e-3, MOST_PLAIN = 1e5, MOST_TICKS = 8;
  const labelled = (tick) => tick >= LEAST_PLAIN && tick < MOST_PLAIN
    ? tick.toLocaleString("en", { maximumSignificantDigits: 1 }) : tick.toExponential(0).replace("e+", "e");
  const logTicks = (values, wide) => {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return {};
    const [low, high] = [Math.min(...positive), Math.max(...positive)].map(Math.log10);
    const span = high - low, within = span < (wide ? 3 : 1) ? [1, 2, 5] : wide || span > 2 ? [1] : [1, 3];
    const every = Math.max(1, Math.ceil(span / MOST_TICKS));
    const ticks = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power += every) {
      for (const times of within) ticks.push(times * 10 ** power);
    }
    return { tickmode: "array", tickvals: ticks, ticktext: ticks.map(labelled) };
  };
  const along = (name, traces) => traces
    .filter((trace) => (trace[name[0] + "axis"] || name[0]) === name.replace("axis", ""))
    .flatMap((trace) => trace[name[0]]);

  const axis = (name, given, traces, c) => ({ gridcolor: c.grid, zerolinecolor: c.grid, linecolor: c.grid, automargin: true,
    ...(given && given.type === "log" ? { ...logTicks(along(name, traces), !given.domain), ticks: "outside", tickcolor: c.grid,
      minor: { ticks: "outside", ticklen: 3, tickcolor: c.grid, dtick: "D1" } } : {}),
    ...(given && given.type === "category" ? { tickmode: "linear", dtick: 1 } : {}), // no name is left out
    ...given });

  const layoutOf = (given, traces, c, printing) => {
    const small = narrow.matches && !printing;
    const layout = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: c.way,
      font: { color: c.ink, size: small ? 10 : 12, family: "system-ui, sans-serif" },
      // wide enough for ticks of four figures: if these widen it, a legend wraps elsewhere, and ticks change again, without end
      margin: { l: small ? 58 : 64, r: small ? 8 : 24, t: 16, b: 60 }, hovermode: "closest",
      legend: { orientation: "h", y: -0.24, yanchor: "top" }, ...given };
    for (const name of new Set(["xaxis", "yaxis", ...Object.keys(given).filter((key) => /^[xy]axis/.test(key))])) {
      layout[name] = axis(name, given[name], traces, c);
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
      Plotly.react(place, traces, layoutOf(given.layout, traces, c, printing), { responsive: true, displaylogo: false });
    }
  };

  const unpacked = async () => {
    const packed = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };

  const hint = () => {
    for (const scroll of document.querySelectorAll(".scroll")) {
      scroll.classList.toggle("wider", scroll.scrollWidth > scroll.clientWidth + 1);
    }
  };

  hint();
  addEventListener("resize", hint);
  addEventListener("toggle", hint, true); // what was closed has a width now
  unpacked().then(() => {
    draw(paper.matches);
    hint();
    dark.addEventListener("change", () => draw(false));
    narrow.addEventListener("change", () => draw(paper.matches));
    paper.addEventListener("change", () => draw(paper.matches));
    addEventListener("beforeprint", () => draw(true));
    addEventListener("afterprint", () => draw(false));
  }, () => document.body.prepend("This browser can't unpack the plots: they need one of 2023 or later. Tables are whole."));
})();
