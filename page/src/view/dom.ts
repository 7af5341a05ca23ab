/** Building the document by nodes: titles are data, and never become markup. */

type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: never) => void)>>;

/** An element; `on…` attributes are listeners, true and false set or leave out an attribute. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key.slice(2).toLowerCase(), value as EventListener);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  append(made, children);
  return made;
}

export function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) if (child) parent.append(child);
}

const SVG = "http://www.w3.org/2000/svg";

/** A drawing made of paths in a 24 × 24 square, for the eye alone. */
export function icon(name: keyof typeof ICONS, kind = "icon"): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", kind);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

const ICONS = {
  like: "M3 11h4v9H3zM9 20h8.500l3-6.500V10H14V4.500L12.500 3 9 10.500z",
  dislike: "M3 4h4v9H3zM9 4h8.500l3 6.500V14H14v5.500L12.500 21 9 13.500z",
  star: "M12 2.6l2.9 5.9 6.5.9-4.700 4.600 1.100 6.500-5.800-3.100-5.800 3.100 1.100-6.500L2.600 9.400l6.500-.9z",
  eye: "M12 5C6.500 5 2.700 9.600 1.500 12c1.200 2.400 5 7 10.500 7s9.300-4.600 10.500-7C21.300 9.600 17.500 5 12 5zm0 11.500a4.500 4.500 0 110-9 4.500 4.500 0 010 9zm0-2.200a2.300 2.300 0 100-4.600 2.300 2.300 0 000 4.600z",
  hide: "M18.300 4.300L12 10.600 5.700 4.300 4.300 5.700l6.300 6.300-6.300 6.300 1.400 1.400 6.300-6.300 6.300 6.300 1.400-1.400-6.300-6.300 6.300-6.300z",
  search: "M10 3a7 7 0 105.200 11.700l.3.300 5 5 1.500-1.500-5-5-.3-.3A7 7 0 0010 3zm0 2.200a4.800 4.800 0 110 9.600 4.800 4.800 0 010-9.600z",
  lock: "M12 2a5 5 0 00-5 5v3H5v11h14V10h-2V7a5 5 0 00-5-5zm-2.800 8V7a2.800 2.800 0 015.600 0v3z",
  check: "M9.500 17.600L4.300 12.400l1.500-1.500 3.700 3.700 8.700-8.700 1.500 1.500z",
} as const;
