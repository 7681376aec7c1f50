import { and, eq, lt, sql } from 'drizzle-orm'
import { perUser, type Redeem } from './coupon.ts'
import { db } from './database.ts'
import { coupon, couponUser, redemption } from './tables.ts'

class Refused extends Error {}

/** Without Holdfast: a primary key, and two counters that check and count in one statement each. */
export async function redeem({ requestId, code, userId }: Redeem): Promise<boolean> {
  try {
    return await db.transaction(async (tx) => {
      const row = { requestId, code, userId }
      const added = await tx.insert(redemption).values(row).onConflictDoNothing().returning()
      if (added.length === 0) return true // the request was here before
      const counted = await tx
        .update(coupon)
        .set({ used: sql`${coupon.used} + 1` })
        .where(and(eq(coupon.code, code), lt(coupon.used, coupon.max)))
        .returning()
      if (counted.length === 0) throw new Refused()
      const mine = await tx
        .insert(couponUser)
        .values({ code, userId, used: 1 })
        .onConflictDoUpdate({
          target: [couponUser.code, couponUser.userId],
          set: { used: sql`${couponUser.used} + 1` },
          setWhere: lt(couponUser.used, perUser),
        })
        .returning()
      if (mine.length === 0) throw new Refused() // undoes the count above
      return true
    })
  } catch (error) {
    if (error instanceof Refused) return false
    throw error
  }
}
