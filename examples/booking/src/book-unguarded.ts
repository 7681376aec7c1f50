import { type NewBooking, perWeek, weekOf } from './booking.ts'
import { prisma } from './database.ts'

/** The bug: two of these count at the same moment, and both insert. */
export async function book({ desk, guest, from, until }: NewBooking): Promise<boolean> {
  return await prisma.$transaction(async (tx) => {
    const overlapping = { desk, from: { lt: until }, until: { gt: from } }
    if ((await tx.booking.count({ where: overlapping })) > 0) return false
    const thisWeek = { guest, from: weekOf(from) }
    if ((await tx.booking.count({ where: thisWeek })) >= perWeek) return false
    await tx.booking.create({ data: { desk, guest, from, until } })
    return true
  })
}
