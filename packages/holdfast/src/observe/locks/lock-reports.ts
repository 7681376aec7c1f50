import { hotKeysIn } from '../../blocking/tree.ts'
import type { Executor, Row } from '../../core/driver.ts'
import { type LockMemory, lockMemoryOf } from '../../core/locks/lock-memory.ts'
import {
  lookAtLocks,
  preparedTransactions,
  seenLocks,
} from '../../engines/postgres/observe/locks.ts'
import { latestMinutes, latestNames, lookForNames } from '../../engines/postgres/observe/notes.ts'
import { asking, limitOf, type Looking } from '../answer.ts'
import { noteEntry } from './lock-id.ts'
import { lockMinutesFrom } from './lock-minutes.ts'
import { look } from '../look.ts'
import type { LockTree, SeenName } from '../model.ts'
import { LockNaming } from './naming.ts'
import { minutesOptions, namesOptions, type Observer } from '../observer.ts'
import { buildTree } from './tree.ts'
import { isTrue } from '../../core/is-true.ts'
import { assertText } from '../../core/options/given.ts'
import { optionsGiven } from '../../core/options/known-options.ts'

/** What an observer tells about locks. */
export type LockReports = Pick<Observer, 'locks' | 'session' | 'hotKeys' | 'names' | 'lockMinutes'>

/** Reports about locks; each call is a look of its own. */
export function createLockReports<Tx>(looking: Looking<Tx>): LockReports {
  const { driver, schema, statementTimeoutMs } = looking
  const memory = lockMemoryOf(driver)
  const naming = new LockNaming(memory, schema)
  const treeOf = async (asked: number | undefined): Promise<LockTree> => {
    const began = performance.now()
    return await look(driver, statementTimeoutMs, async (executor: Executor) => {
      const seen = seenLocks(await executor.query(lookAtLocks(asked)))
      const names = await naming.resolve(executor, seen)
      const isPrepared = seen.blocks.some(({ by }) => by.includes(0))
      const prepared = isPrepared ? await executor.query(preparedTransactions) : []
      return buildTree(seen, { names, prepared, asked }, performance.now() - began)
    })
  }
  return {
    locks: () => treeOf(undefined),
    async session(pid) {
      if (!Number.isSafeInteger(pid) || pid < 0 || pid > 2 ** 31 - 1) return undefined
      const { sessions } = await treeOf(pid)
      return sessions.find((session) => session.pid === pid)
    },
    hotKeys: async () => hotKeysIn(await treeOf(undefined)),
    async names(options) {
      const { namespace, limit = 100 } = optionsGiven(options, namesOptions)
      assertText(namespace, 'namespace')
      const most = limitOf(limit, 'limit', 10_000)
      return await look(driver, statementTimeoutMs, async (executor) => {
        const [now] = await executor.query(lookForNames(schema))
        const noted = isTrue(now?.['readable'])
          ? await executor.query(latestNames(schema, namespace, most))
          : []
        const used = usedNames(memory, Date.parse(String(now?.['at'])))
        return mergedNames(noted.map(seenName), used, namespace).slice(0, most)
      })
    },
    async lockMinutes(options) {
      const { namespace, minutes = 60 } = optionsGiven(options, minutesOptions)
      assertText(namespace, 'namespace')
      const statement = latestMinutes(schema, namespace, limitOf(minutes, 'minutes', 1_440))
      return lockMinutesFrom(await asking(looking, (executor) => executor.query(statement)))
    },
  }
}

function seenName(row: Row): SeenName {
  return {
    id: String(row['id']),
    name: String(row['name']),
    namespace: String(row['namespace']),
    seenAt: String(row['seenAt']),
  }
}

/** What this process has used; the time is the server's, less what has passed here since. */
function* usedNames(memory: LockMemory, serverNow: number): Generator<SeenName> {
  for (const { key, ageMs } of memory.since()) {
    const entry = noteEntry(key)
    // The number of the others is the server's to work out.
    if (!('id' in entry)) continue
    yield { ...entry, seenAt: new Date(serverNow - ageMs).toISOString() }
  }
}

/** The latest first; of a lock that both know, the later time. */
function mergedNames(
  noted: readonly SeenName[],
  used: Iterable<SeenName>,
  namespace: string | undefined,
): SeenName[] {
  const names = new Map(noted.map((name) => [name.id, name]))
  for (const name of used) {
    if (namespace !== undefined && name.namespace !== namespace) continue
    const other = names.get(name.id)
    if (other === undefined || other.seenAt < name.seenAt) names.set(name.id, name)
  }
  return [...names.values()].toSorted((a, b) => (a.seenAt < b.seenAt ? 1 : -1))
}
