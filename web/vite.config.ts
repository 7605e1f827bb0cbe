import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const folder = fileURLToPath(new URL('.', import.meta.url))

export default defineConfig({
  root: folder,
  plugins: [react(), diagramPage(), compressed()],
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // The page may not contain inline scripts, styles or data: links to code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    // A slow machine is no news.
    rolldownOptions: { checks: { pluginTimings: false } },
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
      const params = { [constants.BROTLI_PARAM_QUALITY]: 9 }
      const compress = async (name: string) => {
        const text = await readFile(join(root, name))
        const small = [promisify(brotliCompress)(text, { params }), promisify(gzip)(text, { level: 9 })]
        const [brotli, gzipped] = await Promise.all(small)
        await writeFile(join(root, `${name}.br`), brotli ?? '')
        await writeFile(join(root, `${name}.gz`), gzipped ?? '')
      }
      await Promise.all(names.filter(each => /\.(js|css|html|svg)$/.test(each)).map(compress))
    },
  }
}

/**
 * `draw.js?page`, the address of the document that draws diagrams: mermaid as its authors built it, which takes the
 * bundler no time, with everything inside, because a document without an origin may load nothing from here. Its
 * policy names the one script that may run.
 */
function diagramPage(): Plugin {
  return {
    name: 'lango-diagram-page',
    async load(id) {
      if (!id.endsWith('/draw.js?page')) return undefined
      const mermaid = createRequire(import.meta.url).resolve('mermaid/dist/mermaid.min.js')
      const parts = await Promise.all(
        [mermaid, join(folder, 'diagram', 'draw.js')].map(path => readFile(path, 'utf8')),
      )
      // Only strings and patterns contain these, where both spellings mean the same.
      const script = `"use strict";${parts.join('\n').replaceAll(/<(?=!--|\/?script)/gi, '\\x3c')}`
      const hash = createHash('sha256').update(script).digest('base64')
      const policy = `<meta http-equiv="Content-Security-Policy" content="script-src 'sha256-${hash}'">`
      const source = `<!doctype html><html lang="en"><meta charset="utf-8">${policy}<title>Diagrams</title><body><script>${script}</script></body></html>`
      const reference = this.emitFile({ type: 'asset', name: 'diagram.html', source })
      return `export const diagramPage = import.meta.ROLLUP_FILE_URL_${reference}`
    },
  }
}
