import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './load.mjs';

const { parseMarkdown } = await load('markdown/blocks.ts');
const { parseInline, safeHref } = await load('markdown/inline.ts');
const { GrowingMarkdown } = await load('markdown/growing.ts');
const { highlight } = await load('markdown/highlight.ts');

// A short form to compare with: <em>, <a ADDRESS>, `code`.
function inline(list) {
  return list
    .map((one) => {
      if (one.kind === 'text') return one.text;
      if (one.kind === 'code') return '`' + one.text + '`';
      if (one.kind === 'break') return '<br>';
      const name = one.kind === 'link' ? `a ${one.href}` : one.kind;
      return `<${name}>${inline(one.children)}</>`;
    })
    .join('');
}

function block(one) {
  const inner = (blocks) => blocks.map(block).join(' ');
  switch (one.kind) {
    case 'paragraph': return `p(${inline(one.text)})`;
    case 'heading': return `h${one.level}(${inline(one.text)})`;
    case 'code': return `code:${one.language}(${one.text})`;
    case 'quote': return `quote(${inner(one.blocks)})`;
    case 'rule': return 'rule';
    case 'table': return `table:${one.align.join(',')}(${[one.head, ...one.rows].map((row) => row.map(inline).join('|')).join(' / ')})`;
    case 'list': {
      const items = one.items.map((item) => (item.done === null ? '' : item.done ? '[x]' : '[ ]') + inner(item.blocks));
      return `${one.ordered ? `ol${one.start}` : 'ul'}${one.tight ? '' : '~'}(${items.join('; ')})`;
    }
  }
}

const shape = (text) => parseMarkdown(text).map(block).join('\n');

const inlineCases = [
  ['plain', 'plain'],
  ['**bold** and *slanted* and ~~gone~~', '<strong>bold</> and <em>slanted</> and <del>gone</>'],
  ['***both***', '<em><strong>both</></>'],
  ['**a *b* c**', '<strong>a <em>b</> c</>'],
  ['snake_case_name and __init__', 'snake_case_name and <strong>init</>'],
  ['2 * 3 * 4', '2 * 3 * 4'],
  ['*open', '*open'],
  ['**a*', '*<em>a</>'],
  ['`a < b` and ``x ` y``', '`a < b` and `x ` y`'],
  ['`not closed', '`not closed'],
  ['`**no**`', '`**no**`'],
  ['\\*no\\* \\d', '*no* \\d'],
  ['a  \nb\\\nc\nd', 'a<br>b<br>c\nd'],
  ['[text](https://a.b/c "title")', '<a https://a.b/c>text</>'],
  ['[**bold**](<https://a.b>)', '<a https://a.b><strong>bold</></>'],
  ['[a](https://x.y/q_(z))', '<a https://x.y/q_(z)>a</>'],
  ['[x](javascript:alert(1))', '[x](javascript:alert(1))'],
  ['[x]( data:text/html,a )', '[x]( data:text/html,a )'],
  ['[x](/path) [y](#z) [z](//host)', '[x](/path) [y](#z) [z](//host)'],
  ['![pic](https://a.b/c.png)', '<a https://a.b/c.png>pic</>'],
  ['[https://a.b](https://a.b)', '<a https://a.b>https://a.b</>'],
  ['see https://a.b/c_d_e. And (https://f.g).', 'see <a https://a.b/c_d_e>https://a.b/c_d_e</>. And (<a https://f.g>https://f.g</>).'],
  ['**https://a.b**', '<strong><a https://a.b>https://a.b</></>'],
  ['<https://a.b>', '<a https://a.b>https://a.b</>'],
  ['<b>x</b><br/>y', '<b>x</b><br>y'],
  ['a &lt; b &amp; &#33; &nope; &#0;', 'a < b & ! &nope; &#0;'],
  ['arr[0][1] ] [', 'arr[0][1] ] ['],
  ['wait! [no]', 'wait! [no]'],
  ['"**「x」**"', '"<strong>「x」</>"'],
];

test('text within a block', () => {
  for (const [text, expected] of inlineCases) assert.equal(inline(parseInline(text)), expected, text);
});

test('only addresses that cannot run anything are links', () => {
  for (const href of ['https://a', 'HTTP://a', 'mailto:a@b']) assert.equal(safeHref(href), href);
  for (const href of ['javascript:x', 'JaVaScRiPt:x', ' https://a', 'java\tscript:x', 'data:x', 'vbscript:x', 'file:///x', 'blob:x', '//a', '/a', 'https:a', 'https:///a', ''])
    assert.equal(safeHref(href), null, href);
});

