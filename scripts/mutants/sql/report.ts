import { basename } from 'node:path'
import { flat } from './known.ts'
import type { Result, Status } from './results.ts'

/** One line: where, what was changed, and who noticed. */
export function resultText({ mutant, status, by }: Result): string {
  const { file, line, kind, original, replacement } = mutant
  const change = `${shortened(original)} → ${shortened(replacement) || 'nothing'}`
  return `${status.padEnd(9)} ${file}:${line} ${kind}: ${change}${by === '' ? '' : ` (${by})`}`
}

function shortened(text: string): string {
  const [line, most] = [flat(text), 90]
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}

/** Caught and timed out, of all that could be installed and are not known; in percent. */
export function scoreOf(results: readonly Result[]): number {
  const caught = count(results, 'caught') + count(results, 'timed out')
  const all = caught + count(results, 'survived')
  return all === 0 ? 100 : (100 * caught) / all
}

function count(results: readonly Result[], status: Status): number {
  return results.filter((result) => result.status === status).length
}

/** How it went, by file and altogether. */
export function fileTable(results: readonly Result[]): string {
  const byFile = Map.groupBy(results, ({ mutant }) => mutant.file)
  const row = (name: string, some: readonly Result[]): string => {
    const counts = (['caught', 'timed out', 'survived', 'known', 'invalid'] as const).map(
      (status) => count(some, status),
    )
    return `| ${[name, some.length, ...counts, `${scoreOf(some).toFixed(1)} %`].join(' | ')} |`
  }
  return [
    '| file | mutants | caught | timed out | survived | known | invalid | score |',
    '| --- | --: | --: | --: | --: | --: | --: | --: |',
    ...[...byFile].toSorted(([one], [other]) => (one < other ? -1 : 1)).map((each) => row(...each)),
    row('all', results),
  ].join('\n')
}

/** Which test files noticed how many. */
export function testTable(results: readonly Result[]): string {
  const caught = results.filter(({ status }) => status === 'caught')
  const byTest = Map.groupBy(caught, ({ by }) => basename(by.split(' > ')[0] as string))
  return [
    '| test file | caught first |',
    '| --- | --: |',
    ...[...byTest]
      .toSorted(([, one], [, other]) => other.length - one.length)
      .map(([name, some]) => `| ${name} | ${some.length} |`),
  ].join('\n')
}
