import { execFile } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Snippet } from './snippets.ts'

const program = fileURLToPath(new URL('./run-snippet.ts', import.meta.url))
const addressOf = (path: string): string => pathToFileURL(path).href
const fromSource = new URL('../../support/from-source.ts', import.meta.url).href
/** A block that leaves something open, or waits for ever, is a broken block. */
const limitMs = 30_000

/** Runs a block in a process of its own and gives the lines it printed; rejects if it throws. */
export async function execute(
  { preamble }: Pick<Snippet, 'preamble'>,
  file: string,
  databaseUrl: string,
): Promise<string[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', fromSource, program, ...[file, ...(preamble ? [preamble] : [])].map(addressOf)],
    {
      env: { ...process.env, DATABASE_URL: databaseUrl, NODE_ENV: 'development' },
      timeout: limitMs,
      killSignal: 'SIGKILL',
    },
  )
  return stdout.split('\n').slice(0, -1)
}
