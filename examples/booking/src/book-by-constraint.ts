import { type NewBooking, perWeek, weekOf } from './booking.ts'
import { prisma } from './database.ts'

/** Without Holdfast: the constraint of no-overlap.sql keeps desks. The limit of a guest is still checked before. */
export async function book({ desk, guest, from, until }: NewBooking): Promise<boolean> {
  return await prisma.$transaction(async (tx) => {
    const thisWeek = { guest, from: weekOf(from) }
    if ((await tx.booking.count({ where: thisWeek })) >= perWeek) return false
    // ON CONFLICT DO NOTHING: whoever comes second inserts nothing.
    const data = [{ desk, guest, from, until }]
    const { count } = await tx.booking.createMany({ data, skipDuplicates: true })
    return count === 1
  })
}
