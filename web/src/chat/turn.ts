// Shows one turn. A turn of the assistant may still be growing.

import { copyButton } from '../copy';
import { el, iconButton, set, setText } from '../dom';
import { count, milliseconds, percent, rate, seconds } from '../format';
import { icons } from '../icons';
import { MarkdownView } from '../markdown/render';
import type { Figures, Turn } from './conversation';

export interface TurnActions {
  again(): void;
  edit(turn: Turn, text: string): void;
}

export class UserTurn {
  readonly node: HTMLElement;
  private readonly text: HTMLElement;
  private readonly editButton: HTMLButtonElement;
  private readonly footer: HTMLElement;

  constructor(
    private readonly turn: Turn,
    private readonly actions: TurnActions,
  ) {
    this.text = el('div', { class: 'said' }, turn.content);
    this.editButton = iconButton(icons.edit, 'Edit this message', () => this.edit());
    this.footer = el('footer', {}, copyButton('Copy this message', () => turn.content), this.editButton);
    this.node = el('article', { class: 'turn user', attrs: { 'aria-label': 'You' } }, this.text, this.footer);
  }

  allowEdit(last: boolean): void {
    this.editButton.hidden = !last;
  }

  edit(): void {
    const field = el('textarea', { attrs: { 'aria-label': 'Edit the message', rows: Math.min(12, this.turn.content.split('\n').length + 1) } });
    field.value = this.turn.content;
    const close = () => {
      editor.replaceWith(this.text);
      this.footer.hidden = false;
      this.editButton.focus();
    };
    const send = () => {
      if (field.value.trim() !== '') this.actions.edit(this.turn, field.value);
    };
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') close();
      else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    const editor = el(
      'div',
      { class: 'editor' },
      field,
      el(
        'div',
        { class: 'buttons' },
        el('button', { attrs: { type: 'button' }, on: { click: close } }, 'Cancel'),
        el('button', { class: 'primary', attrs: { type: 'button' }, on: { click: send } }, 'Send'),
      ),
    );
    this.text.replaceWith(editor);
    this.footer.hidden = true;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }
}

export class AssistantTurn {
  readonly node: HTMLElement;
  private readonly content = new MarkdownView();
  private readonly thoughts = new MarkdownView();
  private readonly summary = el('summary');
  private readonly thinking: HTMLDetailsElement;
  private readonly bar = el('progress', { attrs: { max: 1, 'aria-label': 'Prompt read' } });
  private readonly waiting = el('div', { class: 'waiting' });
  private readonly waitingText = el('span');
  private readonly note = el('p', { class: 'note' });
  private readonly figures = el('span', { class: 'figures' });
  private readonly footer: HTMLElement;
  private readonly copy: HTMLButtonElement;
  private readonly againButton: HTMLButtonElement;

  constructor(
    readonly turn: Turn,
    actions: TurnActions,
  ) {
    this.copy = copyButton('Copy this answer', () => turn.content);
    this.thinking = el('details', { class: 'thinking' }, this.summary, this.thoughts.node);
    this.thinking.addEventListener('toggle', () => this.paint(!this.node.classList.contains('growing')));
    this.waiting.append(this.waitingText, this.bar);
    this.againButton = iconButton(icons.again, 'Answer again', actions.again);
    this.footer = el('footer', {}, this.copy, this.againButton, this.figures);
    this.node = el(
      'article',
      { class: 'turn assistant', attrs: { 'aria-label': 'Answer' } },
      this.thinking,
      this.waiting,
      this.content.node,
      this.note,
      this.footer,
    );
    this.paint(true);
  }

  allowAgain(last: boolean): void {
    this.againButton.hidden = !last;
  }

  // While the prompt is read; null: the answer has begun.
  showWaiting(text: string | null, part?: number): void {
    this.waiting.hidden = text === null;
    if (text !== null) setText(this.waitingText, text);
    this.bar.hidden = part === undefined;
    if (part !== undefined) this.bar.value = part;
  }

  paint(finished: boolean): void {
    const { turn } = this;
    set(this.node, { 'aria-busy': !finished || undefined });
    this.node.classList.toggle('growing', !finished);
    this.thinking.hidden = !turn.thinking;
    const inThought = !finished && turn.content === '';
    this.thinking.classList.toggle('active', inThought);
    const time = turn.thinkingMs === undefined ? '' : seconds(turn.thinkingMs / 1000);
    setText(this.summary, inThought ? `Thinking ${time}` : time ? `Thought for ${time}` : 'Thoughts');
    if (turn.thinking && this.thinking.open) this.thoughts.update(turn.thinking);
    this.content.update(turn.content);
    if (finished) this.showWaiting(null);
    this.note.hidden = !turn.note;
    this.note.classList.toggle('failed', turn.failed === true);
    set(this.note, { role: turn.failed ? 'alert' : undefined });
    setText(this.note, turn.note ?? '');
    this.footer.hidden = !finished;
    this.copy.hidden = turn.content === '';
    setText(this.figures, figuresText(turn.figures));
  }
}

export function figuresText(figures: Figures = {}): string {
  const parts: string[] = [];
  if (figures.outputTokens !== undefined) {
    const speed = figures.outputRate === undefined ? '' : ` at ${rate(figures.outputRate)} tok/s`;
    parts.push(`${count(figures.outputTokens)} tokens${speed}`);
  }
  if (figures.promptTokens !== undefined) {
    const cached = figures.cachedTokens ? ` (${count(figures.cachedTokens)} cached)` : '';
    const time = figures.promptMs === undefined ? '' : ` in ${milliseconds(figures.promptMs)}`;
    parts.push(`prompt ${count(figures.promptTokens)}${cached}${time}`);
  }
  if (figures.drafted) parts.push(`${percent(figures.accepted ?? 0, figures.drafted)} of drafts accepted`);
  return parts.join(' · ');
}
