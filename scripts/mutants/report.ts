import { existsSync, readFileSync } from 'node:fs'

/** A change that was made to the code, and what the tests said to it. */
export interface Mutant {
  readonly file: string
  readonly line: number
  /** Killed, Survived, NoCoverage, Timeout, Ignored and a few more. */
  readonly status: string
  readonly mutator: string
  readonly original: string
  readonly replacement: string
}

interface Position {
  readonly line: number
  readonly column: number
}

interface StrykerReport {
  readonly testFiles?: Readonly<
    Record<string, { readonly tests: readonly { readonly id: string }[] }>
  >
  readonly files: Readonly<
    Record<
      string,
      {
        readonly source: string
        readonly mutants: readonly {
          readonly location: { readonly start: Position; readonly end: Position }
          readonly status: string
          readonly mutatorName: string
          readonly replacement?: string
          readonly coveredBy?: readonly string[]
        }[]
      }
    >
  >
}

/** All mutants in a report of Stryker; none if there is no report. */
export function readMutants(report: string): Mutant[] {
  if (!existsSync(report)) return []
  const { files } = JSON.parse(readFileSync(report, 'utf8')) as StrykerReport
  return Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split('\n')
    return mutants.map(({ location: { start, end }, status, mutatorName, replacement = '' }) => ({
      file,
      line: start.line,
      status,
      mutator: mutatorName,
      original: between(lines, start, end),
      replacement,
    }))
  })
}

/** Test files that come to none of the changes: they do not belong there, or nobody looks where they come. */
export function idleTests(report: string): string[] {
  if (!existsSync(report)) return []
  const { files, testFiles = {} } = JSON.parse(readFileSync(report, 'utf8')) as StrykerReport
  const covering = new Set(
    Object.values(files).flatMap(({ mutants }) =>
      mutants.flatMap(({ coveredBy = [] }) => coveredBy),
    ),
  )
  return Object.entries(testFiles)
    .filter(([, { tests }]) => !tests.some(({ id }) => covering.has(id)))
    .map(([file]) => file)
}

function between(lines: readonly string[], start: Position, end: Position): string {
  const part = lines.slice(start.line - 1, end.line)
  const last = part.length - 1
  part[last] = (part[last] ?? '').slice(0, end.column - 1)
  part[0] = (part[0] ?? '').slice(start.column - 1)
  return part.join('\n')
}

export interface Counts {
  readonly killed: number
  readonly survived: number
  readonly uncovered: number
  readonly timeout: number
  readonly ignored: number
  /** In percent: killed and timed out, of all but the ignored. */
  readonly score: number
}

export function countsOf(mutants: readonly Mutant[]): Counts {
  const count = (...wanted: string[]): number =>
    mutants.filter(({ status }) => wanted.includes(status)).length
  const [killed, survived] = [count('Killed', 'RuntimeError', 'CompileError'), count('Survived')]
  const [uncovered, timeout, ignored] = [count('NoCoverage'), count('Timeout'), count('Ignored')]
  const all = killed + survived + uncovered + timeout
  const score = all === 0 ? 100 : (100 * (killed + timeout)) / all
  return { killed, survived, uncovered, timeout, ignored, score }
}

/** A survivor that stays, with the reason. It is known by its text, so that it may move within its file. */
export interface Accepted {
  readonly file: string
  readonly original: string
  readonly replacement: string
  readonly reason: string
}

export function isSurvivor({ status }: Mutant): boolean {
  return status === 'Survived' || status === 'NoCoverage'
}

export function isAccepted(mutant: Mutant, accepted: readonly Accepted[]): boolean {
  return accepted.some(
    ({ file, original, replacement }) =>
      file === mutant.file &&
      original === mutant.original &&
      (replacement === '*' || replacement === mutant.replacement),
  )
}

/** `file:line`, and the change as a diff. */
export function survivorText({ file, line, status, original, replacement }: Mutant): string {
  const marked = (sign: string, text: string): string =>
    text
      .split('\n')
      .map((each) => `    ${sign} ${each}`)
      .join('\n')
  const kind = status === 'NoCoverage' ? 'no test comes here' : 'no test notices'
  return `  ${file}:${line} (${kind})\n${marked('-', original)}\n${marked('+', replacement)}`
}

export function tableOf(rows: readonly (readonly [name: string, counts: Counts])[]): string {
  const head = '| folder | killed | survived | no coverage | timeout | ignored | score |'
  const rule = '| --- | --: | --: | --: | --: | --: | --: |'
  const lines = rows.map(
    ([name, { killed, survived, uncovered, timeout, ignored, score }]) =>
      `| ${name} | ${killed} | ${survived} | ${uncovered} | ${timeout} | ${ignored} | ${score.toFixed(1)} % |`,
  )
  return [head, rule, ...lines].join('\n')
}
