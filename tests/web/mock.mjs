// Answers like `strata serve`: the page with its headers, streamed chats, /monitor/state. What it says depends on the
// last message, so that a test can ask for an answer that fails, never ends, or is hostile.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { root, web } from './load.mjs';
import { monitorState } from './mock_state.mjs';

const types = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml' };

// The policy that the server sends, from its own source.
function policy() {
  const text = readFileSync(join(root, 'src/server/web_assets.h'), 'utf8');
  const [, value] = /kWebPolicy =\s*((?:"[^"]*"\s*)+);/.exec(text);
  return [...value.matchAll(/"([^"]*)"/g)].map((match) => match[1]).join('');
}

export class MockServer {
  requests = []; // bodies of chats
  ended = 0; // answers whose client left
  key = null;
  status = 'ok';

  async start() {
    this.server = createServer((request, response) => void this.answer(request, response));
    await new Promise((ready) => this.server.listen(0, '127.0.0.1', ready));
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  async answer(request, response) {
    const path = new URL(request.url, 'http://localhost').pathname;
    const file = path === '/' ? 'index.html' : path.slice(1);
    if (/^(index\.html|page\.(js|css)|icon\.svg)$/.test(file)) {
      response.writeHead(200, { 'Content-Type': types[file.split('.')[1]], 'Content-Security-Policy': policy(), 'X-Content-Type-Options': 'nosniff' });
      return response.end(readFileSync(join(web, 'dist', file)));
    }
    if (this.key !== null && request.headers.authorization !== `Bearer ${this.key}`)
      return error(response, 401, 'authentication_error', 'an API key is needed');
    if (path === '/monitor/state') return json(response, monitorState(this.status));
    if (path === '/props') return json(response, { default_generation_settings: { params: { temperature: 0.7, top_k: 40, top_p: 0.95 } } });
    if (path === '/v1/chat/completions') return this.chat(request, response);
    return error(response, 404, 'not_found_error', `there is no ${path}`);
  }

  async chat(request, response) {
    let text = '';
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    this.requests.push(body);
    const asked = body.messages.at(-1).content;
    if (asked.includes('refuse')) return error(response, 400, 'exceed_context_size_error', 'the prompt has 9000 tokens, and the context 4096');
    let left = false;
    response.on('close', () => {
      if (!response.writableFinished) {
        left = true;
        ++this.ended;
      }
    });
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for await (const chunk of script(asked, this.requests.length)) {
      if (left) return;
      if (chunk === 'cut') return response.destroy();
      response.write(typeof chunk === 'string' ? chunk : `data: ${JSON.stringify(chunk)}\n\n`);
      await new Promise((done) => setTimeout(done, 4));
    }
    response.end('data: [DONE]\n\n');
  }
}

function json(response, value) {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(value));
}

function error(response, status, type, message) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ error: { code: status, message, type } }));
}

const delta = (delta, finish = null) => ({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
// As tokens come, but long texts in a tolerable time.
const pieces = (text) => text.match(text.length > 5000 ? /[^]{1,200}/g : /\s*\S{1,6}|\s+$/g) ?? [];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function* script(asked, number) {
  yield ': keep-alive\n\n';
  yield delta({ role: 'assistant', content: null });
  if (asked.includes('long prompt'))
    for (const processed of [512, 1024, 2048]) {
      yield { ...delta({}), choices: [], prompt_progress: { total: 4096, cache: 64, processed, time_ms: 1 } };
      await pause(150);
    }
  if (asked.includes('think')) for (const piece of pieces(thoughts)) yield delta({ reasoning_content: piece });
  if (asked.includes('only think')) return yield* ending('length');
  for (const piece of pieces(answers.find(([word]) => asked.includes(word))?.[1] ?? `Answer ${number}.`)) yield delta({ content: piece });
  if (asked.includes('for ever')) for (let i = 0; ; ++i) yield delta({ content: ` word${i}` });
  if (asked.includes('cut')) return yield 'cut';
  if (asked.includes('broken')) return yield { error: { code: 500, message: 'logits are not finite', type: 'server_error' } };
  yield* ending(asked.includes('limit') ? 'length' : 'stop');
}

function* ending(reason) {
  yield delta({}, reason);
  yield {
    object: 'chat.completion.chunk',
    choices: [],
    usage: { prompt_tokens: 1312, completion_tokens: 86, prompt_tokens_details: { cached_tokens: 1280 } },
    timings: { prompt_ms: 96.2, predicted_per_second: 31.4, draft_n: 60, draft_n_accepted: 41 },
  };
}

const thoughts = 'The question is about grep. I should say what it does, show one use, and name two options.\n\n- `-r`: folders\n- `-n`: line numbers';

const grep = `**grep** prints the lines of a text that match a pattern.

1. It reads files, or standard input.
2. It keeps the lines in which the *pattern* occurs:
   - \`-r\` looks into folders
   - \`-n\` shows line numbers

\`\`\`bash
# Where is main defined?
grep -rn "int main" src/ | head -5
\`\`\`

| Option | Meaning | Since |
|:--|:--|--:|
| \`-i\` | upper and lower case are the same | 1973 |
| \`-v\` | lines that do **not** match | 1973 |

> A pattern is a regular expression: see [the manual](https://www.gnu.org/software/grep/manual/).
`;

const hostile = `Hello <img src=x onerror="window.harmed=1"> <script>window.harmed=2</script>

<iframe srcdoc="<script>parent.harmed=3</script>"></iframe>

[click](javascript:window.harmed=4) ![pic](https://outside.invalid/p.png) <a href="javascript:harmed=5">b</a>

\`\`\`"><script>window.harmed=6</script>
</code></pre><script>window.harmed=7</script>
\`\`\`

| a | b |
|---|---|
| <svg onload=harmed=8> | &lt;script&gt;harmed=9&lt;/script&gt; |
`;

const code =
  'Here it is:\n\n```cpp\n' +
  Array.from({ length: 200 }, (_, i) => `int function_${i}(int value) { return value * ${i}; }  // a line that is long enough to need scrolling ${'-'.repeat(60)}`).join('\n') +
  '\n```\n\nThat was all.';

const answers = [
  ['grep', grep],
  ['hostile', hostile],
  ['long code', code],
  ['cut', 'This is the beginning of'],
  ['limit', 'As far as it goes'],
];
