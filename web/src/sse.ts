// Server-sent events, from text in any pieces to whole events.

export interface SseEvent {
  event: string; // "message" when the server named none
  data: string;
}

const longest = 16 * 1024 * 1024; // characters of one event: more is no answer to a chat

export class SseParser {
  private pending = '';
  private event = '';
  private data: string[] = [];
  private size = 0;
  private started = false;

  // Whole events that the piece completes. Comments (keep-alive) and unknown fields are dropped.
  push(piece: string): SseEvent[] {
    const events: SseEvent[] = [];
    let text = this.pending + piece;
    if (!this.started && text.length > 0) {
      this.started = true;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    let begin = 0;
    for (;;) {
      const end = lineEnd(text, begin);
      if (end < 0) break;
      // A return at the very end may be half of a return and line feed.
      if (text[end] === '\r' && end + 1 === text.length) break;
      this.line(text.slice(begin, end), events);
      begin = end + (text[end] === '\r' && text[end + 1] === '\n' ? 2 : 1);
    }
    this.pending = text.slice(begin);
    if (this.pending.length + this.size > longest) throw new Error('the server sent an event without an end');
    return events;
  }

  private line(line: string, events: SseEvent[]): void {
    if (line === '') {
      if (this.data.length > 0) events.push({ event: this.event || 'message', data: this.data.join('\n') });
      this.event = '';
      this.data = [];
      this.size = 0;
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'event') this.event = value;
    if (field === 'data') {
      this.data.push(value);
      this.size += value.length;
    }
  }
}

function lineEnd(text: string, from: number): number {
  for (let i = from; i < text.length; ++i) if (text[i] === '\n' || text[i] === '\r') return i;
  return -1;
}

export async function* sseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
