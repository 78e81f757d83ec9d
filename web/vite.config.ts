import { defineConfig } from 'vite';

// While the page is worked on: the server takes the page's own origin, so the name of the host stays.
const server = { target: 'http://127.0.0.1:8080', changeOrigin: false };

// Fixed names and relative paths: the files are committed, embedded in the binary, and may be served below a prefix.
export default defineConfig({
  base: './',
  server: { proxy: { '/v1': server, '/monitor': server, '/props': server } },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { entryFileNames: 'page.js', assetFileNames: 'page[extname]' },
    },
  },
});
