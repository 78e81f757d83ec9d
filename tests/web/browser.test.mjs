// The page used as a person would, in Chromium, against a server that answers like the real one. Screenshots go to
// SCREENSHOTS. CHROMIUM names the browser.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { packageOf, root } from './load.mjs';
import { MockServer } from './mock.mjs';

const { chromium } = packageOf('playwright-core');
const screenshots = process.env.SCREENSHOTS ?? join(root, 'build', 'screenshots');
mkdirSync(screenshots, { recursive: true });

let browser, server, context, page;
let trouble; // what a user would find in the console, and requests that leave the server

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
});
after(async () => browser?.close());

beforeEach(async () => {
  server = await new MockServer().start();
  await open();
});
afterEach(async () => {
  await context.close();
  await server.stop();
  assert.deepEqual(trouble, []);
});

async function open(options = {}, hash = '') {
  await context?.close();
  trouble = [];
  context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: 'light', reducedMotion: 'reduce', ...options });
  page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on('pageerror', (error) => trouble.push(String(error)));
  page.on('console', (message) => {
    // The browser itself notes answers such as 401; the page shows those.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) trouble.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url)) trouble.push(request.url());
  });
  await page.goto(server.url + hash);
}

const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
const message = () => page.getByRole('textbox', { name: 'Message' });
const answers = () => page.getByRole('article', { name: 'Answer' });
const button = (name) => page.getByRole('button', { name, exact: true });

async function say(text) {
  await message().fill(text);
  await message().press('Enter');
}

// The answer is whole when its buttons are there.
async function answered(count) {
  await answers().nth(count - 1).locator('footer').waitFor();
  assert.equal(await answers().count(), count);
  return answers().nth(count - 1);
}

test('a question is answered as it streams, with its thoughts folded', async () => {
  await page.getByRole('heading', { name: 'strata-mini-q8_0' }).waitFor();
  await shot('chat-empty');
  await say('please think: what does grep do?');
  await page.locator('summary').getByText('Thinking').waitFor();
  const answer = await answered(1);
  await answer.getByText('Thought for').waitFor();
  assert.equal(await answer.getByText('The question is about grep').isVisible(), false);
  await shot('chat');
  await answer.getByText('Thought for').click();
  await answer.getByText('The question is about grep').waitFor();
  assert.equal(await answer.locator('.thinking li').count(), 2);
  await shot('chat-thoughts');
  assert.equal(await answer.locator('strong').first().textContent(), 'grep');
  assert.equal(await answer.locator('ol > li > ul > li').count(), 2);
  assert.equal(await answer.locator('table tbody tr').count(), 2);
  assert.match(await answer.locator('pre').textContent(), /^# Where is main defined\?\ngrep -rn/);
  const link = answer.getByRole('link', { name: 'the manual' });
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
  assert.match(await answer.locator('.figures').textContent(), /^86 tokens at 31\.4 tok\/s · prompt 1,312 \(1,280 cached\) in 96 ms · 68 % of drafts accepted$/);
  const [sent] = server.requests;
  assert.deepEqual(sent.messages, [{ role: 'user', content: 'please think: what does grep do?' }]);
  assert.equal(sent.stream, true);
  assert.equal('temperature' in sent, false);
});

test('what a model writes is text, whatever it is', async () => {
  await say('hostile');
  const answer = await answered(1);
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  assert.equal(await answer.locator('img, script, iframe, [onerror], [onload], a[href^="javascript"]').count(), 0);
  const text = await answer.textContent();
  for (const part of ['<img src=x onerror=', '<script>window.harmed=2</script>', '<iframe srcdoc=', '[click](javascript:', '</code></pre><script>', '<svg onload'])
    assert.ok(text.includes(part), part);
  await shot('chat-hostile');
  // And what the user writes.
  await say('<img src=x onerror="harmed=1"> **not bold**');
  await answered(2);
  assert.equal(await page.locator('.said').nth(1).textContent(), '<img src=x onerror="harmed=1"> **not bold**');
});

test('an answer is stopped, by key and by button, and the server sees it', async () => {
  await say('for ever');
  await page.getByText('word20 ').waitFor();
  await shot('chat-streaming');
  await page.locator('.said').hover();
  assert.equal(await button('Edit this message').count(), 0); // not while it is answered
  await page.keyboard.press('Escape');
  await answered(1);
  await page.getByText('Stopped.').first().waitFor();
  await until(() => server.ended === 1);
  await say('for ever again');
  await page.getByText('word9 ').nth(1).waitFor();
  await button('Stop (Esc)').click();
  await answered(2);
  await until(() => server.ended === 2);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'message');
});

