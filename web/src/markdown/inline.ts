// Text within a block: code, emphasis, links. HTML has no meaning here and stays text. Time grows with the length of
// the text, whatever a model writes.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'break' }
  | { kind: 'link'; href: string; children: Inline[] }
  | { kind: 'strong' | 'em' | 'del'; children: Inline[] };

// A run of * _ or ~ that may open or close; `node` is the text node that holds it.
interface Run {
  mark: string;
  count: number;
  opens: boolean;
  closes: boolean;
  node: number;
}

interface Bracket {
  node: number; // of its "[" or "!["
  runs: number; // runs before it
}

const punctuation = /[\p{P}\p{S}]/u;
const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };
const deepest = 32; // brackets or emphasis open at a time; further ones are text
const longestRun = 6; // marks in a row that may be emphasis

export function parseInline(text: string): Inline[] {
  return new InlineParser(text).parse();
}

// Only what cannot run anything and leaves the page: http, https and mail addresses.
export function safeHref(href: string): string | null {
  if (/[\u0000-\u0020]/.test(href)) return null;
  return /^(https?:\/\/[^/]|mailto:.)/i.test(href) ? href : null;
}

class InlineParser {
  private at = 0;
  private nodes: (Inline | null)[] = [];
  private runs: Run[] = [];
  private brackets: Bracket[] = [];
  private lastTicks = new Map<number, number>(); // length of a run of backticks -> where its last one begins

