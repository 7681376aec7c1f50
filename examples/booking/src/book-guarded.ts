import { type NewBooking, perWeek, weekOf } from './booking.ts'
import { hf } from './database.ts'
import { deskLock, guestLock } from './locks.ts'

/** With Holdfast: the body of the bug, one at a time for each desk and for each guest. */
export async function book({ desk, guest, from, until }: NewBooking): Promise<boolean> {
  return await hf.guard([deskLock(desk), guestLock(guest)], async (tx) => {
    const overlapping = { desk, from: { lt: until }, until: { gt: from } }
    if ((await tx.booking.count({ where: overlapping })) > 0) return false
    const thisWeek = { guest, from: weekOf(from) }
    if ((await tx.booking.count({ where: thisWeek })) >= perWeek) return false
    await tx.booking.create({ data: { desk, guest, from, until } })
    return true
  })
}