test('the last answer is made again, and the last message changed', async () => {
  await say('first');
  await answered(1);
  await say('second');
  await (await answered(2)).getByText('Answer 2.').waitFor();
  assert.equal(await button('Answer again').count(), 1);
  await button('Answer again').click();
  await answers().nth(1).getByText('Answer 3.').waitFor();
  await answered(2);
  assert.deepEqual(server.requests[2].messages, server.requests[1].messages);
  await page.locator('.said').last().hover();
  await button('Edit this message').click();
  const editor = page.getByRole('textbox', { name: 'Edit the message' });
  assert.equal(await editor.inputValue(), 'second');
  await shot('chat-edit');
  await editor.press('Escape');
  await page.locator('.said').last().hover();
  await button('Edit this message').click();
  await editor.fill('changed');
  await button('Send').first().click();
  await answers().nth(1).getByText('Answer 4.').waitFor();
  await answered(2);
  assert.deepEqual(server.requests[3].messages.map((one) => one.content), ['first', 'Answer 1.', 'changed']);
});

test('settings are sent, kept, and marked where they cannot hold', async () => {
  await button('Settings').click();
  await page.getByLabel('System prompt').fill('Answer in one line.');
  assert.equal(await page.getByLabel('Temperature').getAttribute('placeholder'), '0.7');
  await page.getByLabel('Temperature').fill('0.2');
  await page.getByLabel('Top k').fill('2.5');
  assert.equal(await page.getByLabel('Top k').getAttribute('aria-invalid'), '');
  await page.getByText('a whole number, 0 to 1000000').waitFor();
  await page.getByLabel('Seed').fill('7');
  await page.getByLabel('Thinking', { exact: true }).selectOption('off');
  await page.getByLabel('Stop strings').fill('END\n\nSTOP');
  await shot('settings');
  await page.keyboard.press('Escape');
  await page.reload();
  await say('first');
  await answered(1);
  const [sent] = server.requests;
  assert.deepEqual(sent.messages[0], { role: 'system', content: 'Answer in one line.' });
  assert.equal(sent.temperature, 0.2);
  assert.equal(sent.seed, 7);
  assert.deepEqual(sent.stop, ['END', 'STOP']);
  assert.deepEqual(sent.chat_template_kwargs, { enable_thinking: false });
  assert.equal('top_k' in sent, false);
  await button('Settings').click();
  await button('Back to the defaults').click();
  await button('Close').click();
  await say('second');
  await answered(2);
  assert.equal(server.requests[1].messages[0].role, 'user');
  assert.equal('temperature' in server.requests[1], false);
});

test('a chat lasts over a reload until a new one is begun', async () => {
  await say('first');
  await answered(1);
  await page.reload();
  await answers().getByText('Answer 1.').waitFor();
  await button('New chat').click();
  assert.equal(await answers().count(), 0);
  await page.reload();
  await page.getByRole('heading', { name: 'strata-mini-q8_0' }).waitFor();
  assert.equal(await answers().count(), 0);
});

test('each tab has its own chat, and a new one begins with the last', async () => {
  await say('first');
  await answered(1);
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByText('Answer 1.').waitFor();
  await other.getByRole('button', { name: 'New chat' }).click();
  await page.reload();
  await answers().getByText('Answer 1.').waitFor();
});

test('errors are shown, and the chat goes on', async () => {
  await say('refuse');
  await page.getByText('the prompt has 9000 tokens, and the context 4096').first().waitFor();
  await say('cut');
  await page.getByText('The connection ended before the answer did.').first().waitFor();
  await page.getByText('This is the beginning of').first().waitFor();
  await say('broken');
  await page.getByText('logits are not finite').first().waitFor();
  await shot('chat-errors');
  await say('limit');
  await page.getByText('Ended at the limit of tokens.').first().waitFor();
  await say('only think');
  await page.getByText('Ended at the limit of tokens, while the model was still thinking.').first().waitFor();
  await answered(5);
  // What failed before it said anything is not sent again.
  assert.deepEqual(server.requests.at(-1).messages.map((one) => one.role), ['user', 'user', 'assistant', 'user', 'assistant', 'user', 'assistant', 'user']);
});

test('a long prompt shows how far it is read', async () => {
  await say('long prompt');
  await page.getByText('Reading the prompt: 1,024 of 4,096 tokens').waitFor();
  assert.equal(await page.locator('progress').isVisible(), true);
  await answered(1);
  assert.equal(await page.locator('progress').isVisible(), false);
});

