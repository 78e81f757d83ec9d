// What the tests share: the folders, the packages of web/, and modules of the page compiled for node.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const web = join(root, 'web');
const require = createRequire(join(web, 'package.json'));

export const packageOf = (name) => require(name);

// A module of web/src with all that it imports.
export async function load(name) {
  const built = await packageOf('esbuild').build({
    entryPoints: [join(web, 'src', name)],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
  });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString('base64')}`);
}
