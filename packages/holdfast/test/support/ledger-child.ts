import { flushCompileCache } from 'node:module'
import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'
import { doTogether, doWork, type Work } from './ledger-work.ts'

// Whoever is killed writes no cache for the next one, unless now.
flushCompileCache()

/**
 * An application in a process of its own. Before each statement it says so and waits for a word, so
 * that the test can kill it exactly there.
 */
interface Task {
  readonly url: string
  /** What the server calls its connections. */
  readonly name: string
  readonly joined: boolean
  readonly work: Work
}

const allowed = new Set<() => void>()
process.on('message', (message) => {
  if (message === 'go') {
    for (const go of allowed) go()
    allowed.clear()
  } else void run(message as Task)
})

async function beforeSending(): Promise<void> {
  const { promise: word, resolve } = Promise.withResolvers<void>()
  allowed.add(resolve)
  process.send?.('statement')
  await word
}

class SteppingClient extends pg.Client {
  // oxlint-disable-next-line typescript/no-explicit-any -- pg's own overloads
  override query(...args: any[]): any {
    const send = super.query.bind(this) as (...all: unknown[]) => Promise<unknown>
    return beforeSending().then(() => send(...args))
  }
}

async function run({ url, name, joined, work }: Task): Promise<void> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    application_name: name,
    Client: SteppingClient as never,
  })
  const hf = createHoldfast(fromPg(pool))
  await (joined ? doTogether(hf, work) : doWork(hf, work))
  process.send?.('done')
}
