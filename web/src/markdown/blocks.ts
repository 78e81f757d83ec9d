// The blocks of a text: paragraphs, headings, lists, quotes, code, tables, rules.

import { parseInline, type Inline } from './inline';

export type Align = 'left' | 'center' | 'right' | '';

export interface ListItem {
  done: boolean | null; // of a task; null: no task
  blocks: Block[];
}

export type Block =
  | { kind: 'paragraph'; text: Inline[] }
  | { kind: 'heading'; level: number; text: Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; start: number; tight: boolean; items: ListItem[] }
  | { kind: 'table'; align: Align[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

export interface Placed {
  block: Block;
  line: number; // where it begins
}

const deepest = 12; // lists and quotes within each other; further ones are text
const widest = 64; // columns of a table

const fence = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?=\s|$)/;
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const quote = /^ {0,3}> ?/;
const marker = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( +)(?=\S)|\s*$)/;
const delimiter = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

export function parseMarkdown(text: string): Block[] {
  return parseLines(splitLines(text), 0).map((placed) => placed.block);
}

export function splitLines(text: string): string[] {
  return text.replaceAll('\r\n', '\n').split('\n').map(untab);
}

function untab(line: string): string {
  return /^ *\t/.test(line) ? line.replace(/^[ \t]+/, (space) => space.replaceAll('\t', '    ')) : line;
}

export function parseLines(lines: string[], depth: number): Placed[] {
  const blocks: Placed[] = [];
  let at = 0;
  while (at < lines.length) {
    if (blank(lines[at]!)) {
      ++at;
      continue;
    }
    const [block, next] = parseBlock(lines, at, depth);
    blocks.push({ block, line: at });
    at = next;
  }
  return blocks;
}

type Parsed = [Block, number]; // and the line after it

function parseBlock(lines: string[], at: number, depth: number): Parsed {
  const line = lines[at]!;
  const title = heading.exec(line);
  if (fence.test(line)) return parseFence(lines, at);
  if (title) return [{ kind: 'heading', level: title[1]!.length, text: parseInline(titleText(line.slice(title[0].length))) }, at + 1];
  if (rule.test(line)) return [{ kind: 'rule' }, at + 1];
  if (depth < deepest && quote.test(line)) return parseQuote(lines, at, depth);
  if (depth < deepest && marker.test(line)) return parseList(lines, at, depth);
  if (indent(line) >= 4) return parseIndented(lines, at);
  if (isTable(lines, at)) return parseTable(lines, at);
  return parseParagraph(lines, at, depth);
}

// Without the marks that may close a heading.
function titleText(text: string): string {
  const title = text.trim();
  let end = title.length;
  while (title[end - 1] === '#') --end;
  return end === 0 || title[end - 1] === ' ' ? title.slice(0, end).trimEnd() : title;
}

// Without an end it goes to the end of the text: that is how code looks while it is being written.
function parseFence(lines: string[], at: number): Parsed {
  const [, space, marks, info] = fence.exec(lines[at]!)!;
  const code: string[] = [];
  const strip = new RegExp(`^ {0,${space!.length}}`);
  const end = new RegExp(`^ {0,3}\\${marks![0]}{${marks!.length},}\\s*$`);
  for (let i = at + 1; i < lines.length; ++i) {
    if (end.test(lines[i]!))
      return [{ kind: 'code', language: language(info!), text: code.join('\n') }, i + 1];
    code.push(lines[i]!.replace(strip, ''));
  }
  return [{ kind: 'code', language: language(info!), text: code.join('\n') }, lines.length];
}

