// Makes elements. Text enters the page through textContent alone, so nothing that a model writes becomes markup.

type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Props {
  class?: string;
  attrs?: Record<string, string | number | boolean | undefined>;
  on?: Handlers;
}

function dress(node: Element, props: Props, children: Child[]): void {
  if (props.class) node.setAttribute('class', props.class);
  set(node, props.attrs ?? {});
  for (const [type, handler] of Object.entries(props.on ?? {})) node.addEventListener(type, handler as EventListener);
  for (const child of children) if (child) node.append(child);
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  dress(node, props, children);
  return node;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  dress(node, props, children);
  return node;
}

// true: the bare attribute; false and undefined: none.
export function set(node: Element, attrs: Record<string, string | number | boolean | undefined>): void {
  for (const [name, value] of Object.entries(attrs)) {
    if (value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
}

export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

// A button with a symbol of icons.ts and a name for those who do not see it.
export function iconButton(paths: string, name: string, onClick: () => void): HTMLButtonElement {
  return el(
    'button',
    { class: 'icon', attrs: { type: 'button', title: name, 'aria-label': name }, on: { click: onClick } },
    icon(paths),
  );
}

export function icon(paths: string): SVGSVGElement {
  return svg(
    'svg',
    { class: 'symbol', attrs: { viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true' } },
    svg('path', { attrs: { d: paths } }),
  );
}
