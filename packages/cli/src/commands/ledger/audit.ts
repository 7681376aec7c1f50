import { createHoldfast } from 'holdfast'
import type { Audit, AuditProblem } from 'holdfast/ledger'
import type { Command } from '../../command.ts'
import { numberOf } from '../../number-flag.ts'
import { done, failed } from '../../failure.ts'

export const audit: Command = {
  name: 'audit',
  about: 'Check every balance, movement, hold and operation id; exit code 1 if something is wrong',
  needsDatabase: true,
  flags: {
    list: { type: 'string', value: '<n>', about: 'How many problems are listed; default: 100' },
  },
  async run({ flags, schema, database, print, progress }) {
    const list = numberOf(flags['list'], 'list') ?? 100
    const found = await database((driver) =>
      createHoldfast(driver, schema === undefined ? {} : { ledger: { schema } }).ledger.audit({
        list,
        onProgress: (at) =>
          progress(
            `${percent(at.done, at.of)}: ${at.accounts} accounts, ${at.movements} movements, ${at.found} problems`,
          ),
      }),
    )
    print(found, report(found))
    return found.found === 0 ? done : failed
  },
}

function percent(part: number, whole: number): string {
  return `${Math.round((100 * part) / whole)} %`.padStart(5)
}

function report({ snapshotAt, accounts, movements, found, problems }: Audit): string {
  const looked = `${accounts} accounts and ${movements} movements, as of ${snapshotAt.toISOString()}`
  if (found === 0) return `${looked}: everything adds up.\n`
  const more = found > problems.length ? `${found - problems.length} more are not listed.\n` : ''
  return `${problems.map(lineOf).join('')}${more}${looked}: ${found} ${found === 1 ? 'problem' : 'problems'}.\n`
}

/** Names of the application's own keys are data: they are shown quoted, whatever is in them. */
function lineOf(problem: AuditProblem): string {
  const { check, account, book, key, sequence, holdId, operationId, window, what } = problem
  const parts = [
    `${check}: account ${account}`,
    book === undefined ? undefined : `book ${JSON.stringify(book)}`,
    key === undefined ? undefined : `key ${JSON.stringify(key)}`,
    window === undefined ? undefined : `window from ${window.start.toISOString()}`,
    sequence === undefined ? undefined : `movement ${sequence}`,
    holdId === undefined ? undefined : `hold ${holdId}`,
    operationId === undefined ? undefined : `operation ${JSON.stringify(operationId)}`,
    what,
  ]
  return `${parts.filter((part) => part !== undefined).join(', ')}\n`
}
