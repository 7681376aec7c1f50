import { pause } from '../core/backoff.ts'
import type { Driver, Executor, Statement } from '../core/driver.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import {
  countSharedKeys,
  dropBroken,
  lookForIndex,
  metAnother,
  online,
  onlineIndex,
  stateFrom,
} from '../engines/postgres/schema/online.ts'
import { lockInstallers } from '../engines/postgres/schema/records.ts'
import { bindSchema, statementsOf } from '../engines/postgres/schema/script.ts'
import { installersLock } from './installers-lock.ts'
import type { SchemaFile, SchemaFiles } from './schema-files.ts'
import type { Pending } from './steps.ts'

/**
 * What has to be in place before the indexes of a migration are built beside the old ones: functions that
 * get along with both.
 */
const functionsAhead: Readonly<Record<string, readonly string[]>> = {
  '0009-work': ['app/enqueue_work'],
}

/** What a migration finds out about the rows that are there. */
const lookedAt: Readonly<
  Record<string, (executor: Executor, schema: string) => Promise<string[]>>
> = { '0009-work': noteSharedKeys }

const pollMs = 100
/** Of meeting another installer at the very same index: whoever meets one looks again. */
const mostMeetings = 20

/**
 * Applies what the pending migrations need of tables that are in use, each statement by itself. Can be ended
 * anywhere and begun again. A new database needs none of it: its tables are empty.
 */
export async function applyOnline<Tx>(
  driver: Driver<Tx>,
  schema: string,
  files: SchemaFiles,
  { migrations }: Pending,
  onProgress: ((file: string) => void) | undefined,
): Promise<readonly string[]> {
  const isNew = migrations.length === files.migrations.length
  const notes: string[] = []
  for (const file of isNew ? [] : (files.online ?? [])) {
    const name = file.name.slice('online/'.length)
    if (!migrations.some((each) => each.name === `migrations/${name}`)) continue
    onProgress?.(file.name)
    notes.push(...((await lookedAt[name]?.(driver.alone, schema)) ?? []))
    await replaceAhead(driver, schema, files, functionsAhead[name] ?? [])
    for (const statement of textsOf(schema, file)) {
      await applyIndex(driver.alone, schema, statement)
    }
  }
  return notes
}

/** The same as a script for people: what to run, one by one, before a plan. */
export function onlineTexts(
  files: SchemaFiles,
  schema: string,
  pending: readonly SchemaFile[],
): string[] {
  return (files.online ?? [])
    .filter(({ name }) =>
      pending.some((each) => each.name === name.replace('online/', 'migrations/')),
    )
    .flatMap((file) => {
      const ahead = functionsAhead[file.name.slice('online/'.length)] ?? []
      const functions = files.repeatables.filter(({ name }) => ahead.includes(name))
      return [...functions, file].flatMap((each) => textsOf(schema, each))
    })
}

function textsOf(schema: string, { text }: SchemaFile): string[] {
  return statementsOf(bindSchema(text, schema))
}

/** One installer at a time: two that replace a function at the same moment fail. */
async function replaceAhead<Tx>(
  driver: Driver<Tx>,
  schema: string,
  files: SchemaFiles,
  names: readonly string[],
): Promise<void> {
  const texts = files.repeatables
    .filter(({ name }) => names.includes(name))
    .flatMap((file) => textsOf(schema, file))
  await driver.transaction(
    async (transaction) => {
      await transaction.command(lockInstallers(installersLock(schema)))
      for (const text of texts) await transaction.command(text)
    },
    { isolation: 'read committed', scopes: [] },
  )
}

/**
 * Brings one index to where it should be. Several installers may be at it: whoever builds is waited for by
 * looking, because a statement that waits for a lock would be waited for by the build itself.
 */
async function applyIndex(executor: Executor, schema: string, text: string): Promise<void> {
  const { index, verb } = onlineIndex(text)
  let meetings = 0
  const act = async (statement: Statement): Promise<void> => {
    try {
      await executor.query(statement)
    } catch (error) {
      meetings += 1
      if (meetings > mostMeetings || !metAnother.has(sqlStateOf(error) ?? '')) throw error
      await pause(Math.random() * pollMs, undefined)
    }
  }
  for (;;) {
    const state = stateFrom(await executor.query(lookForIndex(schema, index)))
    if (verb === 'drop') {
      if (state === 'missing') return
      await act(online(text))
    } else if (state === 'ready') return
    else if (state === 'missing') await act(online(text))
    else if (state === 'broken') await act(dropBroken(schema, index))
    else await pause(pollMs, undefined)
  }
}

/** How often a key was swallowed cannot be known any more; which keys could be affected can. */
async function noteSharedKeys(executor: Executor, schema: string): Promise<string[]> {
  const [row] = await executor.query(countSharedKeys(schema))
  const [keys, shared, groups] = [row?.['keys'], row?.['shared'], row?.['groups']].map(Number)
  if (keys === undefined || shared === undefined || shared === 0) {
    return [
      `work: ${keys ?? 0} waiting or running jobs have a unique key. None of them shares its queue and bucket with a job of another scope. Jobs that were refused because another scope had their key are in no table, so that they cannot be counted.`,
    ]
  }
  return [
    `work: ${keys} waiting or running jobs have a unique key. ${shared} of them are in ${groups} places where two scopes share a queue and a bucket: until now, a key that one of these scopes used was refused to the other (added: false). From now on each scope has its own keys. Jobs that were refused before left no trace: enqueue them again where you can tell that they are missing.`,
  ]
}
