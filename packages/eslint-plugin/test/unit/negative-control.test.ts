/**
 * The tests can go red: without its core check a rule says nothing about what is wrong, and without what holds it back
 * it reports what is right.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import type plugin from '../../src/index.ts'
import { found, lintCode, type LintOptions } from '../support/lint-code.ts'

interface Fixture {
  readonly filename: string
  readonly code: string
}

function fixtures(kind: 'wrong' | 'right'): Fixture[] {
  const folder = new URL(`../fixtures/${kind}/`, import.meta.url)
  return readdirSync(folder).map((file) => ({
    filename: `src/${file}`,
    code: readFileSync(new URL(file, folder), 'utf8'),
  }))
}

const [wrong, right] = [fixtures('wrong'), fixtures('right')]

/** The core check of each rule, and what makes it say no. */
const cores = [
  [
    'no-root-client-in-transaction',
    '../../src/transactions/root-statement.ts',
    { isRootStatement: () => false },
  ],
  ['no-unawaited-statement', '../../src/clients/statements.ts', { statementOf: () => undefined }],
  [
    'no-network-in-transaction',
    '../../src/network/network-call.ts',
    { networkCall: () => undefined },
  ],
  ['no-check-then-create', '../../src/absence/absence.ts', { isReachedByAbsence: () => false }],
] as const

/** What holds the rules back, and what makes it let everything pass. */
const restraints = [
  ['../../src/absence/absence.ts', { isInTry: () => false }],
  ['../../src/absence/absence.ts', { isReachedByAbsence: () => true }],
  ['../../src/clients/known-client.ts', { isRootPath: () => true }],
  ['../../src/file/concurrent-function.ts', { mayRunTwice: () => true }],
  ['../../src/file/file-kind.ts', { hasAmbientTransactions: () => false }],
  ['../../src/file/file-kind.ts', { isScript: () => false }],
  ['../../src/file/file-kind.ts', { isTest: () => false }],
  ['../../src/file/file-kind.ts', { protectsByItself: () => false }],
  ['../../src/syntax/running.ts', { isAfterError: () => false }],
  ['../../src/syntax/running.ts', { isAwaitedBy: () => true }],
  ['../../src/syntax/running.ts', { handlesErrors: () => false }],
  ['../../src/syntax/running.ts', { runsWithin: () => true }],
  ['../../src/transactions/transaction.ts', { isInTransaction: () => false }],
] as const

afterEach(() => {
  for (const [path] of restraints) vi.doUnmock(path)
  for (const [, path] of cores) vi.doUnmock(path)
  vi.resetModules()
})

test.each(cores)('%s is red by its core check alone', async (name, path, without) => {
  expect(reported(wrong, await rulesNow(name))).not.toEqual([])
  vi.resetModules()
  vi.doMock(path, async (original) => ({ ...(await original<object>()), ...without }))
  expect(reported(wrong, await rulesNow(name))).toEqual([])
})

test.each(restraints)('%s holds the rules back: %o', async (path, without) => {
  expect(reported(right, await rulesNow())).toEqual([])
  vi.resetModules()
  vi.doMock(path, async (original) => ({ ...(await original<object>()), ...without }))
  expect(reported(right, await rulesNow())).not.toEqual([])
})

type Rules = NonNullable<LintOptions['rules']>

function reported(files: readonly Fixture[], rules: Rules): string[] {
  return files.flatMap(({ filename, code }) => found(lintCode(code, { filename, rules })))
}

/** The rules with the modules as they are now. */
async function rulesNow(name?: string): Promise<Rules> {
  const { default: fresh } = (await import('../../src/index.ts')) as { default: typeof plugin }
  const wanted = Object.entries(fresh.rules).filter(([each]) => name === undefined || each === name)
  return Object.fromEntries(wanted)
}
