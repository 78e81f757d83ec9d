// Says an answer to a screen reader as it grows: whole sentences, not too often.

import { el } from '../dom';

const pause = 2000; // ms between two announcements
const kept = 20; // announcements that stay in the page

export class Announcer {
  readonly node = el('div', { class: 'unseen', attrs: { 'aria-live': 'polite', 'aria-relevant': 'additions' } });
  private pending = '';
  private last = 0;

  say(text: string): void {
    this.node.append(el('p', {}, text));
    while (this.node.childNodes.length > kept) this.node.firstChild!.remove();
  }

  grow(text: string): void {
    this.pending += text;
    const now = performance.now();
    if (now - this.last < pause) return;
    const end = Math.max(...['. ', '? ', '! ', '\n'].map((mark) => this.pending.lastIndexOf(mark)));
    if (end < 0) return;
    this.say(this.pending.slice(0, end + 1));
    this.pending = this.pending.slice(end + 1);
    this.last = now;
  }

  finish(word: string): void {
    if (this.pending.trim() !== '') this.say(this.pending);
    this.pending = '';
    this.say(word);
  }
}
