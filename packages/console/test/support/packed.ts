import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The folder of our packages. */
export const packages: string = fileURLToPath(new URL('../../../', import.meta.url))

export interface Packed {
  /** The tarball. */
  readonly path: string
  /** What is in it. */
  readonly files: readonly string[]
}

/** Packs what `npm test` has just built. */
export async function pack(folder: string, into: string): Promise<Packed> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', into]
  const { stdout } = await run('npm', args, { cwd: join(packages, folder) })
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ]
  return { path: join(into, filename), files: files.map(({ path }) => path) }
}
