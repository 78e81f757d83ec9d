// Curves over time, drawn at the size they have on the page.

import { el, set, setText, svg } from '../dom';

export interface Series {
  name: string;
  color: string; // class of the style sheet
  values: number[]; // the newest last
}

export interface PlotOptions {
  title: string;
  unit: string;
  format(value: number): string;
  seconds: number; // of the whole width
  least: number; // the top of the axis is never lower
}

const height = 150;
const margin = { left: 46, right: 10, top: 10, bottom: 22 };

export class Plot {
  readonly node: HTMLElement;
  private readonly canvas = svg('svg', { class: 'plot', attrs: { role: 'img', height } });
  private readonly grid = svg('g', { class: 'axis' });
  private readonly curves = svg('g');
  private readonly cursor = svg('line', { class: 'cursor', attrs: { y1: margin.top, y2: height - margin.bottom } });
  private readonly legend = el('p', { class: 'legend' });
  private series: Series[] = [];
  private step = 1;
  private width = 320;
  private pointed: number | null = null; // pixel of the pointer

  constructor(private readonly options: PlotOptions) {
    this.canvas.append(this.grid, this.curves, this.cursor);
    this.canvas.addEventListener('pointermove', (event) => this.point(event.offsetX));
    this.canvas.addEventListener('pointerleave', () => this.point(null));
    this.node = el('section', { class: 'card' }, el('h3', {}, options.title), this.legend, this.canvas);
    new ResizeObserver(() => this.resize()).observe(this.node);
  }

  update(series: Series[], step: number): void {
    this.series = series;
    this.step = step;
    this.draw();
  }

  private resize(): void {
    const width = Math.max(160, Math.floor(this.canvas.getBoundingClientRect().width));
    if (width === this.width) return;
    this.width = width;
    this.draw();
  }

  private point(x: number | null): void {
    this.pointed = x;
    this.drawCursor();
  }

  // Pixel of the second `age` before now.
  private x(age: number): number {
    const room = this.width - margin.left - margin.right;
    return margin.left + room * (1 - age / this.options.seconds);
  }

  private draw(): void {
    const top = niceTop(Math.max(this.options.least, ...this.series.flatMap((one) => one.values)));
    const y = (value: number) => margin.top + (height - margin.top - margin.bottom) * (1 - value / top);
    set(this.canvas, { viewBox: `0 0 ${this.width} ${height}` });
    this.drawAxes(top, y);
    this.curves.replaceChildren(...this.series.flatMap((one) => this.curve(one, y)));
    const words = this.series.map((one) => {
      const now = one.values.at(-1) ?? 0;
      return `${one.name}: ${this.options.format(now)} now, at most ${this.options.format(Math.max(0, ...one.values))}`;
    });
    set(this.canvas, { 'aria-label': `${this.options.title} in ${this.options.unit}. ${words.join('; ')}` });
    this.drawCursor();
  }

  private drawAxes(top: number, y: (value: number) => number): void {
    const right = this.width - margin.right;
    const nodes: SVGElement[] = [];
    for (const value of [0, top / 2, top]) {
      nodes.push(
        svg('line', { attrs: { x1: margin.left, x2: right, y1: y(value), y2: y(value) } }),
        svg('text', { attrs: { x: margin.left - 8, y: y(value) + 4, 'text-anchor': 'end' } }, value.toLocaleString('en-US')),
      );
    }
    const minutes = this.options.seconds / 60;
    for (let minute = 0; minute <= minutes; ++minute) {
      const anchor = minute === 0 ? 'end' : minute === minutes ? 'start' : 'middle';
      const label = minute === 0 ? 'now' : `${minute} min`;
      nodes.push(svg('text', { attrs: { x: this.x(60 * minute), y: height - 5, 'text-anchor': anchor } }, label));
    }
    this.grid.replaceChildren(...nodes);
  }

  private curve(series: Series, y: (value: number) => number): SVGElement[] {
    const points = series.values
      .slice(-Math.ceil(this.options.seconds / this.step))
      .map((value, i, all) => `${this.x((all.length - 1 - i) * this.step).toFixed(1)} ${y(value).toFixed(1)}`);
    if (points.length === 0) return [];
    const line = `M${points.join('L')}`;
    const [first, last] = [points[0]!.split(' ')[0], points.at(-1)!.split(' ')[0]];
    return [
      svg('path', { class: `area ${series.color}`, attrs: { d: `${line}L${last} ${y(0)}L${first} ${y(0)}Z` } }),
      svg('path', { class: `line ${series.color}`, attrs: { d: line } }),
    ];
  }

  // The legend shows the newest values, or those under the pointer.
  private drawCursor(): void {
    const room = this.width - margin.left - margin.right;
    const part = this.pointed === null ? 1 : Math.min(1, Math.max(0, (this.pointed - margin.left) / room));
    const steps = Math.round(((1 - part) * this.options.seconds) / this.step);
    set(this.cursor, { x1: this.x(steps * this.step), x2: this.x(steps * this.step), visibility: this.pointed === null ? 'hidden' : 'visible' });
    const entries = this.series.map((one) => {
      const value = one.values[one.values.length - 1 - steps];
      return [one, value === undefined ? '–' : this.options.format(value)] as const;
    });
    while (this.legend.childNodes.length !== entries.length) {
      if (this.legend.childNodes.length > entries.length) this.legend.lastChild!.remove();
      else this.legend.append(el('span', {}, el('b'), el('small')));
    }
    entries.forEach(([one, value], i) => {
      const entry = this.legend.children[i]!;
      entry.className = `entry ${one.color}`;
      setText(entry.children[0]!, value);
      setText(entry.children[1]!, `${one.name}${this.pointed === null ? '' : `, ${steps * this.step} s ago`}`);
    });
  }
}

// A round number at or above the value, whose half is round too.
export function niceTop(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 4, 6, 8, 10]) if (value <= factor * power) return factor * power;
  return 10 * power;
}
