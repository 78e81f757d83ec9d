// The committed web/dist is what its source gives, is small, and never makes markup of text.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { web } from './load.mjs';

const bin = (name) => join(web, 'node_modules', '.bin', name);
const filesOf = (folder) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());

test('the types hold', () => execFileSync(bin('tsc'), ['--noEmit'], { cwd: web, stdio: 'inherit' }));

test('web/dist is built from its source: else `npm run build` in web/', () => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-web-'));
  try {
    execFileSync(bin('vite'), ['build', '--logLevel', 'error', '--outDir', folder], { cwd: web, stdio: 'inherit' });
    const names = readdirSync(folder).sort();
    assert.deepEqual(readdirSync(join(web, 'dist')).sort(), names);
    for (const name of names) assert.ok(readFileSync(join(folder, name)).equals(readFileSync(join(web, 'dist', name))), name);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the page takes less than 100 kB', () => {
  const sizes = readdirSync(join(web, 'dist')).map((name) => readFileSync(join(web, 'dist', name)).length);
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) < 100_000);
});

test('nothing in the source makes markup of text, or comes from elsewhere', () => {
  for (const file of filesOf(join(web, 'src'))) {
    const text = readFileSync(join(file.parentPath ?? file.path, file.name), 'utf8');
    const bad = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|new Function|srcdoc/.exec(text);
    assert.equal(bad, null, `${file.name}: ${bad}`);
    assert.equal(/url\(|@import/.exec(text), null, file.name);
  }
  const page = readFileSync(join(web, 'dist', 'index.html'), 'utf8');
  assert.equal(/(?:src|href)="(?!\.\/)/.exec(page), null);
});
