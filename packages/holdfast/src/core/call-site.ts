/** Where something was asked for: what `Error.captureStackTrace` fills. V8 formats it only if it is read. */
export interface CallSite {
  readonly stack?: string
}

/** Not at import: bundlers to CommonJS leave `import.meta.url` empty. Then no line is known to be ours. */
function ownFolder(): string | undefined {
  const { url } = import.meta
  return url ? new URL('..', url).pathname : undefined
}

/** Where the caller asked for it: the first line of the stack that is neither ours nor Node's. */
export function callersOf(site: CallSite): string {
  const own = ownFolder()
  const lines = (site.stack ?? '').split('\n').slice(1)
  const isTheirs = (line: string): boolean =>
    !line.includes('node:internal') && (own === undefined || !line.includes(own))
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
