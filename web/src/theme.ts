// Light, dark, or as the system has it.

import { iconButton, set } from './dom';
import { icons } from './icons';

const stored = 'strata.theme';
const themes = ['auto', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

export function themeButton(): HTMLButtonElement {
  let theme: Theme = themes.find((one) => one === read()) ?? 'auto';
  const button = iconButton(icons.auto, '', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length]!;
    write(theme);
    show();
  });
  const show = () => {
    set(document.documentElement, { 'data-theme': theme === 'auto' ? undefined : theme });
    set(button.querySelector('path')!, { d: icons[theme] });
    const name = `Colours: ${theme === 'auto' ? 'as the system' : theme}`;
    set(button, { title: name, 'aria-label': name });
  };
  show();
  return button;
}

function read(): string | null {
  try {
    return localStorage.getItem(stored);
  } catch {
    return null;
  }
}

function write(theme: Theme): void {
  try {
    localStorage.setItem(stored, theme);
  } catch {
    // forbidden: the choice lasts until the page is left
  }
}