function language(info: string): string {
  return /^[\w+#.-]{1,24}/.exec(info.trim())?.[0] ?? '';
}

function parseIndented(lines: string[], at: number): Parsed {
  let end = at;
  while (end < lines.length && (blank(lines[end]!) || indent(lines[end]!) >= 4)) ++end;
  const code = lines.slice(at, end).map((line) => line.slice(4));
  return [{ kind: 'code', language: '', text: code.join('\n').trimEnd() }, end];
}

function parseQuote(lines: string[], at: number, depth: number): Parsed {
  const inner: string[] = [];
  let i = at;
  for (; i < lines.length; ++i) {
    const line = lines[i]!;
    if (quote.test(line)) inner.push(line.replace(quote, ''));
    else if (blank(line) || beginsBlock(line) || blank(inner.at(-1)!)) break;
    else inner.push(line); // a paragraph may go on without the mark
  }
  return [{ kind: 'quote', blocks: parseLines(inner, depth + 1).map((placed) => placed.block) }, i];
}

// An item holds the lines indented as far as its text; two spaces are enough for a list within it.
function parseList(lines: string[], at: number, depth: number): Parsed {
  const first = marker.exec(lines[at]!)!;
  const ordered = /\d/.test(first[2]!);
  const list: Block & { kind: 'list' } = { kind: 'list', ordered, start: ordered ? parseInt(first[2]!, 10) : 1, tight: true, items: [] };
  const kind = first[2]!.at(-1);
  let i = at;
  while (i < lines.length) {
    const match = marker.exec(lines[i]!);
    if (!match || match[2]!.at(-1) !== kind || rule.test(lines[i]!)) break;
    const width = match[1]!.length + match[2]!.length + Math.min((match[3] ?? ' ').length, 4);
    const inner = [lines[i]!.slice(width)];
    const next = collectItem(lines, i + 1, width, inner);
    const task = /^\[([ xX])\] /.exec(inner[0]!);
    if (task) inner[0] = inner[0]!.slice(4);
    const placed = parseLines(inner, depth + 1);
    const apart = placed.some((one, n) => n > 0 && blank(inner[one.line - 1]!));
    if (apart || (next < lines.length && blank(lines[next - 1]!) && marker.test(lines[next]!))) list.tight = false;
    list.items.push({ done: task ? task[1] !== ' ' : null, blocks: placed.map((one) => one.block) });
    i = next;
  }
  return [list, i];
}

// Appends the lines of an item to `inner`; returns the line after it.
function collectItem(lines: string[], from: number, width: number, inner: string[]): number {
  const least = Math.min(width, 2);
  let i = from;
  for (; i < lines.length; ++i) {
    const line = lines[i]!;
    const space = indent(line);
    const after = i > from && blank(lines[i - 1]!);
    if (blank(line)) inner.push('');
    else if (space >= width) inner.push(line.slice(width));
    else if (space >= least && (marker.test(line.trimStart()) || fence.test(line.trimStart()))) inner.push(line.slice(space));
    else if (after || beginsBlock(line)) break;
    else inner.push(line.trimStart()); // a paragraph may go on without its indentation
  }
  return i;
}

function isTable(lines: string[], at: number): boolean {
  const line = lines[at]!;
  const next = lines[at + 1];
  return line.includes('|') && next !== undefined && next.includes('-') && delimiter.test(next) &&
    cells(line).length === cells(next).length;
}

function parseTable(lines: string[], at: number): Parsed {
  const align = cells(lines[at + 1]!).map((cell): Align => {
    const left = cell.startsWith(':');
    if (cell.endsWith(':')) return left ? 'center' : 'right';
    return left ? 'left' : '';
  });
  const rows: Inline[][][] = [];
  let i = at + 2;
  for (; i < lines.length && !blank(lines[i]!) && !beginsBlock(lines[i]!); ++i) {
    const row = cells(lines[i]!).slice(0, align.length);
    while (row.length < align.length) row.push('');
    rows.push(row.map(parseInline));
  }
  return [{ kind: 'table', align, head: cells(lines[at]!).map(parseInline), rows }, i];
}

// Bars within code or behind a backslash do not separate.
function cells(line: string): string[] {
  const parts: string[] = [];
  let cell = '';
  let code = false;
  const row = line.trim().replace(/^\|/, '');
  for (let i = 0; i < row.length; ++i) {
    const c = row[i]!;
    if (c === '\\' && row[i + 1] === '|') {
      cell += '|';
      ++i;
    } else if (c === '|' && !code) {
      parts.push(cell.trim());
      cell = '';
    } else {
      if (c === '`') code = !code && row.indexOf('`', i + 1) >= 0;
      cell += c;
    }
  }
  if (cell.trim() !== '') parts.push(cell.trim());
  return parts.slice(0, widest);
}

function parseParagraph(lines: string[], at: number, depth: number): Parsed {
  const text: string[] = [];
  let i = at;
  for (; i < lines.length; ++i) {
    const line = lines[i]!;
    if (i > at && (blank(line) || isTable(lines, i))) break;
    const underline = i > at ? /^ {0,3}(=+|-+)\s*$/.exec(line) : null;
    if (underline)
      return [{ kind: 'heading', level: underline[1]!.startsWith('=') ? 1 : 2, text: parseInline(text.join('\n')) }, i + 1];
    if (i > at && depth < deepest && interrupts(line)) break;
    text.push(line.trimStart());
  }
  return [{ kind: 'paragraph', text: parseInline(text.join('\n').trimEnd()) }, i];
}

function beginsBlock(line: string): boolean {
  return fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line) || marker.test(line);
}

// A number inside a paragraph ("in\n1989. Then") is no list unless it is 1.
function interrupts(line: string): boolean {
  const item = marker.exec(line);
  if (item && !rule.test(line)) return item[3] !== undefined && !/^(?!1[.)])\d/.test(item[2]!);
  return beginsBlock(line);
}

function blank(line: string): boolean {
  return /^\s*$/.test(line);
}

function indent(line: string): number {
  return /^ */.exec(line)![0].length;
}
