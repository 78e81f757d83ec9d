// Asks for the API key. One question at a time, whoever needs the answer.

import { el } from './dom';

let question: Promise<string | null> | null = null;

export function askForKey(wrong: boolean): Promise<string | null> {
  question ??= ask(wrong).finally(() => (question = null));
  return question;
}

function ask(wrong: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const field = el('input', { attrs: { id: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false' } });
    const answer = (key: string | null) => {
      resolve(key);
      dialog.remove();
    };
    const use = () => field.value.trim() && answer(field.value.trim());
    const dialog = el(
      'dialog',
      { class: 'key', attrs: { 'aria-labelledby': 'key-title' }, on: { cancel: () => answer(null) } },
      el('h2', { attrs: { id: 'key-title' } }, 'API key'),
      el('p', {}, wrong ? 'The server does not accept this key.' : 'This server answers only with its key.'),
      el('label', { attrs: { for: 'key' } }, 'Key, kept until this tab is closed'),
      field,
      el(
        'div',
        { class: 'buttons' },
        el('button', { attrs: { type: 'button' }, on: { click: () => answer(null) } }, 'Cancel'),
        el('button', { class: 'primary', attrs: { type: 'button' }, on: { click: use } }, 'Use this key'),
      ),
    );
    field.addEventListener('keydown', (event) => event.key === 'Enter' && use());
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
  });
}
