// Symbols as strokes on a field of 16 by 16.
export const icons = {
  copy: 'M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2',
  done: 'M3 8.5l3.5 3.5L13 4.5',
  again: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  edit: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7l2.3 2.3',
  send: 'M8 13.5V3M3.5 7.5L8 3l4.5 4.5',
  stop: 'M4.5 4.5h7v7h-7z',
  settings: 'M2.5 4.5h6M12 4.5h1.5M2.5 11.5h2M8 11.5h5.5M10.2 2.8v3.4M6.2 9.8v3.4',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  down: 'M8 3v10M3.5 8.5L8 13l4.5-4.5',
  light: 'M8 5.2a2.8 2.8 0 1 1 0 5.6a2.8 2.8 0 0 1 0-5.6M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1',
  dark: 'M13 9.6A5.6 5.6 0 0 1 6.4 3a5.2 5.2 0 1 0 6.6 6.6z',
  auto: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
};
