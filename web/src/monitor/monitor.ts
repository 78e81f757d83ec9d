// What the server does, once a second.

import { el, setText } from '../dom';
import { bytes, count, percent, rate, seconds } from '../format';
import * as parts from './parts';
import { Plot } from './plot';
import type { MonitorState } from './state';

const window = 300; // seconds of the curves
const steady = 10; // the figures above the curves are means over so many seconds

// Made anew only when its data changes, so that a selection in it lasts.
class Card {
  readonly node: HTMLElement;
  private readonly body = el('div');
  private shown = '';

  constructor(
    title: string,
    size: string,
    private readonly data: (state: MonitorState) => unknown,
    private readonly make: (state: MonitorState) => Node[],
  ) {
    this.node = el('section', { class: `card ${size}` }, el('h3', {}, title), this.body);
  }

  update(state: MonitorState): void {
    const shown = JSON.stringify(this.data(state)) ?? '';
    if (shown === this.shown) return;
    this.shown = shown;
    this.body.replaceChildren(...this.make(state));
  }
}

class Tile {
  readonly node: HTMLElement;
  private readonly value = el('b');
  private readonly under = el('small');

  constructor(name: string) {
    this.node = el('div', { class: 'tile' }, el('span', {}, name), this.value, this.under);
  }

  show(value: string, under: string, bad = false): void {
    setText(this.value, value);
    setText(this.under, under);
    this.node.classList.toggle('bad', bad);
  }
}

export class Monitor {
  readonly node: HTMLElement;
  private readonly message = el('p', { class: 'message', attrs: { role: 'status' } });
  private readonly content: HTMLElement;
  private readonly about = el('p', { class: 'about' });
  private readonly tiles = {
    prompt: new Tile('Prompt'),
    output: new Tile('Output'),
    requests: new Tile('Requests'),
    cache: new Tile('Cache hits'),
    drafts: new Tile('Drafts accepted'),
    trouble: new Tile('Failed'),
  };
  private readonly plots = {
    prompt: new Plot({ title: 'Prompt rate', unit: 'tokens a second', format: rate, seconds: window, least: 10 }),
    output: new Plot({ title: 'Output rate', unit: 'tokens a second', format: rate, seconds: window, least: 10 }),
    requests: new Plot({ title: 'Requests', unit: 'requests', format: count, seconds: window, least: 4 }),
  };
  private readonly cards = [
    new Card('Slots', 'wide', (state) => state.slots, (state) => parts.slots(state.slots ?? [])),
    new Card('Last request', 'wide', (state) => state.last, (state) => parts.last(state.last ?? null)),
    new Card('Context and cache', '', (state) => [state.slots, state.queue, state.cache], parts.cache),
    new Card('Draft acceptance by position', '', (state) => state.drafts, parts.drafts),
    new Card('Memory', '', (state) => state.memory, parts.memory),
    new Card('Arms that ran, and their evidence', 'full', (state) => state.arms, (state) => parts.arms(state.arms ?? [])),
  ];

  constructor() {
    this.content = el(
      'div',
      { class: 'content' },
      this.about,
      el('div', { class: 'tiles' }, ...Object.values(this.tiles).map((tile) => tile.node)),
      el('div', { class: 'cards' }, ...Object.values(this.plots).map((plot) => plot.node), ...this.cards.map((card) => card.node)),
    );
    this.content.hidden = true;
    this.node = el('section', { class: 'monitor', attrs: { 'aria-label': 'Monitor', tabindex: -1 } }, this.message, this.content);
  }

  fail(text: string): void {
    this.say(text);
    this.content.classList.add('old');
  }

  update(state: MonitorState): void {
    this.content.classList.remove('old');
    if (!state.limits || !state.rates) return this.say(state.status === 'failed' ? 'The model could not be loaded.' : `Loading ${state.model.name} …`);
    this.say(state.status === 'stopping' ? 'The server is stopping.' : '');
    this.content.hidden = false;
    const { prompt, output, running, waiting, step_s: step } = state.rates;
    this.plots.prompt.update([{ name: 'tokens/s', color: 'prompt', values: prompt }], step);
    this.plots.output.update([{ name: 'tokens/s', color: 'output', values: output }], step);
    this.plots.requests.update(
      [
        { name: 'running', color: 'context', values: running },
        { name: 'waiting', color: 'queue', values: waiting },
      ],
      step,
    );
    for (const card of this.cards) card.update(state);
    this.showTiles(state);
    this.showModel(state);
  }

  private say(text: string): void {
    this.message.hidden = text === '';
    setText(this.message, text);
  }

  private showTiles(state: MonitorState): void {
    const { tiles } = this;
    const counts = state.counts;
    const mean = (values: number[]) => {
      const recent = values.slice(-steady);
      return recent.length === 0 ? 0 : recent.reduce((sum, value) => sum + value, 0) / recent.length;
    };
    tiles.prompt.show(`${rate(mean(state.rates!.prompt))} tok/s`, `${count(counts?.prompt_tokens ?? 0)} tokens in all`);
    tiles.output.show(`${rate(mean(state.rates!.output))} tok/s`, `${count(counts?.output_tokens ?? 0)} tokens in all`);
    const busy = (state.slots ?? []).filter((slot) => slot.state !== 'idle').length;
    tiles.requests.show(`${busy} of ${state.limits!.slots}`, `${count(state.queue?.waiting ?? 0)} waiting, ${count(counts?.finished ?? 0)} finished`);
    tiles.cache.show(percent(state.cache?.hit_tokens ?? 0, state.cache?.queried_tokens ?? 0) || '–', 'of prompt tokens');
    tiles.drafts.show(percent(state.drafts?.accepted ?? 0, state.drafts?.tokens ?? 0) || '–', 'of draft tokens');
    const broken = counts?.broken_logits ?? 0;
    const failed = counts?.failed ?? 0;
    const more = broken > 0 ? `${count(broken)} with broken logits` : `${count(counts?.cancelled ?? 0)} cancelled, ${count(counts?.refused ?? 0)} refused`;
    tiles.trouble.show(count(failed), more, failed > 0 || broken > 0);
  }

  private showModel({ model, uptime_s: uptime, limits }: MonitorState): void {
    const facts = [
      model.name,
      model.description,
      model.file_bytes === undefined ? '' : bytes(model.file_bytes),
      model.device === undefined ? '' : `${model.device}${model.threads ? `, ${model.threads} threads` : ''}`,
      `context ${count(limits!.context)}`,
      `up ${seconds(uptime)}`,
    ];
    setText(this.about, facts.filter(Boolean).join(' · '));
  }
}
