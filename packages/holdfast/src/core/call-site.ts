/** Where something was asked for: what `Error.captureStackTrace` fills. V8 formats it only if it is read. */
export interface CallSite {
  readonly stack?: string
}

/** Where our lines are, and where source maps say that they are. None if a bundler to CommonJS has left no url. */
function ownFolders(url: string | undefined): readonly string[] {
  if (!url) return []
  const folder = new URL('..', url).pathname
  return [folder, folder.replace(/\/dist\/$/, '/src/')]
}

/** Where the caller asked for it: the first line of the stack that is neither ours nor Node's. */
export function callersOf(site: CallSite, url: string | undefined = import.meta.url): string {
  const own = ownFolders(url)
  const lines = (site.stack ?? '').split('\n').slice(1)
  const isTheirs = (line: string): boolean =>
    !line.includes('node:internal') && !own.some((folder) => line.includes(folder))
  return lines.find(isTheirs) ?? ''
}

/** Each frame costs on every call; the first or, behind `close`, the second is the caller's. */
const siteFrames = 2

/** Nobody looks. */
export const nowhere: CallSite = {}

/** Captures where a method was called; V8 formats the stack only if someone reads it. */
export function callSite(method: (...args: never) => unknown): CallSite {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = siteFrames
  const site: CallSite = {}
  Error.captureStackTrace(site, method)
  Error.stackTraceLimit = stackTraceLimit
  return site
}
