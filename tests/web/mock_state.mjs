// A state of the Monitor as docs/server.md describes it, a little different each time.

let asked = 0;

const wave = (length, base, height, period, phase) =>
  Array.from({ length }, (_, i) => Math.max(0, Math.round(base + height * Math.sin((i + phase) / period) + (height / 4) * Math.sin((i + phase) * 1.7))));

export function monitorState(status) {
  const step = ++asked;
  const model = { name: 'strata-mini-q8_0' };
  if (status === 'loading') return { time: Date.now() / 1000, uptime_s: 0.4, status, model };
  return {
    time: Date.now() / 1000,
    uptime_s: 5025 + step,
    status,
    model: { ...model, description: 'qwen35, 12 layers, 29.3 M parameters', file_bytes: 29312544, context: 4096, device: 'cpu', threads: 2, chat: true, thinking: true, tools: true },
    limits: { slots: 4, queue: 64, context: 4096, micro_batch: 512, draft: 'auto', draft_max: 7, prompt_cache: true },
    rates: {
      step_s: 1,
      end: Math.floor(Date.now() / 1000),
      prompt: wave(300, 300, 800, 13, step),
      output: wave(300, 44, 22, 21, step),
      running: wave(300, 2, 2, 30, step),
      waiting: wave(300, 0, 3, 40, step),
    },
    slots: [
      { id: 0, state: 'output', request: 'chatcmpl-5f0a', api: 'chat', prompt_tokens: 900, cached_tokens: 832, prompt_done: 900, output_tokens: 100 + step, max_tokens: 256, context_used: 1000 + step, context: 1156, age_s: 4.2, output_per_second: 24.6, draft_tokens: 80, draft_accepted: 51 },
      { id: 1, state: 'prompt', request: 'msg-5f0c', api: 'messages', prompt_tokens: 3400, cached_tokens: 64, prompt_done: 1600, output_tokens: 0, max_tokens: null, context_used: 1600, context: 4096, age_s: 0.8, output_per_second: null, draft_tokens: 0, draft_accepted: 0 },
      { id: 2, state: 'output', request: 'chatcmpl-5f0d', api: 'chat', prompt_tokens: 40, cached_tokens: 0, prompt_done: 40, output_tokens: 310, max_tokens: null, context_used: 350, context: 4096, age_s: 14.1, output_per_second: 22.0, draft_tokens: 0, draft_accepted: 0 },
      { id: 3, state: 'idle' },
    ],
    queue: { waiting: 1, limit: 64, oldest_s: 0.4 },
    cache: { sequences: 3, queried_tokens: 52000, hit_tokens: 41000, used_bytes: 73400320, budget_bytes: 2147483648 },
    drafts: {
      windows: 1200, tokens: 3000, accepted: 2100,
      positions: [[1200, 1010], [820, 590], [500, 310], [280, 130], [120, 44], [60, 12], [20, 4]].map(([tried, accepted]) => ({ tried, accepted })),
    },
    memory: {
      process_bytes: 161000000, peak_bytes: 170000000, free_bytes: 9000000000,
      tiers: [
        { name: 'weights', place: 'file', used_bytes: 29312544, limit_bytes: null },
        { name: 'sequences', place: 'memory', used_bytes: 73400320, limit_bytes: 2147483648 },
        { name: 'kv file', place: 'file', used_bytes: 0, limit_bytes: null },
      ],
    },
    arms: [
      { operator: 'attention', arm: 'avx512', class: 'cpu-avx512', requested: null, evidence: 'verified', of_bound: 0.31, cases: 96, date: '2026-11-29' },
      { operator: 'causal_conv', arm: 'avx2', class: 'cpu-avx2', requested: 'avx512', evidence: 'stale', of_bound: 0.12, cases: 40, date: '2026-11-20' },
      { operator: 'gated_delta', arm: 'chunk_avx512', class: 'cpu-avx512', requested: 'chunk_avx512', evidence: 'verified', of_bound: 0.044, cases: 210, date: '2026-11-29' },
      { operator: 'matmul', arm: 'avx512vnni', class: 'cpu-avx512vnni', requested: null, evidence: 'failed', of_bound: 1.7, cases: 96, date: '2026-11-29' },
      { operator: 'norm', arm: 'portable', class: 'cpu-portable', requested: null, evidence: 'never run', of_bound: null, cases: null, date: null },
      { operator: 'rope', arm: 'portable', class: 'cpu-portable', requested: null, evidence: null, of_bound: null, cases: null, date: null },
    ],
    counts: { requests: 1812, finished: 1790, failed: 2, cancelled: 16, refused: 3, prompt_tokens: 540210, output_tokens: 90110, steps: 102100, broken_logits: 0 },
    last: {
      request: 'chatcmpl-5f0b', api: 'chat', finish_reason: 'stop', prompt_tokens: 900, cached_tokens: 64, output_tokens: 40, total_ms: 1312.5,
      spans: [{ name: 'queue', start_ms: 0, ms: 0.3 }, { name: 'prompt', start_ms: 0.3, ms: 411.0 }, { name: 'output', start_ms: 411.3, ms: 901.2 }],
      stages: [{ name: 'draft', ms: 120.4, calls: 41 }, { name: 'prompt pass', ms: 411, calls: 2 }, { name: 'output pass', ms: 740.2, calls: 40 }, { name: 'choose', ms: null, calls: 41 }],
      operators: Array.from({ length: 15 }, (_, i) => ({ name: `operator ${i}`, ms: 300 / (i + 1), calls: 40 * (i + 1) })),
    },
  };
}
