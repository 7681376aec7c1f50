import { fileURLToPath } from 'node:url'

/** Our own folder, `…/race/src/` or `…/race/dist/`: from a line of ours, because CommonJS has no `import.meta`. */
export function ownFolder(): string {
  const here: { stack?: string } = {}
  Error.captureStackTrace(here)
  const [, file = ''] =
    /(?:\(|at )([^()]+):\d+:\d+\)?$/.exec(here.stack?.split('\n')[1] ?? '') ?? []
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  return /^.*[\\/]race[\\/](?:dist|src)[\\/]/.exec(path)?.[0] ?? path
}
