// Where a message is written.

import { el, iconButton } from '../dom';
import { icons } from '../icons';

export interface ComposerActions {
  send(text: string): void;
  stop(): void;
  editLast(): void;
}

export class Composer {
  readonly node: HTMLElement;
  private readonly field = el('textarea', {
    attrs: { id: 'message', rows: 1, placeholder: 'Write a message', 'aria-label': 'Message', enterkeyhint: 'send' },
  });
  private readonly sendButton: HTMLButtonElement;
  private readonly stopButton: HTMLButtonElement;
  private running = false;

  constructor(private readonly actions: ComposerActions) {
    this.sendButton = iconButton(icons.send, 'Send', () => this.send());
    this.stopButton = iconButton(icons.stop, 'Stop (Esc)', () => actions.stop());
    this.sendButton.classList.add('primary', 'round');
    this.stopButton.classList.add('primary', 'round', 'stop');
    this.field.addEventListener('input', () => this.fit());
    this.field.addEventListener('keydown', (event) => this.key(event));
    this.node = el(
      'div',
      { class: 'composer' },
      el('div', { class: 'box' }, this.field, this.sendButton, this.stopButton),
      el('p', { class: 'hint' }, 'Enter sends · Shift+Enter begins a new line · Esc stops'),
    );
    this.setRunning(false);
  }

  setRunning(running: boolean): void {
    const held = document.activeElement === this.sendButton || document.activeElement === this.stopButton;
    this.running = running;
    this.stopButton.hidden = !running;
    this.sendButton.hidden = running;
    if (held) this.focus();
    this.fit();
  }

  focus(): void {
    this.fit();
    this.field.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send();
    } else if (event.key === 'ArrowUp' && this.field.value === '') {
      event.preventDefault();
      this.actions.editLast();
    }
  }

  private send(): void {
    const text = this.field.value.trim();
    if (text === '' || this.running) return;
    this.field.value = '';
    this.fit();
    this.actions.send(text);
  }

  // As high as its text; the style sheet sets the limit.
  private fit(): void {
    this.sendButton.disabled = this.field.value.trim() === '';
    this.field.style.height = 'auto';
    const height = this.field.scrollHeight;
    if (height > 0) this.field.style.height = `${height}px`; // 0: not seen
  }
}
