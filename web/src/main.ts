// The frame of the page: its two views, the state of the server, colours.

import './style/base.css';
import './style/chat.css';
import './style/monitor.css';
import { ApiError, getJson } from './api';
import { Chat } from './chat/chat';
import { el, set, setText } from './dom';
import { count } from './format';
import { Monitor } from './monitor/monitor';
import type { MonitorState } from './monitor/state';
import { themeButton } from './theme';

const chat = new Chat();
const monitor = new Monitor();
const views = { chat, monitor };
type ViewName = keyof typeof views;

const links = (Object.keys(views) as ViewName[]).map((name) =>
  el('a', { attrs: { href: `#${name}` } }, name === 'chat' ? 'Chat' : 'Monitor'),
);
const model = el('span', { class: 'model' });
const light = el('span', { class: 'light', attrs: { 'aria-hidden': 'true' } });
const status = el('span', { class: 'status', attrs: { role: 'status' } }, light, model);
const tools = el('div', { class: 'tools' });
const theme = themeButton();

document.body.append(
  el(
    'header',
    { class: 'top' },
    el('h1', {}, 'Strata'),
    el('nav', { attrs: { 'aria-label': 'Views' } }, ...links),
    status,
    tools,
  ),
  el('main', {}, chat.node, monitor.node),
);

let current: ViewName | null = null;

function show(): void {
  const name: ViewName = location.hash === '#monitor' ? 'monitor' : 'chat';
  if (name === current) return;
  current = name;
  for (const [other, view] of Object.entries(views)) view.node.hidden = other !== name;
  for (const link of links) set(link, { 'aria-current': link.hash === `#${name}` ? 'page' : undefined });
  tools.replaceChildren(...(name === 'chat' ? chat.tools() : []), theme);
  document.title = name === 'chat' ? 'Strata' : 'Strata Monitor';
  if (name === 'chat') chat.shown();
  ask();
}

let asking = false;
let timer: ReturnType<typeof setTimeout> | undefined;

// Once a second while the Monitor is seen; else only to know that the server is there.
async function ask(): Promise<void> {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asking = true;
  let wait = current === 'monitor' ? 1000 : 5000;
  try {
    const state = (await getJson('monitor/state', AbortSignal.timeout(10_000))) as MonitorState;
    if (state.status === 'loading') wait = 500;
    showState(state);
  } catch (error) {
    const text = error instanceof ApiError ? error.message : 'The server cannot be reached.';
    if (error instanceof ApiError && error.status === 401) wait = 60_000;
    else wait = 2000;
    showStatus('bad', text);
    monitor.fail(text);
  }
  asking = false;
  clearTimeout(timer);
  timer = setTimeout(() => void ask(), wait);
}

function showState(state: MonitorState): void {
  const { name } = state.model;
  const facts = [
    state.limits ? `Context of ${count(state.limits.context)} tokens` : 'Loading the model',
    state.model.description ?? '',
    state.model.chat === false ? 'It has no chat template: it continues texts by /v1/completions alone' : '',
  ];
  chat.setModel(name, facts.filter(Boolean).join(' · '), state.model.thinking !== false);
  showStatus(state.status === 'ok' ? 'good' : state.status === 'failed' ? 'bad' : 'warn', state.status === 'ok' ? name : `${name}: ${state.status}`);
  monitor.update(state);
}

function showStatus(kind: string, text: string): void {
  light.className = `light ${kind}`;
  setText(model, text);
  set(status, { title: text });
}

addEventListener('hashchange', show);
document.addEventListener('visibilitychange', () => void ask());
show();
