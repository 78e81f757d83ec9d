// The official clients of the OpenAI and Anthropic APIs against a server with the default model: node clients.mjs URL
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const url = process.argv[2];
const openai = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const answer = 'The ls command is used to list directory contents.';
const messages = [{ role: 'user', content: 'What does ls do?' }];
const schema = {
  type: 'object',
  properties: { city: { enum: ['Rome', 'Paris'] }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const tools = [{ type: 'function', function: { name: 'get_weather', parameters: schema } }];

function checkArguments(value) {
  assert.ok(['Rome', 'Paris'].includes(value.city));
  assert.ok(Number.isInteger(value.days));
}

const cases = {
  async 'openai: chat'() {
    const made = await openai.chat.completions.create({ model: 'm', messages });
    assert.equal(made.choices[0].message.content, answer);
    assert.equal(made.choices[0].finish_reason, 'stop');
    assert.equal(made.usage.total_tokens, made.usage.prompt_tokens + made.usage.completion_tokens);
  },
  async 'openai: chat, streamed, with usage'() {
    let text = '';
    let usage;
    const stream = await openai.chat.completions.create({
      model: 'm', messages, stream: true, stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, answer);
    assert.ok(usage.completion_tokens > 0);
  },
  async 'openai: tools, streamed'() {
    const stream = openai.chat.completions.stream({
      model: 'm', messages, tools, tool_choice: 'required', parallel_tool_calls: false,
    });
    let streamed = '';
    stream.on('tool_calls.function.arguments.delta', (event) => { streamed += event.arguments_delta; });
    const made = await stream.finalChatCompletion();
    assert.equal(made.choices[0].finish_reason, 'tool_calls');
    const [call] = made.choices[0].message.tool_calls;
    assert.equal(call.function.name, 'get_weather');
    assert.equal(call.function.arguments, streamed);
    checkArguments(JSON.parse(streamed));
  },
  async 'openai: schema'() {
    const made = await openai.chat.completions.create({
      model: 'm', messages, response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
    });
    checkArguments(JSON.parse(made.choices[0].message.content));
  },
  async 'openai: completions with log-probabilities'() {
    const made = await openai.completions.create({ model: 'm', prompt: 'The Linux kernel', max_tokens: 5, logprobs: 2 });
    assert.equal(made.choices[0].logprobs.tokens.join(''), made.choices[0].text);
  },
  async 'openai: embeddings, in both encodings'() {
    const input = ['list files', 'What does ls do?'];
    const made = await openai.embeddings.create({ model: 'm', input }); // asks for base64
    const plain = await openai.embeddings.create({ model: 'm', input, encoding_format: 'float' });
    assert.equal(made.data.length, 2);
    for (const [i, one] of made.data.entries()) {
      assert.equal(one.index, i);
      assert.deepEqual([...one.embedding], plain.data[i].embedding.map(Math.fround));
      assert.ok(Math.abs(one.embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5);
    }
    assert.equal(made.usage.prompt_tokens, made.usage.total_tokens);
    await assert.rejects(openai.embeddings.create({ model: 'm', input, dimensions: 8 }), /dimensions/);
  },
  async 'openai: responses'() {
    const made = await openai.responses.create({ model: 'm', input: 'What does ls do?' });
    assert.equal(made.output_text, answer);
  },
  async 'openai: responses, streamed, with a tool'() {
    const stream = openai.responses.stream({
      model: 'm', input: 'Weather?', tool_choice: 'required', parallel_tool_calls: false,
      tools: [{ type: 'function', name: 'get_weather', parameters: schema, strict: true }],
    });
    const types = [];
    for await (const event of stream) types.push(event.type);
    assert.equal(types.at(-1), 'response.completed');
    const made = await stream.finalResponse();
    const call = made.output.find((item) => item.type === 'function_call');
    checkArguments(JSON.parse(call.arguments));
  },
  async 'openai: errors'() {
    await assert.rejects(openai.chat.completions.create({ model: 'm', messages: [] }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === 'messages');
    await assert.rejects(openai.chat.completions.create({ model: 'm', messages, temperature: 'x' }), OpenAI.BadRequestError);
    await assert.rejects(openai.models.retrieve('other'), OpenAI.NotFoundError);
  },
  async 'openai: models'() {
    const names = [];
    for await (const model of openai.models.list()) names.push(model.id);
    assert.equal(names.length, 1);
    assert.equal((await openai.models.retrieve(names[0])).id, names[0]);
  },
  async 'anthropic: messages'() {
    const made = await anthropic.messages.create({ model: 'm', max_tokens: 50, messages });
    assert.equal(made.content[0].text, answer);
    assert.equal(made.stop_reason, 'end_turn');
    assert.equal((await anthropic.messages.countTokens({ model: 'm', messages })).input_tokens,
      made.usage.input_tokens + made.usage.cache_read_input_tokens);
  },
  async 'anthropic: messages, streamed'() {
    const stream = anthropic.messages.stream({ model: 'm', max_tokens: 50, messages, stop_sequences: [' is used'] });
    let text = '';
    stream.on('text', (part) => { text += part; });
    const made = await stream.finalMessage();
    assert.equal(text, 'The ls command');
    assert.equal(made.stop_reason, 'stop_sequence');
    assert.equal(made.stop_sequence, ' is used');
  },
  async 'anthropic: tools, streamed'() {
    const stream = anthropic.messages.stream({
      model: 'm', max_tokens: 80, messages, tools: [{ name: 'get_weather', input_schema: schema }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    });
    const made = await stream.finalMessage();
    assert.equal(made.stop_reason, 'tool_use');
    checkArguments(made.content.find((block) => block.type === 'tool_use').input);
  },
  async 'anthropic: errors'() {
    await assert.rejects(anthropic.messages.create({ model: 'm', max_tokens: 0, messages }), Anthropic.BadRequestError);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log('ok   ' + name);
  } catch (error) {
    ++failed;
    console.log('FAIL ' + name + '\n' + (error.stack ?? error));
  }
}
process.exitCode = failed > 0 ? 1 : 0;
