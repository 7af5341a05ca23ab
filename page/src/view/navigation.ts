/** Which part of the page is shown: the address's hash says it, so that the back button works. */
import { element } from "./dom";
import { t } from "./texts";

const VIEWS = ["rate", "list", "leaves"];
/** What only the page of a server has. */
const OF_SERVERS = "part";
const views = (): string[] => ("server" in document.documentElement.dataset ? [...VIEWS, OF_SERVERS] : VIEWS);

function viewOf(hash: string): string {
  const name = hash.slice(1);
  return views().includes(name) ? name : "list";
}

/** The links; a narrow screen shows one part at a time, a wide one has rating and list side by side. */
export function navigation(): HTMLElement {
  const links = views().map((view) => element("a", { href: `#${view}`, "data-view": view }, t(`nav.${view}`)));
  const mark = (): void => {
    const current = viewOf(location.hash);
    links.forEach((link) => {
      if (link.dataset["view"] === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  };
  window.addEventListener("hashchange", mark);
  mark();
  return element("nav", { class: "tabs", "aria-label": t("nav.label") }, ...links);
}

/** Keep the body's view in step with the hash. */
export function followHash(): void {
  const follow = (): void => {
    document.body.dataset["view"] = viewOf(location.hash);
    window.scrollTo(0, 0);
  };
  window.addEventListener("hashchange", follow);
  follow();
}
