// One request for an answer, from the fields of the stream to what the page shows.

import { requestOk } from '../api';
import { sseEvents } from '../sse';
import type { Figures } from './conversation';

export type AnswerEvent =
  | { kind: 'prompt'; done: number; total: number }
  | { kind: 'thinking'; text: string }
  | { kind: 'content'; text: string }
  | { kind: 'finish'; reason: string }
  | { kind: 'figures'; figures: Figures };

export async function* streamAnswer(body: Record<string, unknown>, signal: AbortSignal): AsyncGenerator<AnswerEvent> {
  const response = await requestOk('v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true }, return_progress: true }),
    signal,
  });
  let finished = false;
  for await (const event of sseEvents(response.body!)) {
    if (event.data === '[DONE]') return;
    const chunk = JSON.parse(event.data) as Chunk;
    if (chunk.error) throw new Error(chunk.error.message || 'The server could not go on.');
    for (const one of chunkEvents(chunk)) {
      finished ||= one.kind === 'finish';
      yield one;
    }
  }
  if (!finished) throw new Error('The connection ended before the answer did.');
}

interface Chunk {
  error?: { message?: string };
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null }; finish_reason?: string | null }[];
  prompt_progress?: { total: number; cache: number; processed: number };
  usage?: { prompt_tokens?: number; completion_tokens?: number; prompt_tokens_details?: { cached_tokens?: number } } | null;
  timings?: {
    prompt_ms?: number;
    predicted_per_second?: number;
    draft_n?: number;
    draft_n_accepted?: number;
  };
}

export function chunkEvents(chunk: Chunk): AnswerEvent[] {
  const events: AnswerEvent[] = [];
  const progress = chunk.prompt_progress;
  if (progress) events.push({ kind: 'prompt', done: progress.processed, total: progress.total });
  const choice = chunk.choices?.[0];
  if (choice?.delta?.reasoning_content) events.push({ kind: 'thinking', text: choice.delta.reasoning_content });
  if (choice?.delta?.content) events.push({ kind: 'content', text: choice.delta.content });
  if (choice?.finish_reason) events.push({ kind: 'finish', reason: choice.finish_reason });
  const figures: Figures = {};
  const put = (name: keyof Figures, value: number | undefined | null) => {
    if (typeof value === 'number' && Number.isFinite(value)) figures[name] = value;
  };
  put('promptTokens', chunk.usage?.prompt_tokens);
  put('cachedTokens', chunk.usage?.prompt_tokens_details?.cached_tokens);
  put('outputTokens', chunk.usage?.completion_tokens);
  put('promptMs', chunk.timings?.prompt_ms);
  put('outputRate', chunk.timings?.predicted_per_second);
  put('drafted', chunk.timings?.draft_n);
  put('accepted', chunk.timings?.draft_n_accepted);
  if (Object.keys(figures).length > 0) events.push({ kind: 'figures', figures });
  return events;
}
