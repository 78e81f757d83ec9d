// The cards of the Monitor that show what is, rather than what was.

import { el, svg } from '../dom';
import { bytes, count, milliseconds, percent, rate, seconds } from '../format';
import type { ArmState, LastRequest, MonitorState, SlotState, StageTime } from './state';

// Part of a whole, 0 to 1; null: of an unknown whole.
function bar(part: number | null, color = ''): SVGSVGElement {
  return svg(
    'svg',
    { class: `bar ${color}`, attrs: { viewBox: '0 0 100 1', preserveAspectRatio: 'none', 'aria-hidden': 'true' } },
    svg('rect', { class: 'fill', attrs: { width: 100 * Math.min(1, Math.max(0, part ?? 0)), height: 1 } }),
  );
}

function empty(text: string): HTMLElement {
  return el('p', { class: 'empty' }, text);
}

const mostSlots = 8; // with more, those that are idle are only counted

export function slots(list: SlotState[]): Node[] {
  const idle = list.filter((one) => one.state === 'idle').length;
  if (list.length <= mostSlots || idle === 0) return [el('ul', { class: 'rows' }, ...list.map(slot))];
  const busy = list.filter((one) => one.state !== 'idle');
  return [el('ul', { class: 'rows' }, ...busy.map(slot)), empty(`${count(idle)} idle`)];
}

function slot(one: SlotState): HTMLElement {
  const name = el('span', { class: 'name' }, `Slot ${one.id}`);
  if (one.state === 'idle') return el('li', { class: 'slot idle' }, name, el('span', { class: 'badge' }, 'idle'));
  const prompt = one.state === 'prompt';
  const done = prompt ? one.prompt_done : one.output_tokens;
  const whole = prompt ? one.prompt_tokens : (one.max_tokens ?? (one.context ?? 0) - (one.prompt_tokens ?? 0));
  const parts = [
    prompt ? `${count(done ?? 0)} of ${count(whole ?? 0)} prompt tokens` : `${count(done ?? 0)} tokens${one.max_tokens == null ? '' : ` of ${count(one.max_tokens)}`}`,
    one.output_per_second == null ? '' : `${rate(one.output_per_second)} tok/s`,
    one.cached_tokens ? `${count(one.cached_tokens)} cached` : '',
    one.draft_tokens ? `drafts ${percent(one.draft_accepted ?? 0, one.draft_tokens)}` : '',
    seconds(one.age_s ?? 0),
  ];
  const used = (one.context_used ?? 0) / Math.max(1, one.context ?? 1);
  return el(
    'li',
    { class: `slot ${one.state}` },
    name,
    el('span', { class: `badge ${one.state}` }, prompt ? 'prompt' : 'output'),
    el('span', { class: 'detail' }, parts.filter(Boolean).join(' · ')),
    bar((done ?? 0) / Math.max(1, whole ?? 1), prompt ? 'prompt' : 'output'),
    el('span', { class: 'detail context' }, `context ${count(one.context_used ?? 0)} of ${count(one.context ?? 0)}`),
    bar(used, 'context'),
  );
}

interface Gauge {
  name: string;
  text: string;
  part: number | null;
  color?: string;
}

function gauges(list: Gauge[]): Node[] {
  return [
    el(
      'ul',
      { class: 'rows' },
      ...list.map((one) =>
        el(
          'li',
          { class: 'gauge' },
          el('span', { class: 'name' }, one.name),
          el('span', { class: 'detail' }, one.text),
          one.part === null ? null : bar(one.part, one.color),
        ),
      ),
    ),
  ];
}

export function cache(state: MonitorState): Node[] {
  const list: Gauge[] = [];
  const busy = (state.slots ?? []).filter((one) => one.state !== 'idle');
  const used = busy.reduce((sum, one) => sum + (one.context_used ?? 0), 0);
  const room = (state.limits?.slots ?? 0) * (state.limits?.context ?? 0);
  list.push({ name: 'Context in use', text: `${count(used)} of ${count(room)} positions`, part: room ? used / room : 0, color: 'context' });
  if (state.queue)
    list.push({
      name: 'Queue',
      text: `${count(state.queue.waiting)} of ${count(state.queue.limit)}${state.queue.oldest_s == null ? '' : `, the oldest for ${seconds(state.queue.oldest_s)}`}`,
      part: state.queue.waiting / Math.max(1, state.queue.limit),
      color: 'queue',
    });
  const kept = state.cache;
  if (!kept) return [...gauges(list), empty('No prompt cache.')];
  list.push({
    name: 'Cache hits, prompt tokens',
    text: `${count(kept.hit_tokens)} of ${count(kept.queried_tokens)}${kept.queried_tokens ? `, ${percent(kept.hit_tokens, kept.queried_tokens)}` : ''}`,
    part: kept.hit_tokens / Math.max(1, kept.queried_tokens),
    color: 'output',
  });
  list.push({
    name: 'Kept sequences',
    text: `${count(kept.sequences)}, ${bytes(kept.used_bytes)}${kept.budget_bytes ? ` of ${bytes(kept.budget_bytes)}` : ''}`,
    part: kept.budget_bytes ? kept.used_bytes / kept.budget_bytes : null,
    color: 'memory',
  });
  return gauges(list);
}

export function drafts(state: MonitorState): Node[] {
  const given = state.drafts;
  if (!given || given.windows === 0) return [empty(state.limits?.draft === 'none' ? 'Drafts are off.' : 'No drafts so far.')];
  const positions = given.positions.filter((one) => one.tried > 0);
  return [
    el('p', { class: 'lead' }, `${count(given.accepted)} of ${count(given.tokens)} tokens accepted, ${percent(given.accepted, given.tokens)}`),
    ...gauges(
      positions.map((one, i) => ({
        name: `Position ${i + 1}`,
        text: `${percent(one.accepted, one.tried)} of ${count(one.tried)}`,
        part: one.accepted / one.tried,
        color: 'output',
      })),
    ),
  ];
}