test('long code scrolls within its frame, and can be copied', async () => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await say('long code');
  const answer = await answered(1);
  await answer.getByText('That was all.').waitFor();
  const pre = answer.locator('pre');
  const size = await pre.evaluate((node) => [node.clientWidth, node.scrollWidth, node.clientHeight, node.scrollHeight, document.documentElement.scrollWidth, innerWidth]);
  assert.ok(size[1] > size[0] && size[3] > size[2], String(size));
  assert.ok(size[4] <= size[5], String(size));
  await pre.focus();
  await page.keyboard.press('ArrowRight');
  await until(() => pre.evaluate((node) => node.scrollLeft > 0));
  await page.keyboard.press('ArrowLeft');
  await shot('chat-long-code');
  await button('Copy code').click();
  await button('Copied').waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied.split('\n').length, 200);
  assert.match(copied, /^int function_0\(int value\)/);
  await button('Copy this answer').click();
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())).startsWith('Here it is:\n\n```cpp\n'));
});

test('the end stays in sight unless the reader has left it', async () => {
  await say('long code');
  await answered(1);
  await say('for ever');
  await page.getByText('word60 ').waitFor();
  const distance = () => page.locator('.scroller').evaluate((node) => node.scrollHeight - node.scrollTop - node.clientHeight);
  assert.ok((await distance()) < 60);
  await page.locator('.scroller').evaluate((node) => (node.scrollTop = 0));
  const place = await page.locator('.scroller').evaluate((node) => node.scrollTop);
  await page.getByText('word200 ').waitFor();
  assert.equal(await page.locator('.scroller').evaluate((node) => node.scrollTop), place);
  await button('To the end').click();
  assert.ok((await distance()) < 60);
  await page.keyboard.press('Escape');
});

test('the key is asked for, kept for the tab, and asked for again when wrong', async () => {
  server.key = 'right';
  await open();
  const field = page.getByLabel('Key, kept until this tab is closed');
  await field.fill('wrong');
  await field.press('Enter');
  await page.getByText('The server does not accept this key.').waitFor();
  await shot('key');
  await field.fill('right');
  await button('Use this key').click();
  await page.getByRole('heading', { name: 'strata-mini-q8_0' }).waitFor();
  await say('first');
  await answered(1);
  assert.equal(await page.evaluate(() => Object.values(localStorage).join().includes('right')), false);
  await page.reload();
  await page.locator('.status').getByText('strata-mini-q8_0').waitFor();
  assert.equal(await field.count(), 0);
});

test('without the key the page says so, and asks when it is used', async () => {
  server.key = 'right';
  await open();
  await button('Cancel').click();
  await page.locator('.status').getByText('This server needs an API key.').waitFor();
  await say('first');
  await page.getByLabel('Key, kept until this tab is closed').fill('right');
  await button('Use this key').click();
  await answered(1);
});

test('the Monitor shows curves, slots, caches, drafts, memory, arms and spans', async () => {
  await page.getByRole('link', { name: 'Monitor' }).click();
  const monitor = page.getByRole('region', { name: 'Monitor' });
  await monitor.getByText('4 min').first().waitFor();
  assert.equal(await monitor.locator('.line').count(), 4);
  const curve = () => monitor.locator('.line.output').getAttribute('d');
  const first = await curve();
  assert.equal(first.split('L').length, 300);
  await until(async () => (await curve()) !== first);
  for (const text of ['1,600 of 3,400 prompt tokens', '41,000 of 52,000, 79 %', 'Position 7', 'kv file', '2,100 of 3,000 tokens accepted, 70 %', 'no records here', 'never run', 'asked for: avx512', '411 ms', '901 ms', '740 ms, 40 calls', 'unknown, 41 calls', 'operator 11', '3 others', '70.0 MiB of 2.0 GiB · memory'])
    await monitor.getByText(text).first().waitFor();
  const label = await monitor.getByRole('img', { name: 'Output rate in tokens a second' }).getAttribute('aria-label');
  assert.match(label, /^Output rate in tokens a second\. tokens\/s: [\d.]+ now, at most [\d.]+$/);
  await shot('monitor');
  await page.screenshot({ path: join(screenshots, 'monitor-whole.png'), fullPage: true });
  await monitor.evaluate((node) => node.scrollTo(0, 1e6));
  await shot('monitor-end');
  await monitor.evaluate((node) => node.scrollTo(0, 0));
  await monitor.locator('.plot').nth(1).hover({ position: { x: 150, y: 60 } });
  await monitor.getByText(/tokens\/s, \d+ s ago/).waitFor();
});

