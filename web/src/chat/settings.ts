// What the user may set for a chat. A field left empty is not sent: the server's own default holds.

export interface ChatSettings {
  system: string;
  thinking: '' | 'on' | 'off';
  effort: string;
  numbers: Record<string, number>; // by the name in the request
  stop: string[];
}

export interface NumberField {
  name: string;
  label: string;
  help: string;
  min: number;
  max: number;
  step: number | 'any';
}

export const numberFields: NumberField[] = [
  { name: 'temperature', label: 'Temperature', help: '0: always the likeliest token', min: 0, max: 5, step: 'any' },
  { name: 'max_tokens', label: 'Longest answer', help: 'tokens', min: 1, max: 10_000_000, step: 1 },
  { name: 'top_p', label: 'Top p', help: '1: off', min: 0, max: 1, step: 'any' },
  { name: 'top_k', label: 'Top k', help: '0: off', min: 0, max: 1_000_000, step: 1 },
  { name: 'min_p', label: 'Min p', help: '0: off', min: 0, max: 1, step: 'any' },
  { name: 'repeat_penalty', label: 'Repeat penalty', help: '1: off', min: 0.01, max: 10, step: 'any' },
  { name: 'presence_penalty', label: 'Presence penalty', help: '0: off', min: -2, max: 2, step: 'any' },
  { name: 'frequency_penalty', label: 'Frequency penalty', help: '0: off', min: -2, max: 2, step: 'any' },
  { name: 'seed', label: 'Seed', help: 'the same seed, the same answer', min: 0, max: 4294967295, step: 1 },
];

export const efforts = ['none', 'minimal', 'low', 'medium', 'high'];

export function noSettings(): ChatSettings {
  return { system: '', thinking: '', effort: '', numbers: {}, stop: [] };
}

// From a store that anyone may have written.
export function readSettings(stored: unknown): ChatSettings {
  const settings = noSettings();
  if (typeof stored !== 'object' || stored === null) return settings;
  const source = stored as Record<string, unknown>;
  if (typeof source.system === 'string') settings.system = source.system;
  if (source.thinking === 'on' || source.thinking === 'off') settings.thinking = source.thinking;
  if (typeof source.effort === 'string' && efforts.includes(source.effort)) settings.effort = source.effort;
  if (Array.isArray(source.stop)) settings.stop = source.stop.filter((one): one is string => typeof one === 'string' && one !== '');
  const numbers = (source.numbers ?? {}) as Record<string, unknown>;
  for (const field of numberFields) {
    const value = numbers[field.name];
    if (typeof value === 'number' && inRange(field, value)) settings.numbers[field.name] = value;
  }
  return settings;
}

export function inRange(field: NumberField, value: number): boolean {
  return value >= field.min && value <= field.max && (field.step !== 1 || Number.isInteger(value));
}

// The part of a request that settings decide.
export function settingsBody(settings: ChatSettings): Record<string, unknown> {
  const body: Record<string, unknown> = { ...settings.numbers };
  if (settings.stop.length > 0) body.stop = settings.stop;
  if (settings.thinking !== '') body.chat_template_kwargs = { enable_thinking: settings.thinking === 'on' };
  if (settings.effort !== '') body.reasoning_effort = settings.effort;
  return body;
}