export function memory(state: MonitorState): Node[] {
  const given = state.memory;
  if (!given) return [empty('Nothing is known about memory.')];
  const largest = Math.max(1, ...given.tiers.map((one) => one.used_bytes));
  const tiers = given.tiers.map((one) => ({
    name: one.name,
    text: `${bytes(one.used_bytes)}${one.limit_bytes ? ` of ${bytes(one.limit_bytes)}` : ''} · ${one.place}`,
    part: one.used_bytes / (one.limit_bytes ?? largest),
    color: 'memory',
  }));
  const facts = [
    ['Process', given.process_bytes],
    ['Peak', given.peak_bytes],
    ['Free', given.free_bytes],
  ] as const;
  return [
    ...gauges(tiers),
    el('dl', { class: 'facts' }, ...facts.flatMap(([name, value]) => (value == null ? [] : [el('div', {}, el('dt', {}, name), el('dd', {}, bytes(value)))]))),
  ];
}

const evidenceClass: Record<string, string> = { verified: 'good', stale: 'warn', failed: 'bad', 'never run': 'warn' };

export function arms(list: ArmState[]): Node[] {
  if (list.length === 0) return [empty('Nothing has run yet.')];
  const head = ['Operator', 'Arm', 'Device class', 'Evidence', 'Worst error / bound', 'Cases', 'Date'];
  return [
    el(
      'div',
      { class: 'table', attrs: { tabindex: 0, role: 'group', 'aria-label': 'Arms' } },
      el(
        'table',
        {},
        el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { attrs: { scope: 'col' } }, text)))),
        el('tbody', {}, ...list.map(armRow)),
      ),
    ),
  ];
}

function armRow(one: ArmState): HTMLElement {
  const refused = one.requested !== null && one.requested !== one.arm;
  return el(
    'tr',
    {},
    el('th', { attrs: { scope: 'row' } }, one.operator),
    el('td', {}, one.arm, refused ? el('small', {}, ` asked for: ${one.requested}`) : null),
    el('td', {}, one.class),
    el('td', {}, el('span', { class: `badge ${evidenceClass[one.evidence ?? ''] ?? ''}` }, one.evidence ?? 'no records here')),
    el('td', { class: 'number' }, one.of_bound === null ? '' : one.of_bound.toPrecision(2)),
    el('td', { class: 'number' }, one.cases === null ? '' : count(one.cases)),
    el('td', { class: 'number' }, one.date ?? ''),
  );
}

export function last(request: LastRequest | null): Node[] {
  if (!request) return [empty('No request has ended yet.')];
  const total = Math.max(request.total_ms, 1e-6);
  const cached = request.cached_tokens ? ` (${count(request.cached_tokens)} cached)` : '';
  const facts = [
    request.api,
    milliseconds(request.total_ms),
    request.finish_reason ?? 'failed',
    `${count(request.prompt_tokens)} prompt tokens${cached}`,
    `${count(request.output_tokens)} output tokens`,
  ];
  return [
    el('p', { class: 'lead' }, facts.join(' · ')),
    el('ul', { class: 'rows timeline', attrs: { 'aria-label': 'Spans' } }, ...request.spans.map((span) => timelineRow(span.name, span.start_ms, span.ms, total))),
    ...stages(request),
  ];
}

function timelineRow(name: string, start: number, length: number | null, total: number): HTMLElement {
  const width = Math.max(0.4, (100 * (length ?? 0)) / total); // seen however short
  return el(
    'li',
    { class: 'span' },
    el('span', { class: 'name' }, name),
    svg(
      'svg',
      { class: `bar ${name}`, attrs: { viewBox: '0 0 100 1', preserveAspectRatio: 'none', 'aria-hidden': 'true' } },
      svg('rect', { class: 'fill', attrs: { x: Math.min(100 - width, (100 * start) / total), width, height: 1 } }),
    ),
    el('span', { class: 'detail' }, length === null ? 'unknown' : milliseconds(length)),
  );
}

const mostOperators = 12; // the others are summed

function stages(request: LastRequest): Node[] {
  const operators = [...(request.operators ?? [])];
  const others = operators.splice(mostOperators);
  if (others.length > 0)
    operators.push({
      name: `${count(others.length)} others`,
      ms: others.reduce((sum, one) => sum + (one.ms ?? 0), 0),
      calls: others.reduce((sum, one) => sum + one.calls, 0),
    });
  return [
    ...times('Engine meanwhile, all requests together', request.stages),
    ...(operators.length > 0
      ? times('Operators meanwhile', operators)
      : [el('p', { class: 'help' }, 'A server started with --profile also shows the operators.')]),
  ];
}

function times(title: string, list: StageTime[]): Node[] {
  if (list.length === 0) return [];
  const longest = Math.max(1e-6, ...list.map((one) => one.ms ?? 0));
  return [
    el('h4', {}, title),
    el(
      'ul',
      { class: 'rows timeline long', attrs: { 'aria-label': title } },
      ...list.map((one) =>
        el(
          'li',
          { class: 'span' },
          el('span', { class: 'name' }, one.name),
          bar((one.ms ?? 0) / longest, 'context'),
          el('span', { class: 'detail' }, `${one.ms === null ? 'unknown' : milliseconds(one.ms)}, ${count(one.calls)} calls`),
        ),
      ),
    ),
  ];
}
