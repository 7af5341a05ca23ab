// kept for this tab, so that it can be loaded again, and out of the address, which people copy and histories keep
if (location.hash.length > 1) sessionStorage.setItem("token", new URLSearchParams(location.hash.slice(1)).get("token"));
history.replaceState(null, "", location.pathname);
const headers = { "X-Device-Token": sessionStorage.getItem("token") };
const at = (id) => document.getElementById(id);
const cell = (row, text, kind = "td") => { row.append(Object.assign(document.createElement(kind), { textContent: text })); };
function table(id, headings, rows) {
  const body = at(id); body.replaceChildren();
  for (const [line, kind] of [[headings, "th"], ...rows.map((one) => [one, "td"])]) {
    const row = body.insertRow(); line.forEach((text) => cell(row, text, kind));
  }
  if (!rows.length) body.replaceChildren(Object.assign(document.createElement("caption"), { textContent: "none" }));
}
function draw(id, values) {
  const svg = at(id); svg.replaceChildren();
  if (values.length < 2) return;
  const low = Math.min(...values), high = Math.max(...values), line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", values.map((value, n) => `${(600 * n) / (values.length - 1)},${95 - (90 * (value - low)) / (high - low || 1)}`).join(" "));
  svg.append(line);
}
async function show() {
  try {
    const reply = await fetch("/state", { headers });
    if (reply.status === 401) { at("headline").textContent = "open the whole address that `server page` printed"; return; }
    const state = await reply.json();
    at("headline").textContent = state.run ? `${state.run}: ${state.phase}, round ${state.round}` : "no run yet";
    const figures = state.run ? {
      "nodes in the last round": state.cohort, "seconds of it": state.last_seconds.toFixed(1), "loss": state.rmse?.toFixed(4) ?? "–",
      "uploads": state.uploads, "lost on the way": state.dropouts,
      "MB up": (state.bytes_up / 1e6).toFixed(1), "odd items": state.odd_items,
      "budget spent": state.budget ? `ε ${state.budget.spent.toFixed(2)} of ${state.budget.allowed}` : "none set",
    } : {};
    at("figures").replaceChildren(...Object.entries(figures).flatMap(([name, value]) => [
      Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }),
    ]).reduce((pairs, part, n) => { if (n % 2 === 0) pairs.push(document.createElement("div")); pairs.at(-1).append(part); return pairs; }, []));
    if (state.run) {
      draw("seconds", state.rounds.map((one) => one.seconds));
      draw("loss", state.rounds.map((one) => one.rmse).filter((one) => one !== null));
      table("slow", ["node", "seconds"], state.slowest.map(([node, seconds]) => [node, seconds.toFixed(1)]));
      table("refused", ["why", "answers"], Object.entries(state.refused));
    }
    at("findings").replaceChildren(...state.findings.map((one) => Object.assign(document.createElement("li"), {
      className: one.good ? "good" : "wrong", textContent: one.remedy ? `${one.what} → ${one.remedy}` : one.what,
    })));
  } catch (error) { at("headline").textContent = "the page's server is gone"; }
}
show(); setInterval(show, 3000);
