/** One process of the service. It redeems what its parent asks for, in the way that WAY says. */
import type { Redeem } from '../src/coupon.ts'
import { pool } from '../src/database.ts'
import { redeem as byStatements } from '../src/redeem-by-statements.ts'
import { redeem as ledger } from '../src/redeem-ledger.ts'
import { redeem as unguarded } from '../src/redeem-unguarded.ts'

const ways = { unguarded, byStatements, ledger }
export type Way = keyof typeof ways

export interface Asked {
  readonly id: number
  readonly request: Redeem
}

export interface Answered {
  readonly id: number
  readonly answer: 'redeemed' | 'refused' | 'failed'
}

async function answer({ id, request }: Asked): Promise<void> {
  const redeem = ways[process.env['WAY'] as Way]
  let told: Answered['answer'] = 'failed'
  try {
    told = (await redeem(request)) ? 'redeemed' : 'refused'
  } catch (error) {
    console.error(error)
  }
  process.send?.({ id, answer: told } satisfies Answered)
}

// Opens the connections, so that the first requests do not arrive one by one.
await Promise.all(Array.from({ length: 10 }, () => pool.query('SELECT pg_sleep(0.1)')))
process.on('message', (asked: Asked) => void answer(asked))
process.once('disconnect', () => void pool.end())
process.send?.('ready')
