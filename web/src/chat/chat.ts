// The chat: turns, the answer that is being written, and what a user can do with them.

import { el, iconButton } from '../dom';
import { getJson } from '../api';
import { count } from '../format';
import { icons } from '../icons';
import { Announcer } from './announcer';
import { streamAnswer, type AnswerEvent } from './answer';
import { Composer } from './composer';
import { Conversation, type Turn } from './conversation';
import { settingsBody } from './settings';
import { SettingsPanel, type Defaults } from './settings_panel';
import { AssistantTurn, UserTurn, type TurnActions } from './turn';

const nearEnd = 48; // pixels from the end that count as being there
const frame = 40; // ms between two paintings at least

export class Chat {
  readonly node: HTMLElement;
  private readonly conversation = Conversation.load();
  private readonly list = el('div', { class: 'turns', attrs: { role: 'log', 'aria-live': 'off', 'aria-label': 'Chat' } });
  private readonly scroller: HTMLElement;
  private readonly downButton = iconButton(icons.down, 'To the end', () => this.toEnd());
  private readonly announcer = new Announcer();
  private readonly composer: Composer;
  private readonly panel: SettingsPanel;
  private readonly welcome = el('div', { class: 'welcome' });
  private views: (UserTurn | AssistantTurn)[] = [];
  private running: AbortController | null = null;
  private thinks = true; // thinking can be switched
  private follow = true; // the end of the text stays in sight

  constructor() {
    this.composer = new Composer({
      send: (text) => this.send(text),
      stop: () => this.stop(),
      editLast: () => this.editLast(),
    });
    this.panel = new SettingsPanel(this.conversation.settings, (settings) => {
      this.conversation.settings = settings;
      this.conversation.save();
    });
    this.scroller = el('div', { class: 'scroller', attrs: { tabindex: -1 } }, this.welcome, this.list);
    this.scroller.addEventListener('scroll', () => this.scrolled());
    this.downButton.classList.add('down');
    this.node = el(
      'section',
      { class: 'chat', attrs: { 'aria-label': 'Chat' } },
      this.scroller,
      el('div', { class: 'bottom' }, this.downButton, this.composer.node),
      this.announcer.node,
      this.panel.node,
    );
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.running || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      this.stop();
    });
    this.rebuild();
  }

  tools(): HTMLElement[] {
    return [
      iconButton(icons.plus, 'New chat', () => this.clear()),
      iconButton(icons.settings, 'Settings', () => void this.openSettings()),
    ];
  }

  shown(): void {
    this.composer.focus();
    if (this.follow) this.toEnd();
  }

  setModel(name: string, facts: string, thinks: boolean): void {
    this.thinks = thinks;
    this.welcome.replaceChildren(el('h2', {}, name), el('p', {}, facts));
  }

  private async openSettings(): Promise<void> {
    let defaults: Defaults = {};
    try {
      const props = (await getJson('props')) as { default_generation_settings?: { params?: Defaults } & Defaults };
      const given = props.default_generation_settings ?? {};
      defaults = { ...given, ...given.params };
    } catch {
      // the panel works without them
    }
    this.panel.open(defaults, this.thinks);
  }

  private clear(): void {
    this.stop();
    this.conversation.turns = [];
    this.conversation.save();
    this.rebuild();
    this.composer.focus();
  }

  private send(text: string): void {
    if (this.running) return;
    this.conversation.turns.push({ role: 'user', content: text });
    this.conversation.save();
    this.add(this.conversation.turns.at(-1)!);
    void this.answer();
  }

  private stop(): void {
    this.running?.abort();
  }

  private readonly actions: TurnActions = {
    again: () => {
      if (this.running) return;
      this.conversation.turns.pop();
      this.rebuild();
      this.composer.focus();
      void this.answer();
    },
    edit: (turn, text) => {
      if (this.running) return;
      const { turns } = this.conversation;
      turns.length = turns.indexOf(turn);
      this.rebuild();
      this.composer.focus();
      this.send(text);
    },
  };

  private editLast(): void {
    if (this.running) return;
    this.views.findLast((view): view is UserTurn => view instanceof UserTurn)?.edit();
  }

  private async answer(): Promise<void> {
    const { conversation } = this;
    const messages = conversation.messages();
    const turn: Turn = { role: 'assistant', content: '' };
    conversation.turns.push(turn);
    const running = (this.running = new AbortController());
    const view = this.add(turn) as AssistantTurn;
    this.composer.setRunning(true);
    this.toEnd();
    view.showWaiting('Waiting');
    const painter = new Painter(() => this.keepEnd(() => view.paint(false)));
    const writer = new AnswerWriter(turn, view, this.announcer);
    painter.paint();
    try {
      const body = { messages, ...settingsBody(conversation.settings) };
      for await (const event of streamAnswer(body, running.signal)) {
        writer.take(event);
        painter.paint();
      }
      writer.finish();
    } catch (error) {
      writer.fail(running.signal.aborted ? null : error);
    }
    painter.end();
    this.running = null;
    this.markLast();
    this.keepEnd(() => view.paint(true));
    this.composer.setRunning(false);
    this.announcer.finish(turn.failed ? 'The answer failed.' : turn.note || 'The answer is complete.');
    if (conversation.turns.includes(turn)) conversation.save();
  }

  private add(turn: Turn): UserTurn | AssistantTurn {
    const view = turn.role === 'user' ? new UserTurn(turn, this.actions) : new AssistantTurn(turn, this.actions);
    this.views.push(view);
    this.list.append(view.node);
    this.welcome.hidden = true;
    this.markLast();
    return view;
  }

  private rebuild(): void {
    this.views = [];
    this.list.replaceChildren();
    this.welcome.hidden = false;
    for (const turn of this.conversation.turns) this.add(turn);
  }

  // Only the last message can be changed, and only the last answer made again.
  private markLast(): void {
    const user = this.views.findLast((view) => view instanceof UserTurn);
    for (const view of this.views) {
      if (view instanceof UserTurn) view.allowEdit(view === user && !this.running);
      else view.allowAgain(view === this.views.at(-1));
    }
  }

  private scrolled(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    this.follow = scrollHeight - scrollTop - clientHeight < nearEnd;
    this.downButton.classList.toggle('shown', !this.follow);
    this.downButton.tabIndex = this.follow ? -1 : 0;
  }

  private toEnd(): void {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.scrolled();
  }

  private keepEnd(change: () => void): void {
    const follow = this.follow;
    change();
    if (follow) this.toEnd();
  }
}

