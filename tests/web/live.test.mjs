// The page against the real server with a real model, at STRATA_URL.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { packageOf, root } from './load.mjs';

const { chromium } = packageOf('playwright-core');
const screenshots = process.env.SCREENSHOTS ?? join(root, 'build', 'screenshots');
mkdirSync(screenshots, { recursive: true });
const url = process.env.STRATA_URL;

let browser, page;
const trouble = [];

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  page = await browser.newPage({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' });
  page.setDefaultTimeout(60_000);
  page.on('pageerror', (error) => trouble.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && trouble.push(message.text()));
  page.on('requestfailed', (request) => request.failure().errorText !== 'net::ERR_ABORTED' && trouble.push(request.url()));
  await page.goto(url);
});
after(async () => {
  await browser?.close();
  assert.deepEqual(trouble, []);
});

const button = (name) => page.getByRole('button', { name, exact: true });
const answers = () => page.getByRole('article', { name: 'Answer' });
const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });

async function say(text) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
}

async function answered(count) {
  const answer = answers().nth(count - 1);
  await answer.locator('footer').waitFor();
  return answer;
}

test('the files come with their policy, and once', async () => {
  const first = await fetch(url);
  assert.match(first.headers.get('content-security-policy'), /^default-src 'none'.*trusted-types 'none'$/);
  assert.equal(first.headers.get('x-content-type-options'), 'nosniff');
  const again = await fetch(url, { headers: { 'If-None-Match': first.headers.get('etag') } });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), '');
});

test('a question is answered, and again with the same text', async () => {
  await page.locator('.light.good').waitFor();
  await button('Settings').click();
  await page.getByLabel('Temperature').fill('0');
  await page.getByLabel('Longest answer').fill('48');
  await shot('live-settings');
  await page.keyboard.press('Escape');
  await say('What does grep do?');
  const answer = await answered(1);
  const text = await answer.locator(':scope > .markdown').textContent();
  assert.ok(text.length > 20, text);
  assert.match(await answer.locator('.figures').textContent(), /^\d+ tokens at [\d.,]+ tok\/s · prompt \d+/);
  await shot('live-chat');
  await button('Answer again').click();
  const second = await answered(1);
  assert.equal(await second.locator(':scope > .markdown').textContent(), text); // the same tokens, the same bits
});

test('the Monitor shows what ran', async () => {
  await page.getByRole('link', { name: 'Monitor' }).click();
  const monitor = page.getByRole('region', { name: 'Monitor' });
  await monitor.getByText('chat · ').waitFor();
  await monitor.getByRole('img', { name: /^Output rate.*at most (?!0\.0)/ }).waitFor();
  assert.ok((await monitor.locator('tbody tr').count()) > 5);
  assert.equal(await monitor.locator('tbody').getByText('matmul').count() > 0, true);
  assert.ok((await monitor.locator('.span').count()) >= 6); // of the request, and of the engine
  await monitor.getByText('output pass').waitFor();
  assert.match(await monitor.locator('.line.output').getAttribute('d'), /^M/);
  assert.equal(await monitor.getByText(/NaN|undefined|Infinity/).count(), 0);
  await shot('live-monitor');
  await monitor.evaluate((node) => node.scrollTo(0, 1e6));
  await shot('live-monitor-end');
});

test('a stopped answer frees its slot', async () => {
  await page.getByRole('link', { name: 'Chat' }).click();
  await button('Settings').click();
  await page.getByLabel('Longest answer').fill('3000');
  // So hot that the end is as likely as any token: the answer goes on until it is stopped.
  for (const [label, value] of [['Temperature', '5'], ['Top k', '0'], ['Top p', '1'], ['Min p', '0']])
    await page.getByLabel(label, { exact: true }).fill(value);
  await page.keyboard.press('Escape');
  await say('Tell a very long story.');
  await page.waitForFunction(() => [...document.querySelectorAll('.growing > .markdown')].some((node) => node.textContent.length > 40));
  await page.keyboard.press('Escape');
  await page.getByText('Stopped.').first().waitFor();
  for (let i = 0; ; ++i) {
    const state = await (await fetch(new URL('monitor/state', url))).json();
    if (state.slots.every((slot) => slot.state === 'idle')) break;
    assert.ok(i < 100, 'a slot is still busy after 5 s');
    await new Promise((done) => setTimeout(done, 50));
  }
});
