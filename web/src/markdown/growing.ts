// A text that grows while it is shown: blocks that can no longer change are parsed once.

import { parseLines, splitLines, type Block } from './blocks';

export interface Change {
  kept: number; // blocks at the beginning that stay as they were
  blocks: Block[]; // what follows them
}

export class GrowingMarkdown {
  private source = '';
  private settled = 0; // characters of blocks that are complete
  private count = 0; // of those blocks

  // `text`: the whole so far. One that does not continue the last one begins anew.
  update(text: string): Change {
    if (!text.startsWith(this.source)) this.settled = this.count = 0;
    this.source = text;
    const change = { kept: this.count, blocks: [] as Block[] };
    const lines = splitLines(text.slice(this.settled));
    const placed = parseLines(lines, 0);
    change.blocks = placed.map((one) => one.block);
    // The last block may go on, and so may the one before it while the last line is not whole.
    const open = placed.at(-1)?.line === lines.length - 1 ? 2 : 1;
    const first = placed[placed.length - open];
    if (first && placed.length > open) {
      this.settled += offset(text, this.settled, first.line);
      this.count += placed.length - open;
    }
    return change;
  }
}

// Characters from `from` to the beginning of its line number `line`.
function offset(text: string, from: number, line: number): number {
  let at = from;
  for (let i = 0; i < line; ++i) at = text.indexOf('\n', at) + 1;
  return at - from;
}
