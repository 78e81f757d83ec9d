import { defineConfig } from 'vite';

// Fixed names and relative paths: the files are committed, embedded in the binary, and may be served below a prefix.
export default defineConfig({
  base: './',
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/monitor': 'http://127.0.0.1:8080', '/props': 'http://127.0.0.1:8080' } },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { entryFileNames: 'page.js', assetFileNames: 'page[extname]' },
    },
  },
});
