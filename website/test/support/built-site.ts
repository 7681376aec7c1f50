import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import MiniSearch from 'minisearch'
import { miniSearchOptions, type SearchIndex } from './index-pages.ts'

/** What `npm run docs:build` has made. */
export const dist: string = fileURLToPath(new URL('../../dist', import.meta.url))

/** The index that the browser loads when somebody searches. */
export async function builtIndex(): Promise<SearchIndex> {
  const chunks = join(dist, 'assets/chunks')
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'))
  if (file === undefined) throw new Error('the site has no search index; run npm run docs:build')
  const { default: json } = (await import(pathToFileURL(join(chunks, file)).href)) as {
    readonly default: string
  }
  return MiniSearch.loadJSON(json, miniSearchOptions)
}