const blockCases = [
  ['# One\ntext\n## Two ##\n#no', 'h1(One)\np(text)\nh2(Two)\np(#no)'],
  ['a\nb\n\nc', 'p(a\nb)\np(c)'],
  ['Title\n===\nOther\n---', 'h1(Title)\nh2(Other)'],
  ['a\n\n---\n\n***', 'p(a)\nrule\nrule'],
  ['```cpp\nint a;\n\n  b\n```\nafter', 'code:cpp(int a;\n\n  b)\np(after)'],
  ['~~~\n```\n~~~', 'code:(```)'],
  ['````\n```\n````', 'code:(```)'],
  ['```py\nstill open', 'code:py(still open)'],
  ['text\n```\nx\n```', 'p(text)\ncode:(x)'],
  ['    four\n    five', 'code:(four\nfive)'],
  ['> a\n> b\nlazy\n\nout', 'quote(p(a\nb\nlazy))\np(out)'],
  ['> - x\n> - y', 'quote(ul(p(x); p(y)))'],
  ['- a\n- b\n  more\n- c', 'ul(p(a); p(b\nmore); p(c))'],
  ['- a\n\n- b', 'ul~(p(a); p(b))'],
  ['1. a\n2. b\n\nout', 'ol1(p(a); p(b))\np(out)'],
  ['7) a\n8) b', 'ol7(p(a); p(b))'],
  ['- a\n  - b\n    - c\n- d', 'ul(p(a) ul(p(b) ul(p(c))); p(d))'],
  ['1. a\n  - b\n2. c', 'ol1(p(a) ul(p(b)); p(c))'],
  ['1. a\n\n   ```sh\n   ls\n   ```\n2. b', 'ol1~(p(a) code:sh(ls); p(b))'],
  ['- a\n\n  b', 'ul~(p(a) p(b))'],
  ['- [x] done\n- [ ] open', 'ul([x]p(done); [ ]p(open))'],
  ['- a\n* b', 'ul(p(a))\nul(p(b))'],
  ['text\n- item', 'p(text)\nul(p(item))'],
  ['in\n1989. Then', 'p(in\n1989. Then)'],
  ['| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| 2 |', 'table:,center(a|b / 1|`x|y` / 2|)'],
  ['a | b\n-:|:-\n1 | 2\n\nafter', 'table:right,left(a|b / 1|2)\np(after)'],
  ['a | b\nno table', 'p(a | b\nno table)'],
  ['-', 'ul()'],
  ['<script>alert(1)</script>', 'p(<script>alert(1)</script>)'],
  ['', ''],
];

test('blocks', () => {
  for (const [text, expected] of blockCases) assert.equal(shape(text), expected, JSON.stringify(text));
});

test('what grows is the same as what came at once, cut anywhere', () => {
  const text = blockCases.map(([source]) => source).join('\n\n') + '\n\n1. a\n\n2. b\n\n10. c\n\n- x\n---\nend';
  for (let size = 1; size < 40; ++size) {
    const growing = new GrowingMarkdown();
    let shown = [];
    for (let end = size; end < text.length + size; end += size) {
      const { kept, blocks } = growing.update(text.slice(0, end));
      assert.ok(kept <= shown.length);
      shown = [...shown.slice(0, kept), ...blocks];
    }
    assert.deepEqual(shown.map(block), parseMarkdown(text).map(block), `pieces of ${size}`);
  }
});

test('a text that does not continue the last begins anew', () => {
  const growing = new GrowingMarkdown();
  growing.update('a\n\nb\n\nc\n\nd');
  assert.deepEqual(growing.update('x'), { kept: 0, blocks: parseMarkdown('x') });
});

// Each of these makes some Markdown parser quadratic or deeper than its stack. Ten to a hundred milliseconds are usual here.
const hostile = [
  '*a '.repeat(30000), '**a** '.repeat(15000), '*'.repeat(100000), '*a*'.repeat(30000), '_a '.repeat(30000) + 'a_ '.repeat(30000),
  '['.repeat(100000), '[a](' .repeat(25000), '![['.repeat(30000), ']'.repeat(100000), '[a](b'.repeat(20000),
  '`'.repeat(1000) + ' ' + Array.from({ length: 400 }, (_, i) => '`'.repeat(i + 1)).join(' '), '`a ``b '.repeat(15000),
  '<'.repeat(100000), '&'.repeat(100000), '\\'.repeat(100000), '!'.repeat(100000), ' '.repeat(100000) + 'x',
  '# a' + ' '.repeat(100000) + 'b', '> '.repeat(50000), '- '.repeat(50000), '>'.repeat(100000), '1. '.repeat(30000),
  Array.from({ length: 300 }, (_, i) => ' '.repeat(2 * i) + '- x').join('\n'),
  '|'.repeat(50000) + '\n' + '|-'.repeat(50000), '|a'.repeat(100) + '\n' + '|-'.repeat(100) + '\n' + ('|b'.repeat(100) + '\n').repeat(300),
  '- x\n'.repeat(20000), 'a\n'.repeat(40000), '```\n'.repeat(20001), 'https://' + '.'.repeat(100000) + 'x', 'https://'.repeat(12000),
  '-'.repeat(100000) + 'x', '- '.repeat(40000) + 'x', '~~a'.repeat(30000), '*a_b'.repeat(20000),
];

test('hostile texts take no long time', () => {
  for (const text of hostile) {
    const begin = performance.now();
    assert.ok(JSON.stringify(parseMarkdown(text)).length > 0); // deep trees would end the stack
    assert.ok(performance.now() - begin < 3000, `${text.slice(0, 20)}: ${performance.now() - begin} ms`);
  }
});

test('colours change no character', () => {
  const code = 'if (x) { // c\n  s = "a\\"b\'; /* d */ 0x1F }\n# e\n-- f\n\'g\' `h`';
  for (const language of ['cpp', 'python', 'sql', 'html', 'unknown', '', 'text'])
    assert.equal(highlight(code, language).map((piece) => piece.text).join(''), code, language);
  const kinds = highlight('return "x" + 12; // note', 'js').filter((piece) => piece.kind !== 'text');
  assert.deepEqual(kinds.map((piece) => [piece.kind, piece.text]), [['word', 'return'], ['string', '"x"'], ['number', '12'], ['comment', '// note']]);
  assert.deepEqual(highlight('# note', 'python'), [{ kind: 'comment', text: '# note' }]);
  const begin = performance.now();
  for (const text of ["\\'".repeat(15000), '`'.repeat(30000), '"""'.repeat(10000), '/*'.repeat(15000)]) highlight(text, 'js');
  assert.ok(performance.now() - begin < 3000); // a hundredth of it is usual
});
