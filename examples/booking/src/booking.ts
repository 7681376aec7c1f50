/** What somebody asks for. */
export interface NewBooking {
  readonly desk: string
  readonly guest: string
  readonly from: Date
  readonly until: Date
}

/** A guest may have so many bookings in a week, from Monday to Sunday in UTC. */
export const perWeek = 2

const dayMs = 24 * 60 * 60_000

/** The week of a moment, as a condition of Prisma. */
export function weekOf(moment: Date): { readonly gte: Date; readonly lt: Date } {
  const daysSinceMonday = (moment.getUTCDay() + 6) % 7
  const midnight = Math.floor(moment.getTime() / dayMs) * dayMs
  const monday = midnight - daysSinceMonday * dayMs
  return { gte: new Date(monday), lt: new Date(monday + 7 * dayMs) }
}