  constructor(private readonly text: string) {
    for (const match of text.matchAll(/`+/g)) this.lastTicks.set(match[0].length, match.index);
  }

  parse(): Inline[] {
    while (this.at < this.text.length) this.step();
    this.emphasise(0);
    return joined(this.nodes);
  }

  private step(): void {
    const c = this.text[this.at]!;
    if (c === '\\') this.escape();
    else if (c === '`') this.codeSpan();
    else if (c === '*' || c === '_' || c === '~') this.run(c);
    else if (c === '[' || (c === '!' && this.text[this.at + 1] === '[')) this.openBracket(c === '!' ? 2 : 1);
    else if (c === ']') this.closeBracket();
    else if (c === '<') this.angle();
    else if (c === '&') this.entity();
    else if (c === '\n') this.newLine();
    else this.plain();
  }

  private say(text: string): void {
    this.nodes.push({ kind: 'text', text });
  }

  // To the next character that could mean something; an address within is a link.
  private plain(): void {
    const special = /[\\`*_~![\]<&\n]|https?:\/\//g;
    special.lastIndex = this.at;
    let found = special.exec(this.text);
    if (found && found.index === this.at && found[0].startsWith('http')) return this.address();
    if (found && found.index === this.at) {
      special.lastIndex = this.at + 1; // a "!" before no bracket
      found = special.exec(this.text);
    }
    const end = found ? found.index : this.text.length;
    this.say(this.text.slice(this.at, end));
    this.at = end;
  }

  private address(): void {
    const match = /https?:\/\/[^\s<>"`[\]]*/y;
    match.lastIndex = this.at;
    const url = withoutTail(match.exec(this.text)![0]);
    this.at += url.length;
    const href = safeHref(url);
    if (href) this.nodes.push({ kind: 'link', href, children: [{ kind: 'text', text: url }] });
    else this.say(url);
  }

  private escape(): void {
    const next = this.text[this.at + 1];
    if (next === '\n') {
      this.nodes.push({ kind: 'break' });
      this.at += 2;
    } else if (next !== undefined && /[!-/:-@[-`{-~]/.test(next)) {
      this.say(next);
      this.at += 2;
    } else {
      this.say('\\');
      this.at += 1;
    }
  }

  private codeSpan(): void {
    const length = runLength(this.text, this.at);
    const begin = this.at + length;
    this.at = begin;
    if ((this.lastTicks.get(length) ?? -1) < begin) return this.say('`'.repeat(length));
    let end = begin;
    for (;;) {
      end = this.text.indexOf('`', end);
      const found = runLength(this.text, end);
      if (found === length) break;
      end += found;
    }
    let code = this.text.slice(begin, end).replaceAll('\n', ' ');
    if (code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '') code = code.slice(1, -1);
    this.nodes.push({ kind: 'code', text: code });
    this.at = end + length;
  }

  private run(mark: string): void {
    const count = runLength(this.text, this.at);
    const before = this.at === 0 ? ' ' : this.text[this.at - 1]!;
    const after = this.text[this.at + count] ?? ' ';
    const left = !/\s/.test(after) && (!punctuation.test(after) || /\s/.test(before) || punctuation.test(before));
    const right = !/\s/.test(before) && (!punctuation.test(before) || /\s/.test(after) || punctuation.test(after));
    const inWord = mark === '_'; // does not count inside a word
    const opens = left && (!inWord || !right || punctuation.test(before));
    const closes = right && (!inWord || !left || punctuation.test(after));
    if ((mark === '~' ? count === 2 : count <= longestRun) && (opens || closes))
      this.runs.push({ mark, count, opens, closes, node: this.nodes.length });
    this.say(mark.repeat(count));
    this.at += count;
  }

  private openBracket(length: number): void {
    if (this.brackets.length < deepest) this.brackets.push({ node: this.nodes.length, runs: this.runs.length });
    this.say(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  // [text](address "title"); a picture becomes a link, for the page fetches nothing.
  private closeBracket(): void {
    const open = this.brackets.pop();
    this.at += 1;
    const target = /\(\s{0,8}(?:<([^<>\n]{0,2048})>|([^\s()]{0,2048}(?:\([^\s()]{0,2048}\)[^\s()]{0,2048})?))(?:\s{1,8}"[^"\n]{0,512}"|\s{1,8}'[^'\n]{0,512}')?\s{0,8}\)/y;
    target.lastIndex = this.at;
    const match = open ? target.exec(this.text) : null;
    if (!open || !match) return this.say(']');
    const href = safeHref(match[1] ?? match[2] ?? '');
    if (!href) {
      this.say(']' + match[0]);
      this.at += match[0].length;
      return;
    }
    this.emphasise(open.runs);
    const inside = joined(this.nodes.splice(open.node).slice(1));
    const children = inside.flatMap((child) => (child.kind === 'link' ? child.children : [child]));
    this.nodes.push({ kind: 'link', href, children: children.length > 0 ? children : [{ kind: 'text', text: href }] });
    this.brackets = []; // no link within a link
    this.at += match[0].length;
  }

  private angle(): void {
    const match = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>|<br ?\/?>/iy;
    match.lastIndex = this.at;
    const found = match.exec(this.text);
    const href = found?.[1] ? safeHref(found[1]) : null;
    if (found && href) this.nodes.push({ kind: 'link', href, children: [{ kind: 'text', text: href }] });
    else if (found && !found[1]) this.nodes.push({ kind: 'break' });
    else return this.one('<');
    this.at += found[0].length;
  }

  private entity(): void {
    const match = /&([a-z]{2,4}|#\d{1,7});/y;
    match.lastIndex = this.at;
    const found = match.exec(this.text);
    const name = found?.[1] ?? '';
    const code = name.startsWith('#') ? Number(name.slice(1)) : 0;
    const character = code > 31 && code < 0x110000 ? String.fromCodePoint(code) : entities[name];
    if (!found || character === undefined) return this.one('&');
    this.say(character);
    this.at += found[0].length;
  }

  // Two spaces before it make a break.
  private newLine(): void {
    const last = this.nodes.at(-1);
    const hard = last?.kind === 'text' && last.text.endsWith('  ');
    if (last?.kind === 'text') last.text = last.text.replace(/ {1,64}$/, '');
    if (hard) this.nodes.push({ kind: 'break' });
    else this.say('\n');
    this.at += 1;
  }

  private one(text: string): void {
    this.say(text);
    this.at += 1;
  }

  // Pairs the runs from `first` on. A search that failed is not repeated further down (`bottom`), so the whole is
  // linear.
  private emphasise(first: number): void {
    const runs = this.runs.splice(first);
    const bottom = new Map<string, number>();
    const open: Run[] = [];
    for (const run of runs) {
      while (run.closes && run.count > 0) {
        const key = run.mark + (run.opens ? '+' : '-') + (run.count % 3);
        const lowest = bottom.get(key) ?? 0;
        let i = open.length - 1;
        while (i >= lowest && !pairs(open[i]!, run)) --i;
        if (i < lowest) {
          bottom.set(key, open.length);
          break;
        }
        this.wrap(open[i]!, run);
        open.length = open[i]!.count > 0 ? i + 1 : i;
        for (const [name, value] of bottom) bottom.set(name, Math.min(value, open.length));
      }
      if (run.opens && run.count > 0 && open.length < deepest) open.push(run);
    }
  }

  // What lies between the two, something always, becomes one node.
  private wrap(opener: Run, closer: Run): void {
    const used = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
    const kind = opener.mark === '~' ? 'del' : used === 2 ? 'strong' : 'em';
    const children = joined(this.nodes.slice(opener.node + 1, closer.node));
    this.nodes.fill(null, opener.node + 1, closer.node);
    opener.count -= used;
    closer.count -= used;
    this.shorten(opener);
    this.shorten(closer);
    this.nodes[opener.node + 1] = { kind, children };
  }

  private shorten(run: Run): void {
    this.nodes[run.node] = { kind: 'text', text: run.mark.repeat(run.count) };
  }
}

function pairs(opener: Run, closer: Run): boolean {
  if (opener.mark !== closer.mark) return false;
  if (opener.mark === '~') return true;
  const both = (opener.opens && opener.closes) || (closer.opens && closer.closes);
  return !both || (opener.count + closer.count) % 3 !== 0 || (opener.count % 3 === 0 && closer.count % 3 === 0);
}

// An address in a sentence does not own the marks that follow it, nor a bracket that it does not open.
function withoutTail(url: string): string {
  const marks = url.split('(').length < url.split(')').length ? ".,;:!?'*_~)" : ".,;:!?'*_~";
  let end = url.length;
  while (marks.includes(url[end - 1]!)) --end;
  return url.slice(0, end);
}

function runLength(text: string, at: number): number {
  let end = at;
  while (text[end] === text[at]) ++end;
  return end - at;
}

// Without gaps, and neighbouring texts as one.
function joined(nodes: (Inline | null)[]): Inline[] {
  const list: Inline[] = [];
  for (const node of nodes) {
    const last = list.at(-1);
    if (!node || (node.kind === 'text' && node.text === '')) continue;
    if (node.kind === 'text' && last?.kind === 'text') last.text += node.text;
    else list.push(node.kind === 'text' ? { ...node } : node);
  }
  return list;
}