// Paints no more often than can be seen, and leaves at least as much time as the last painting took.
class Painter {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private wait = 0;

  constructor(private readonly work: () => void) {}

  paint(): void {
    this.timer ??= setTimeout(() => {
      const begin = performance.now();
      this.timer = null;
      this.work();
      this.wait = Math.max(frame, 2 * (performance.now() - begin));
    }, this.wait);
  }

  end(): void {
    if (this.timer !== null) clearTimeout(this.timer);
  }
}

// From the events of an answer to its turn.
class AnswerWriter {
  private thinkingSince = 0;
  private started = false;
  private reason = '';

  constructor(
    private readonly turn: Turn,
    private readonly view: AssistantTurn,
    private readonly announcer: Announcer,
  ) {}

  take(event: AnswerEvent): void {
    const { turn } = this;
    this.started = true;
    switch (event.kind) {
      case 'prompt':
        this.view.showWaiting(`Reading the prompt: ${count(event.done)} of ${count(event.total)} tokens`, event.done / Math.max(1, event.total));
        break;
      case 'thinking':
        this.begun();
        if (turn.thinking === undefined) this.announcer.say('Thinking.');
        this.thinkingSince ||= performance.now();
        turn.thinking = (turn.thinking ?? '') + event.text;
        turn.thinkingMs = performance.now() - this.thinkingSince;
        break;
      case 'content':
        this.begun();
        turn.content += event.text;
        this.announcer.grow(event.text);
        break;
      case 'finish':
        this.reason = event.reason;
        break;
      case 'figures':
        turn.figures = { ...turn.figures, ...event.figures };
    }
  }

  private begun(): void {
    this.view.showWaiting(null);
  }

  finish(): void {
    const { turn, reason } = this;
    const limit = reason === 'length' ? 'Ended at the limit of tokens' : '';
    const other = reason !== 'stop' && !limit ? `Ended: ${reason}` : '';
    const inThought = turn.content === '' && turn.thinking ? 'while the model was still thinking' : '';
    const note = [limit || other || (inThought && 'Ended'), inThought].filter(Boolean).join(', ');
    if (note) turn.note = `${note}.`;
    else if (turn.content === '') turn.note = 'The answer is empty.';
  }

  // null: the user stopped it.
  fail(error: unknown): void {
    const { turn } = this;
    turn.failed = error !== null;
    // fetch throws a TypeError when nothing answers, and when the connection is lost.
    const lost = this.started ? 'The connection ended before the answer did.' : 'The server cannot be reached.';
    if (error === null) turn.note = 'Stopped.';
    else turn.note = error instanceof Error && !(error instanceof TypeError) ? error.message : lost;
  }
}
