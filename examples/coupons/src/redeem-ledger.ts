import { eq } from 'drizzle-orm'
import { perUser, type Redeem } from './coupon.ts'
import { db, hf } from './database.ts'
import { coupon, redemption } from './tables.ts'

const ofCode = hf.quota({ name: 'coupon', per: 'lifetime', limit: maxOf })
const ofUser = hf.quota({ name: 'coupon-user', per: 'lifetime', limit: perUser })

async function maxOf(code: string): Promise<number> {
  const [found] = await db.select().from(coupon).where(eq(coupon.code, code))
  return found?.max ?? 0
}

/** With Holdfast: both limits in one statement, all or nothing. A request that comes twice is counted once. */
export async function redeem({ requestId, code, userId }: Redeem): Promise<boolean> {
  const lines = [await ofCode.line(code, 1), await ofUser.line(`${code} ${userId}`, 1)]
  return await hf.transaction(async (tx) => {
    const verdict = await hf.ledger.apply(tx, lines, { operationId: requestId, scope: code })
    if (!verdict.ok) return false
    if (!verdict.replayed) await tx.insert(redemption).values({ requestId, code, userId })
    return true
  })
}
