/** What the server asks, in words; the person's consent, and how to leave again. */
import type { BrowserDevice } from "../device/device";
import type { Invitation } from "../device/invitation";
import type { DeviceCode } from "../joining";
import type { Catalogue } from "../wire/catalogue";
import type { Request } from "../wire/request";
import { element } from "./dom";
import { t } from "./texts";

export interface Asked {
  readonly device: BrowserDevice;
  readonly offer: Request;
  readonly catalogue: Catalogue;
  readonly invitation: Invitation | null;
  readonly code: DeviceCode;
  readonly server: string;
  readonly fail: (error: unknown) => void;
}

type Event = { readonly problem?: string; readonly answered?: unknown };
const KILO = 1000;
const SHOWN = 5;

export function takePartPanel(asked: Asked, listen: (tell: (event: Event) => void) => void): HTMLElement {
  const { device } = asked;
  const said = element("p", { role: "status", class: "quiet", id: "part-said" });
  const spent = element("p", { class: "quiet" });
  const added = element("p", { class: "quiet", id: "part-added" });
  const agree = element("input", { type: "checkbox", id: "agree" });
  const agreement = element("label", { class: "agree", for: "agree", hidden: !isDemonstration(asked) }, agree, element("span", {}, t("part.demonstration")));
  const begin = element("button", { type: "button", class: "primary", id: "take-part" }, t("part.begin"));
  const leave = element("button", { type: "button", id: "leave", hidden: true }, t("part.leave"));

  const show = async (): Promise<void> => {
    const [joined, consent] = [await device.joined(), Boolean(await device.keeping.fact("consent"))];
    const refusal = await refusalOf(asked, agree.checked || !isDemonstration(asked));
    begin.hidden = consent;
    leave.hidden = !consent;
    agreement.hidden = consent || !isDemonstration(asked);
    begin.disabled = refusal !== "" || (!joined && !asked.invitation) || (isDemonstration(asked) && !agree.checked);
    if (!consent && refusal) said.textContent = t("part.refused", { why: refusal });
    else if (!consent && !joined && !asked.invitation) said.textContent = t("part.no-invitation");
    else if (!consent) said.textContent = "";
    const titles = (await device.keeping.fact<string[]>("added")) ?? [];
    added.textContent = titles.length ? t("part.added", { count: titles.length, titles: titles.slice(-SHOWN).join(", ") }) : "";
    spent.textContent = t("part.spent", { spent: rounded(await device.keeping.spent()), most: (await device.keeping.policy()).lifetimeEpsilon });
  };
  const start = async (): Promise<void> => {
    begin.disabled = true;
    said.textContent = t("part.joining");
    if (!(await device.joined())) await device.join(asked.invitation!.code);
    if (isDemonstration(asked)) await device.keeping.setFact("policy", { demonstration: true });
    await device.keeping.setFact("tasks", [...(await device.keeping.tasks()), asked.offer.task.digest]);
    await device.keeping.setFact("consent", true);
    said.textContent = t("part.waiting");
    await show();
    void device.takePart();
  };
  begin.addEventListener("click", () => void start().catch((error: Error) => (said.textContent = t("part.failed", { why: error.message }), show())));
  leave.addEventListener("click", () => void device.leave().then(() => (said.textContent = t("part.left"), show())).catch(asked.fail));
  agree.addEventListener("change", () => void show().catch(asked.fail));
  listen((event) => {
    said.textContent = event.problem ? t("part.trouble", { why: event.problem }) : t("part.answered");
    document.body.dataset["answered"] = String(1 + Number(document.body.dataset["answered"] ?? 0));
    void show().catch(() => undefined);
  });
  void device.keeping.fact("consent").then(async (consent) => {
    await show();
    if (consent) {
      said.textContent = t("part.waiting");
      void device.takePart();
    }
  }).catch(asked.fail);
  return element(
    "section",
    { class: "panel part", id: "part", "aria-labelledby": "part-title" },
    element("h2", { id: "part-title", tabindex: "-1" }, t("part.title")),
    element("ul", { class: "asked" }, ...wordsOf(asked).map((words) => element("li", {}, words))),
    agreement,
    element("div", { class: "buttons" }, begin, leave),
    said,
    added,
    spent,
  );
}

function isDemonstration({ code, offer }: Asked): boolean {
  return code.section(offer.config, "channel").values["demonstration"] === true;
}

/** Why this page would refuse, in words; empty where it would not. */
async function refusalOf({ code, offer, catalogue, device, invitation }: Asked, agreed: boolean): Promise<string> {
  try {
    const policy = await device.keeping.policy();
    if (invitation?.task && invitation.task !== offer.task.digest) return t("part.other-task");
    code.checkOffer(offer, catalogue, { ...policy, demonstration: policy.demonstration || agreed });
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What is asked, what leaves and what it costs. */
function wordsOf({ code, offer, catalogue, server }: Asked): string[] {
  const { config } = offer;
  const terms = code.termsOf(config, catalogue, 0, offer.tables["V"]!.shape[1]!);
  const { layout } = terms;
  const bytes = (layout.items * layout.columns * layout.bits) / 8;
  const least = Math.max(code.number(code.section(config, "channel"), "least_cohort"), code.leastPersonsOf(terms));
  const { task } = offer;
  const [{ epsilon }, counted] = [code.askedBudget(config, 0), code.askedBudget(config, -1).epsilon];
  const sharing = code.section(config, "privacy").values["devices"] as number;
  const own = new URL(server).origin === location.origin;
  const asked: [boolean, string][] = [
    [true, t("part.rounds", { rounds: task.rounds, kilobytes: Math.round(bytes / KILO), least })],
    [true, t("part.public")],
    [true, epsilon ? t("part.noise", { epsilon: rounded(epsilon), devices: sharing, honest: percent(code.section(config, "privacy").values["honest"] as number) }) : t("part.no-noise")],
    [!epsilon && task.first < 0, t("part.counted", { epsilon: rounded(counted) })],
    [true, t(own ? "part.from-server" : "part.from-elsewhere", { server: new URL(server).host })],
    [task.first > 0, t("part.begun")],
    [task.kept < task.rounds, t("part.kept", { kept: task.kept })],
    [!task.log, t("part.no-log")],
    [task.growth > 0, t("part.growth", { most: Math.floor(task.growth * task.size + 1e-9) })],
    [true, t("part.keeps")],
  ];
  return asked.flatMap(([holds, words]) => (holds ? [words] : []));
}

function percent(share: number): string {
  return share.toLocaleString(document.documentElement.lang, { style: "percent" });
}

function rounded(value: number): string {
  return value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 2 });
}
