import { and, eq } from 'drizzle-orm'
import { perUser, type Redeem } from './coupon.ts'
import { db } from './database.ts'
import { coupon, redemption } from './tables.ts'

/** The bug: two of these count at the same moment, and both insert. */
export async function redeem({ requestId, code, userId }: Redeem): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if ((await tx.$count(redemption, eq(redemption.requestId, requestId))) > 0) return true
    const [found] = await tx.select().from(coupon).where(eq(coupon.code, code))
    const ofCode = eq(redemption.code, code)
    const used = await tx.$count(redemption, ofCode)
    const mine = await tx.$count(redemption, and(ofCode, eq(redemption.userId, userId)))
    if (found === undefined || used >= found.max || mine >= perUser) return false
    await tx.insert(redemption).values({ requestId, code, userId })
    return true
  })
}
