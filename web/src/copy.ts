// Copies text, with a sign that it is done.

import { icons } from './icons';
import { iconButton, set } from './dom';

export function copyButton(name: string, text: () => string): HTMLButtonElement {
  const button = iconButton(icons.copy, name, () => {
    void copyText(text()).then((done) => {
      const path = button.querySelector('path')!;
      set(path, { d: done ? icons.done : icons.close });
      set(button, { 'aria-label': done ? 'Copied' : 'Could not copy', title: done ? 'Copied' : 'Could not copy' });
      setTimeout(() => {
        set(path, { d: icons.copy });
        set(button, { 'aria-label': name, title: name });
      }, 1500);
    });
  });
  return button;
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text); // no clipboard without https, other than on this machine
  }
}

function copySelected(text: string): boolean {
  const field = document.createElement('textarea');
  const focused = document.activeElement;
  field.value = text;
  field.className = 'unseen';
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
