// The turns of a chat, kept over a reload of the page. Each tab has its own; a new one begins with the last.

import { noSettings, readSettings, type ChatSettings } from './settings';

export interface Figures {
  promptTokens?: number;
  cachedTokens?: number;
  promptMs?: number;
  outputTokens?: number;
  outputRate?: number; // tokens a second
  drafted?: number;
  accepted?: number;
}

export interface Turn {
  role: 'user' | 'assistant';
  content: string;
  thinking?: string;
  thinkingMs?: number;
  note?: string; // how an answer ended, when not as usual
  failed?: boolean;
  figures?: Figures;
}

const stored = 'strata.chat';

export class Conversation {
  turns: Turn[] = [];
  settings: ChatSettings = noSettings();

  static load(): Conversation {
    const conversation = new Conversation();
    try {
      const value = JSON.parse(sessionStorage.getItem(stored) ?? localStorage.getItem(stored) ?? 'null');
      conversation.settings = readSettings(value?.settings);
      conversation.turns = readTurns(value?.turns);
    } catch {
      // nothing kept, or not by this page
    }
    return conversation;
  }

  save(): void {
    const text = JSON.stringify({ settings: this.settings, turns: this.turns });
    try {
      sessionStorage.setItem(stored, text);
      localStorage.setItem(stored, text);
    } catch {
      // full or forbidden: the chat goes on without
    }
  }

  // Answers that failed before they said anything are no part of what the model reads.
  messages(): { role: string; content: string }[] {
    const list = this.turns
      .filter((turn) => turn.role === 'user' || turn.content !== '')
      .map((turn) => ({ role: turn.role as string, content: turn.content }));
    const system = this.settings.system.trim();
    return system === '' ? list : [{ role: 'system', content: system }, ...list];
  }
}

function readTurns(value: unknown): Turn[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (turn): turn is Turn =>
      (turn?.role === 'user' || turn?.role === 'assistant') &&
      typeof turn.content === 'string' &&
      ['string', 'undefined'].includes(typeof turn.thinking) &&
      ['string', 'undefined'].includes(typeof turn.note),
  );
}
