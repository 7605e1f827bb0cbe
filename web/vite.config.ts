import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const folder = fileURLToPath(new URL('.', import.meta.url))

export default defineConfig({
  root: folder,
  plugins: [react(), compressed()],
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // The page may not contain inline scripts, styles or data: links to code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
})

/** Writes each text file compressed as well: the server sends those and never compresses by itself. */
function compressed(): Plugin {
  return {
    name: 'lango-compressed',
    apply: 'build',
    async writeBundle({ dir }) {
      const root = dir ?? ''
      const names = await readdir(root, { recursive: true })
      for (const name of names.filter(each => /\.(js|css|html|svg)$/.test(each))) {
        const text = await readFile(join(root, name))
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9 }
        await writeFile(join(root, `${name}.br`), brotliCompressSync(text, { params }))
        await writeFile(join(root, `${name}.gz`), gzipSync(text, { level: 9 }))
      }
    },
  }
}
