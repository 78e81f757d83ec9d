import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './load.mjs';

const { SseParser } = await load('sse.ts');

const stream = '\uFEFF: keep-alive\n\ndata: {"a":1,\r\ndata: "b":2}\r\n\r\nevent: error\ndata: one\ndata:two\n\ndata\n\n: x\nid: 7\ndata: ünï 🙂\n\ndata: [DONE]\n\n';
const expected = [
  { event: 'message', data: '{"a":1,\n"b":2}' },
  { event: 'error', data: 'one\ntwo' },
  { event: 'message', data: '' },
  { event: 'message', data: 'ünï 🙂' },
  { event: 'message', data: '[DONE]' },
];

test('a stream in one piece', () => assert.deepEqual(new SseParser().push(stream), expected));

test('a stream cut anywhere gives the same events', () => {
  for (let size = 1; size < 12; ++size) {
    const parser = new SseParser();
    const events = [];
    for (let at = 0; at < stream.length; at += size) events.push(...parser.push(stream.slice(at, at + size)));
    assert.deepEqual(events, expected, `pieces of ${size}`);
  }
});

test('lines may end in returns alone', () => {
  const parser = new SseParser();
  assert.deepEqual(parser.push('data: a\r\rdata: b\r\r '), [
    { event: 'message', data: 'a' },
    { event: 'message', data: 'b' },
  ]);
});

test('an event without its empty line is not given out', () => assert.deepEqual(new SseParser().push('data: a\n'), []));

test('an event without an end is refused, not kept for ever', () => {
  const parser = new SseParser();
  const piece = 'data: ' + 'x'.repeat(1 << 20);
  assert.throws(() => {
    for (let i = 0; i < 20; ++i) parser.push(piece);
  }, /without an end/);
});
