// From blocks to elements.

import { el } from '../dom';
import { copyButton } from '../copy';
import { GrowingMarkdown } from './growing';
import { highlight } from './highlight';
import type { Block, ListItem } from './blocks';
import type { Inline } from './inline';

// An element that shows a text as it grows. Blocks that are complete keep their elements, and with them what the
// reader has selected.
export class MarkdownView {
  readonly node = el('div', { class: 'markdown' });
  private readonly growing = new GrowingMarkdown();

  update(text: string): void {
    const { kept, blocks } = this.growing.update(text);
    while (this.node.childNodes.length > kept) this.node.lastChild!.remove();
    this.node.append(...blocks.map((block) => renderBlock(block)));
  }
}

function renderBlock(block: Block): Node {
  switch (block.kind) {
    case 'paragraph':
      return el('p', {}, ...renderInline(block.text));
    case 'heading': // below the headings of the page itself
      return el(`h${Math.min(block.level + 2, 6)}` as 'h3', { class: `level${block.level}` }, ...renderInline(block.text));
    case 'code':
      return renderCode(block.text, block.language);
    case 'quote':
      return el('blockquote', {}, ...block.blocks.map(renderBlock));
    case 'list':
      return renderList(block);
    case 'table':
      return renderTable(block);
    case 'rule':
      return el('hr');
  }
}

function renderInline(list: Inline[]): Node[] {
  return list.map((one): Node => {
    switch (one.kind) {
      case 'text':
        return document.createTextNode(one.text);
      case 'code':
        return el('code', {}, one.text);
      case 'break':
        return el('br');
      case 'link':
        return el('a', { attrs: { href: one.href, target: '_blank', rel: 'noopener noreferrer' } }, ...renderInline(one.children));
      default:
        return el(one.kind, {}, ...renderInline(one.children));
    }
  });
}

function renderCode(text: string, language: string): Node {
  const pieces = highlight(text, language).map((piece) =>
    piece.kind === 'text' ? piece.text : el('span', { class: `code-${piece.kind}` }, piece.text),
  );
  return el(
    'figure',
    { class: 'code' },
    el('figcaption', {}, el('span', {}, language || 'text'), copyButton('Copy code', () => text)),
    // Can be scrolled with the keyboard.
    el('pre', { attrs: { tabindex: 0, 'aria-label': language ? `Code, ${language}` : 'Code' } }, el('code', {}, ...pieces)),
  );
}

function renderList(list: Block & { kind: 'list' }): Node {
  const items = list.items.map((item) => renderItem(item, list.tight));
  if (!list.ordered) return el('ul', {}, ...items);
  return el('ol', { attrs: { start: list.start === 1 ? undefined : list.start } }, ...items);
}

function renderItem(item: ListItem, tight: boolean): Node {
  const children = item.blocks.flatMap((block) =>
    tight && block.kind === 'paragraph' ? renderInline(block.text) : [renderBlock(block)],
  );
  if (item.done === null) return el('li', {}, ...children);
  const box = el('input', { attrs: { type: 'checkbox', disabled: true, checked: item.done } });
  return el('li', { class: 'task' }, box, ...children);
}

function renderTable(table: Block & { kind: 'table' }): Node {
  const row = (cells: Inline[][], tag: 'th' | 'td') =>
    el('tr', {}, ...cells.map((cell, i) => el(tag, { class: table.align[i] ? `align-${table.align[i]}` : '' }, ...renderInline(cell))));
  return el(
    'div',
    { class: 'table', attrs: { tabindex: 0, role: 'group', 'aria-label': 'Table' } },
    el('table', {}, el('thead', {}, row(table.head, 'th')), el('tbody', {}, ...table.rows.map((cells) => row(cells, 'td')))),
  );
}
