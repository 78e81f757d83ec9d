// The panel of settings. What is typed holds at once; what cannot hold is marked and not taken.

import { el, iconButton, set } from '../dom';
import { icons } from '../icons';
import { efforts, inRange, noSettings, numberFields, type ChatSettings, type NumberField } from './settings';

export type Defaults = Record<string, unknown>; // of the server, by the name in the request

export class SettingsPanel {
  readonly node = el('dialog', { class: 'panel', attrs: { 'aria-labelledby': 'settings-title' } });

  private thinks = true; // the model has a switch for it

  constructor(
    private settings: ChatSettings,
    private readonly changed: (settings: ChatSettings) => void,
  ) {
    // A click beside the panel closes it.
    this.node.addEventListener('click', (event) => event.target === this.node && this.node.close());
  }

  open(defaults: Defaults, thinks: boolean): void {
    this.thinks = thinks;
    this.fill(defaults);
    this.node.showModal();
  }

  private fill(defaults: Defaults): void {
    const { settings } = this;
    const system = el('textarea', { attrs: { id: 'system', rows: 5, placeholder: 'None' } });
    system.value = settings.system;
    system.addEventListener('input', () => this.change({ system: system.value }));
    const stop = el('textarea', { attrs: { id: 'stop', rows: 2, placeholder: 'None' } });
    stop.value = settings.stop.join('\n');
    stop.addEventListener('input', () => this.change({ stop: stop.value.split('\n').filter((line) => line !== '') }));
    this.node.replaceChildren(
      el(
        'div',
        { class: 'content' },
        el('header', {}, el('h2', { attrs: { id: 'settings-title' } }, 'Settings'), iconButton(icons.close, 'Close', () => this.node.close())),
        field('system', 'System prompt', 'before every chat, from the next message on', system),
        ...(this.thinks ? this.thinking() : []),
        el('h3', {}, 'Sampling'),
        el('p', { class: 'help' }, 'Empty: the default of the server.'),
        el('div', { class: 'grid' }, ...numberFields.map((one) => this.number(one, defaults[one.name]))),
        field('stop', 'Stop strings', 'one a line', stop),
        el('button', { attrs: { type: 'button' }, on: { click: () => this.reset(defaults) } }, 'Back to the defaults'),
      ),
    );
  }

  private thinking(): HTMLElement[] {
    const { thinking, effort } = this.settings;
    return [
      this.choice('thinking', 'Thinking', ['', 'on', 'off'], thinking, (value) => this.change({ thinking: value as ChatSettings['thinking'] })),
      this.choice('effort', 'Thinking effort', ['', ...efforts], effort, (value) => this.change({ effort: value })),
    ];
  }

  private change(part: Partial<ChatSettings>): void {
    this.settings = { ...this.settings, ...part };
    this.changed(this.settings);
  }

  private reset(defaults: Defaults): void {
    this.change(noSettings());
    this.fill(defaults);
    this.node.querySelector('button')!.focus();
  }

  private choice(id: string, label: string, values: string[], value: string, take: (value: string) => void): HTMLElement {
    const select = el('select', { attrs: { id } }, ...values.map((one) => el('option', { attrs: { value: one } }, one || 'As the model does by itself')));
    select.value = value;
    select.addEventListener('change', () => take(select.value));
    return field(id, label, '', select);
  }

  private number(one: NumberField, standard: unknown): HTMLElement {
    const placeholder = typeof standard === 'number' && inRange(one, standard) ? String(Math.round(standard * 1e4) / 1e4) : '';
    const input = el('input', {
      attrs: { id: one.name, type: 'number', min: one.min, max: one.max, step: one.step, placeholder, inputmode: 'decimal' },
    });
    const value = this.settings.numbers[one.name];
    if (value !== undefined) input.value = String(value);
    const node = field(one.name, one.label, one.help, input);
    const help = node.querySelector('.help')!;
    input.addEventListener('input', () => {
      const { [one.name]: _, ...rest } = this.settings.numbers;
      const empty = input.value === '' && !input.validity.badInput;
      const good = empty || (!input.validity.badInput && inRange(one, input.valueAsNumber));
      set(input, { 'aria-invalid': !good || undefined });
      help.textContent = good ? one.help : `${one.step === 1 ? 'a whole number, ' : ''}${one.min} to ${one.max}`;
      this.change({ numbers: good && !empty ? { ...rest, [one.name]: input.valueAsNumber } : rest });
    });
    return node;
  }
}

function field(id: string, label: string, help: string, input: HTMLElement): HTMLElement {
  if (help) set(input, { 'aria-describedby': `${id}-help` });
  return el(
    'div',
    { class: 'field' },
    el('label', { attrs: { for: id } }, label),
    input,
    help ? el('span', { class: 'help', attrs: { id: `${id}-help` } }, help) : null,
  );
}