test('the Monitor says when the model loads, and when the server is gone', async () => {
  server.status = 'loading';
  await open({}, '#monitor');
  await page.getByText('Loading strata-mini-q8_0').waitFor();
  server.status = 'ok';
  await page.getByText('Arms that ran').waitFor();
  await server.stop();
  await page.getByRole('region', { name: 'Monitor' }).getByText('The server cannot be reached.').waitFor();
  await server.start();
});

test('dark, as the system has it or as chosen', async () => {
  await open({ colorScheme: 'dark' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await say('please think: what does grep do?');
  await answered(1);
  await shot('chat-dark');
  await button('Colours: as the system').click();
  assert.notEqual(await ground(), dark);
  await page.reload();
  assert.notEqual(await ground(), dark);
  await button('Colours: light').click();
  assert.equal(await ground(), dark);
  await page.goto(server.url + '#monitor');
  await page.getByText('Arms that ran').waitFor();
  await shot('monitor-dark');
});

test('everything can be read: the contrast of text is at least 4.5', async () => {
  for (const colorScheme of ['light', 'dark']) {
    await open({ colorScheme });
    await say('please think: what does grep do?');
    const answer = await answered(1);
    await answer.getByText('Thought for').click();
    await say('refuse');
    await answered(2);
    assert.deepEqual(await page.evaluate(lowContrast), [], colorScheme);
    await page.goto(server.url + '#monitor');
    await page.getByText('4 min').first().waitFor();
    assert.deepEqual(await page.evaluate(lowContrast), [], colorScheme);
  }
});

test('narrow screens need no sideways scrolling', async () => {
  await open({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
  await say('please think: what does grep do?');
  await answered(1);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.equal(await overflow(), 0);
  await shot('chat-narrow');
  await say('long code');
  await answered(2);
  assert.equal(await overflow(), 0);
  await button('Settings').click();
  await shot('settings-narrow');
  await button('Close').click();
  await page.getByRole('link', { name: 'Monitor' }).click();
  await page.getByText('4 min').first().waitFor();
  assert.equal(await overflow(), 0);
  await shot('monitor-narrow');
});

test('the keyboard is enough', async () => {
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
  await page.getByRole('heading', { name: 'strata-mini-q8_0' }).waitFor();
  assert.equal(await focused(), 'Message'); // at once ready to write
  await page.keyboard.type('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two');
  assert.equal(server.requests.length, 0);
  await page.keyboard.press('Enter');
  await answered(1);
  assert.equal(server.requests[0].messages[0].content, 'one\ntwo');
  // Backwards from the message: the answer's buttons, the user's, then the head of the page.
  const back = [];
  for (let i = 0; i < 9; ++i) {
    await page.keyboard.press('Shift+Tab');
    back.push(await focused());
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, 'solid', back.at(-1));
  }
  assert.deepEqual(back, ['Answer again', 'Copy this answer', 'Edit this message', 'Copy this message', 'Colours: as the system', 'Settings', 'New chat', 'Monitor', 'Chat']);
  await shot('focus');
  // Arrow up in an empty message changes the last one.
  await message().focus();
  await page.keyboard.press('ArrowUp');
  assert.equal(await focused(), 'Edit the message');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('for ever');
  await page.keyboard.press('Enter');
  await page.getByText('word9 ').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('Stopped.').first().waitFor();
  // The Monitor by its link.
  await page.getByRole('link', { name: 'Monitor' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('Arms that ran').waitFor();
});

test('a screen reader hears the answer in sentences', async () => {
  await say('please think: what does grep do?');
  await answered(1);
  const heard = page.locator('[aria-live="polite"] p');
  const words = await heard.allTextContents();
  assert.equal(words[0], 'Thinking.');
  assert.equal(words.at(-1), 'The answer is complete.');
  assert.ok(words.join('').includes('prints the lines of a text'));
});

async function until(condition) {
  for (let i = 0; i < 800; ++i) {
    if (await condition()) return;
    await new Promise((done) => setTimeout(done, 25));
  }
  assert.fail('nothing happened in 20 s');
}

// Runs in the page: texts whose colour is too near to what lies behind them (WCAG 2, level AA).
function lowContrast() {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.data.trim() === '' || !parent.checkVisibility() || parent.closest('.unseen')) continue;
    const style = getComputedStyle(parent);
    const front = luminance(rgba(parent instanceof SVGElement ? style.fill : style.color).slice(0, 3));
    const back = luminance(behind(parent).slice(0, 3));
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (contrast < 4.5) found.push(`${node.data.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return found;
}
