/** The program of one process that transfers until it is killed; see transfers.ts. */
import { randomUUID } from 'node:crypto'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { ContentionError, createHoldfast } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { books, keyOf, type TransfersSetup, wallets } from './transfers.ts'

const connections = 6
/** So many at once, of which every tenth is part of a transaction of its own. */
const callers = 48

process.on('disconnect', () => process.exit(0))
process.on('message', (setup: TransfersSetup) => {
  run(setup).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})

async function run({ url, apart }: TransfersSetup): Promise<void> {
  const pool = await openPool(url, connections)
  const hf = createHoldfast(fromPg(pool))
  const faces = books.map((name) => hf.credits({ name }))
  const random = (below: number): number => Math.floor(Math.random() * below)
  const face = (): (typeof faces)[number] => faces[random(faces.length)] as never
  const send = async (joined: boolean): Promise<void> => {
    const amount = 2 + random(40)
    const fee = 1 + random(amount - 1)
    // Everybody pays a fee to the first account, which pays half of all: else it would soon have everything.
    const payer = random(2) === 0 ? 0 : 1 + random(wallets - 1)
    // Nobody pays himself, nor is paid twice.
    const [first, second] = [1 + random(wallets - 2), 1 + random(wallets - 2)]
    const payee = (payer + first) % wallets
    const next = (payer + (first === second ? first + 1 : second)) % wallets
    const third = payer === 0 || payee === 0 ? next : 0
    const [from, to, house] = [keyOf(payer), keyOf(payee), keyOf(third)]
    const options = { operationId: randomUUID(), acrossScopes: true }
    const [taken, given] = [face(), face()]
    if (apart) {
      // Two operations where one would do.
      const { ok } = await taken.spend(from, amount, { operationId: options.operationId })
      if (ok) await given.grant(to, amount, { operationId: options.operationId })
      return
    }
    const transfer = {
      from: [await taken.line(from, amount)],
      to: [given.grantLine(to, amount - fee), face().grantLine(house, fee)],
    }
    if (joined) await hf.transaction(async (tx) => await hf.ledger.transfer(tx, transfer, options))
    else await hf.ledger.transfer(transfer, options)
  }
  const caller = async (at: number): Promise<never> => {
    for (;;) {
      // Nothing was transferred if the machine was too slow for it.
      await send(at % 10 === 0).catch((error: unknown) => {
        if (!(error instanceof ContentionError)) throw error
      })
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, at) => caller(at)))
}
