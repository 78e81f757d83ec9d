// GET /monitor/state (docs/server.md). While the model loads all but time, status and the name are missing.

export interface SlotState {
  id: number;
  state: 'idle' | 'prompt' | 'output';
  request?: string;
  api?: string;
  prompt_tokens?: number;
  cached_tokens?: number;
  prompt_done?: number;
  output_tokens?: number;
  max_tokens?: number | null;
  context_used?: number;
  context?: number;
  age_s?: number;
  output_per_second?: number | null;
  draft_tokens?: number;
  draft_accepted?: number;
}

export interface ArmState {
  operator: string;
  arm: string;
  class: string;
  requested: string | null;
  evidence: string | null;
  of_bound: number | null;
  cases: number | null;
  date: string | null;
}

export interface Rates {
  step_s: number;
  end: number;
  prompt: number[];
  output: number[];
  running: number[];
  waiting: number[];
}

export interface StageTime {
  name: string;
  ms: number | null;
  calls: number;
}

export interface LastRequest {
  request: string;
  api: string;
  finish_reason: string | null;
  prompt_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  total_ms: number;
  spans: { name: string; start_ms: number; ms: number | null }[];
  stages: StageTime[];
  operators?: StageTime[];
}

export interface MonitorState {
  time: number;
  uptime_s: number;
  status: 'loading' | 'ok' | 'stopping' | 'failed';
  model: {
    name: string;
    description?: string;
    file_bytes?: number;
    context?: number;
    device?: string;
    threads?: number;
    chat?: boolean;
    thinking?: boolean;
  };
  limits?: { slots: number; queue: number; context: number; micro_batch: number; draft: string; draft_max: number };
  rates?: Rates;
  slots?: SlotState[];
  queue?: { waiting: number; limit: number; oldest_s: number | null };
  cache?: { sequences: number; queried_tokens: number; hit_tokens: number; used_bytes: number; budget_bytes: number | null } | null;
  drafts?: { windows: number; tokens: number; accepted: number; positions: { tried: number; accepted: number }[] };
  memory?: {
    process_bytes: number | null;
    peak_bytes: number | null;
    free_bytes: number | null;
    tiers: { name: string; place: string; used_bytes: number; limit_bytes: number | null }[];
  };
  arms?: ArmState[];
  counts?: {
    requests: number;
    finished: number;
    failed: number;
    cancelled: number;
    refused: number;
    prompt_tokens: number;
    output_tokens: number;
    broken_logits: number;
  };
  last?: LastRequest | null;
}
