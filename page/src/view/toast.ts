/** The line that says what was done, and takes it back. */
import type { State } from "../state";
import { element } from "./dom";
import { t } from "./texts";

const SHOWN_FOR = 8000;

export function toast(state: State): HTMLElement {
  const text = element("span", { role: "status" });
  const undo = element("button", { type: "button", onclick: () => state.undo() }, t("undo"));
  const node = element("div", { class: "toast", hidden: true }, text, undo);
  let timer = 0;
  const hide = (): void => {
    node.hidden = true;
  };
  state.onChange((step) => {
    clearTimeout(timer);
    node.hidden = step === null;
    text.textContent = step?.text ?? t("undone");
    if (step) timer = setTimeout(hide, SHOWN_FOR) as unknown as number;
  });
  let changes = 0;
  state.onChange(() => {
    const mine = ++changes; // marked until it is on the disk
    document.body.toggleAttribute("data-saving", true);
    void state.saved().then(() => mine === changes && document.body.removeAttribute("data-saving"));
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "range";
    if (event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing) {
      event.preventDefault();
      state.undo();
    }
  });
  return node;
}
