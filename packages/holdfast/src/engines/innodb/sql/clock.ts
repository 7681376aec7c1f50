/**
 * The server's clock, in microseconds since 1970, when the statement began: a statement that decides by it must not wait
 * before. By UTC, because in the zone of a session the hour before its clock is set back comes twice.
 */
export const nowUs = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

/** A span in microseconds, as it is bound; clients bind numbers as floating ones. */
export const span = 'CAST(? AS SIGNED)'

/** What is bound to `span`. */
export function spanOf(ms: number): string {
  return String(Math.round(ms * 1_000))
}

/** A moment as the Date that contains it; nothing of one that never was. */
export function dateOf(us: unknown): Date | undefined {
  const moment = Number(us)
  return moment > 0 ? new Date(Math.floor(moment / 1_000)) : undefined
}

/**
 * A statement in which columns of the user's mean UTC, whatever the zone of the session is, as MariaDB says it and as
 * MySQL does: each passes over the other's words. A TIMESTAMP is a moment, and is read and written in the zone of the
 * session, where an hour of each year comes twice.
 */
export const inUtc: { readonly before: string; readonly hint: string } = {
  before: "/*M! SET STATEMENT time_zone = '+00:00' FOR */ ",
  hint: "/*+ SET_VAR(time_zone = '+00:00') */ ",
}

/** The server's clock when the statement began, for columns of the user's and only `inUtc`. */
export const utcNow = 'UTC_TIMESTAMP(6)'

/** So many microseconds, as they are bound, after that. */
export const utcLater: string = `${utcNow} + INTERVAL ${span} MICROSECOND`
