/**
 * A process as AWS Lambda runs them: it answers one line of JSON for each line it is sent, and may stand still between two
 * of them, or in the middle of one. Module scope is kept between invocations, as it is there.
 */
import process from 'node:process'
import { createInterface } from 'node:readline'
import { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
import { clients } from './clients.mjs'

const { DATABASE_URL, HANDLER_CLIENT = 'pg', HANDLER_DEADLINE = '10 s' } = process.env
const { driver, run, root, close } = await clients[HANDLER_CLIENT](DATABASE_URL, 4)
const hf = createHoldfast(driver)
const credits = hf.credits({ name: 'credits' })
/** How long an invocation has, as on Lambda. */
const limit = { deadline: HANDLER_DEADLINE }
let lease
let goOn = () => undefined
const unhandled = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))

const add = (tx, name) => run(tx, 'UPDATE counter SET n = n + 1 WHERE name = $1', [name])
const answer = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

/** What an invocation may ask for. */
const asked = {
  /** One of each; whatever id it is sent with is done once. */
  async order({ id, user }) {
    const { result } = await hf.once(`order:${id}`, async (tx) => {
      await add(tx, 'once')
      return { id }
    })
    const spent = await credits.spend(user, 1, { operationId: id })
    await hf.guard(lockKey('handler', 'guard'), (tx) => add(tx, 'guard'), limit)
    return { id: result.id, spent: spent.ok }
  },
  /** The same without Holdfast. */
  async plain() {
    await add(root, 'plain')
    return 'done'
  },
  async hold({ ttl }) {
    lease = await hf.leases.acquire('worker', { ttl })
    return String(lease.token)
  },
  /** Does what it holds the lease for, if the lease says that it may. */
  async work({ look, fence }) {
    if (look && lease.signal.aborted) return { stopped: lease.signal.reason.code }
    await hf.transaction(async (tx) => {
      if (fence) await lease.guard(tx)
      await add(tx, 'work')
    }, limit)
    return 'written'
  },
  /** Reads under the lock, tells so, and goes on when it is told to. */
  async slow({ call }) {
    let runs = 0
    await hf.guard(
      lockKey('handler', 'slow'),
      async (tx) => {
        runs += 1
        const [{ n }] = await run(tx, "SELECT n FROM counter WHERE name = 'slow'")
        if (runs === 1) {
          const told = Promise.withResolvers()
          goOn = told.resolve
          answer({ call, inside: true })
          await told.promise
        }
        await run(tx, "UPDATE counter SET n = $1 WHERE name = 'slow'", [n + 1])
      },
      limit,
    )
    return { runs }
  },
  async end() {
    await hf.close()
    await close()
    return { unhandled }
  },
}

async function invoke({ ask, ...event }) {
  const { call } = event
  const began = performance.now()
  const tookMs = () => Math.round(performance.now() - began)
  try {
    answer({ call, result: await asked[ask](event), tookMs: tookMs() })
  } catch (error) {
    const code = isHoldfastError(error) ? error.code : `untyped: ${error.message}`
    answer({ call, code, tookMs: tookMs() })
  }
  if (ask === 'end') process.exit()
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const event = JSON.parse(line)
  if (event.ask === 'go on') goOn()
  else void invoke(event)
})
answer({ ready: true })
