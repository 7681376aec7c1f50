/** Where something was asked for: what `Error.captureStackTrace` fills. V8 formats it only if it is read. */
export interface CallSite {
  readonly stack?: string
}

/**
 * Where our lines are, and where source maps say that they are: beside a line of ours. None where a bundler has
 * put us among others. Read from a stack and not from `import.meta`, which CommonJS does not have.
 */
function ownFolders(line: string): readonly string[] {
  const root = /^\s*at (?:.*\()?(?:file:\/\/)?(.*\/holdfast\/)(?:dist|src)\//.exec(line)?.[1]
  return root === undefined ? [] : [`${root}dist/`, `${root}src/`]
}

function ownLine(): string {
  const here: CallSite = {}
  Error.captureStackTrace(here)
  return here.stack?.split('\n')[1] ?? ''
}

/** As everywhere else, on Windows too. */
function withSlashes(line: string): string {
  return line.replaceAll('\\', '/')
}

/** Where the caller asked for it: the first line of the stack that is neither ours nor Node's. */
export function callersOf(site: CallSite, ours: string = ownLine()): string {
  const own = ownFolders(withSlashes(ours))
  const lines = linesOf(site.stack)
  const isTheirs = (line: string): boolean =>
    !line.includes('node:internal') && !own.some((folder) => withSlashes(line).includes(folder))
  return lines.find(isTheirs) ?? ''
}

/** The frames of a stack. Its message may have lines too. */
export function linesOf(stack = ''): string[] {
  return stack.split('\n').filter((line) => /^ {4}at /.test(line))
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
