/** The page: load, show, and from then on ask the network for nothing. */
import { foldIn, readModel, scores } from "./engine.js";
import type { LeavesFacts } from "./attack/leaves";
import type { ModelFacts } from "./engine/format";
import { Context } from "./context";
import { Items, type ItemFacts } from "./items";
import { join, server } from "./joining";
import { State } from "./state";
import { DeviceStore } from "./store/device";
import { IndexedDbStore } from "./store/indexed_db";
import { dataPanel } from "./view/data";
import { devicePanel } from "./view/device";
import { element, icon } from "./view/dom";
import { leavesPanel } from "./view/leaves";
import { listPanel } from "./view/list";
import { followHash, navigation } from "./view/navigation";
import { ratePanel } from "./view/rate";
import { t, useTexts, type Texts } from "./view/texts";
import { toast } from "./view/toast";

/** The device that this page is of; null on a static site. */
const device = DeviceStore.here();

async function fetched(name: string): Promise<Response> {
  const response = await (device ? device.fetch(name) : fetch(name));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response;
}

async function binary(name: string): Promise<ArrayBuffer> {
  return (await fetched(name)).arrayBuffer();
}

async function json<T>(name: string): Promise<T> {
  return (await (await fetched(name)).json()) as T;
}

async function start(): Promise<void> {
  if (server) return startOn(server);
  const parts = [json<Texts>("texts.json"), json<ModelFacts>("model.json"), json<ItemFacts>("items.json")] as const;
  const bytes = binary("model.bin");
  const leaves = [json<LeavesFacts>("leaves.json"), binary("leaves.bin")] as const;
  useTexts(await parts[0], device ? "on-device." : "");
  const model = readModel(await parts[1], await bytes);
  const items = new Items(await parts[2], model.known.years, (id) => t("untitled", { id }));
  const state = new State(device ?? new IndexedDbStore(`fedrecplus:${model.facts.dataset}`), items.facts.ids, fail);
  await state.load();
  const context = new Context(model, items, state);
  const main = show(context);
  setTimeout(() => warmUp(context));
  main.append(leavesPanel(context, await leaves[0], await leaves[1]));
  document.body.dataset["ready"] = "";
  if (!device && "serviceWorker" in navigator) void navigator.serviceWorker.register("offline.js");
}

/** The page of a server, on which this browser is a device. */
async function startOn(at: string): Promise<void> {
  useTexts(await json<Texts>("texts.json"), "on-server.");
  const { context, panels } = await join(at, fail);
  show(context).append(...panels);
  setTimeout(() => warmUp(context));
  document.body.dataset["ready"] = "";
}

function show(context: Context): HTMLElement {
  document.title = t("page.title");
  followHash();
  const main = element("main", {}, ratePanel(context), listPanel(context), dataPanel(context));
  if (device) main.append(devicePanel(device.device, fail));
  document.body.append(header(), main, toast(context.state));
  return main;
}

/** What a first rating would have to wait for: sums over the whole table, which later ones share. */
function warmUp(context: Context): void {
  const { low, high } = context.scale;
  for (let time = 0; time < 3; time++) scores(foldIn(context.model, new Map([[time, (low + high) / 2]])), "list");
  document.body.dataset["warm"] = "";
}

function header(): HTMLElement {
  return element(
    "header",
    { class: "top" },
    element("h1", {}, t("page.name")),
    element("p", { class: "promise" }, icon("lock"), t("page.promise")),
    navigation(),
  );
}

function fail(error: unknown): void {
  const problem = error instanceof Error ? error.message : String(error);
  document.body.append(element("p", { class: "failed", role: "alert" }, problem));
}

start().catch(fail);
