/**
 * A process that writes to a file where others do: `node competitor.ts <client> <file> <what> <times>`. Says `ready`, waits
 * for a message, works, says what became of it. Types are erased by Node.
 */
import { once } from 'node:events'
import { createHoldfast, lockKey } from '../../../../src/sqlite.ts'
import { type ClientName, driverBy, type Handle, openHandle, value } from './sqlite-clients.ts'

const [client, file = '', what, times] = process.argv.slice(2)
const name = client as ClientName
const driver = driverBy(name, () => openHandle(name, file))
const hf = createHoldfast(driver, { wait: '30 s' })

/** Check, let others in, write. */
async function count(tx: Handle): Promise<void> {
  const seen = Number(value(tx, 'SELECT v FROM counter'))
  await new Promise(setImmediate)
  tx.prepare('UPDATE counter SET v = ?').run(seen + 1)
}

async function guarded(): Promise<'ok'> {
  await hf.guard(lockKey('counter', 1), count)
  return 'ok'
}

/** The same without a lock: on a connection that commits each statement. */
async function unguarded(db: Handle): Promise<'ok'> {
  await count(db)
  return 'ok'
}

/** The same in a transaction as SQLite begins it by default. */
async function deferred(db: Handle): Promise<'ok' | 'refused'> {
  db.exec('BEGIN')
  try {
    await count(db)
    db.exec('COMMIT')
    return 'ok'
  } catch {
    db.exec('ROLLBACK')
    return 'refused'
  }
}

async function hold(): Promise<void> {
  await hf.guard(lockKey('counter', 1), async (tx) => {
    tx.exec('UPDATE counter SET v = 99')
    process.send?.('holding')
    setInterval(() => undefined, 1_000)
    await once(process, 'disconnect')
  })
}

async function work(): Promise<void> {
  if (what === 'hold') return await hold()
  const db = openHandle(name, file)
  db.exec('PRAGMA busy_timeout = 1000')
  const told = { ok: 0, refused: 0, longestMs: 0 }
  for (let at = 0; at < Number(times); at += 1) {
    const began = performance.now()
    told[await (what === 'guard' ? guarded() : what === 'plain' ? unguarded(db) : deferred(db))] +=
      1
    told.longestMs = Math.max(told.longestMs, performance.now() - began)
  }
  db.close()
  driver.close()
  process.send?.(told)
  process.disconnect()
}

process.once('message', () => void work())
process.send?.('ready')
