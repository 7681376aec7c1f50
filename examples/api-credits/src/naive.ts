/** What most of us write first. Every step is in a transaction, and it leaks all the same. */
import { and, count, eq, gte, sql } from 'drizzle-orm'
import { db } from './database.ts'
import { think } from './model.ts'
import {
  type Api,
  type CallAnswer,
  type CompletionAnswer,
  estimatedCredits,
  monthlyCalls,
  timeZone,
} from './plan.ts'
import { apiCall, wallet } from './tables.ts'

const monthStart = sql`date_trunc('month', now(), ${timeZone})`

// #region call
/** Two requests read 9 of 10 and both write. A request that is sent again counts again. */
async function useCall(userId: string, requestId: string): Promise<CallAnswer> {
  return db.transaction(async (tx) => {
    const [row] = await tx
      .select({ used: count() })
      .from(apiCall)
      .where(and(eq(apiCall.userId, userId), gte(apiCall.createdAt, monthStart)))
    const used = row?.used ?? 0
    if (used + 1 > monthlyCalls) return { ok: false, retryAt: undefined }
    await tx.insert(apiCall).values({ userId, requestId })
    return { ok: true, left: monthlyCalls - used - 1 }
  })
}
// #endregion

// #region completion
/** If the process is killed while the model thinks, what it reserved is reserved for ever. */
async function complete(
  userId: string,
  _requestId: string,
  prompt: string,
): Promise<CompletionAnswer> {
  const reserved = await db.transaction(async (tx) => {
    const [row] = await tx.select().from(wallet).where(eq(wallet.userId, userId))
    if (row === undefined || row.balance - row.reserved < estimatedCredits) return false
    await reserve(tx, userId, estimatedCredits, 0)
    return true
  })
  if (!reserved) return { ok: false, why: 'not-enough-credits' }
  let cost = 0
  try {
    const answer = await think(prompt)
    cost = answer.cost
    return { ok: true, ...answer }
  } finally {
    await reserve(db, userId, -estimatedCredits, -cost)
  }
}
// #endregion

async function reserve(
  tx: Pick<typeof db, 'update'>,
  userId: string,
  reserved: number,
  balance: number,
): Promise<void> {
  await tx
    .update(wallet)
    .set({
      reserved: sql`${wallet.reserved} + ${reserved}`,
      balance: sql`${wallet.balance} + ${balance}`,
    })
    .where(eq(wallet.userId, userId))
}

export const naive: Api = { useCall, complete }
