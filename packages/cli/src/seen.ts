import type { ObservedSession, SessionSeen } from 'holdfast/observe'
import { Misuse } from './failure.ts'

const idle = 'idle'
const form = /^([0-9a-z]{1,12})-([0-9a-z]{1,12})(?:-([0-9a-z.]{1,40}))?$/

/** Which transaction of a session somebody saw, short enough for a command line: what `--seen` takes. */
export function seenText({
  startedAt,
  transactionStartedAt,
  transactionId,
}: ObservedSession): string | undefined {
  if (startedAt === undefined) return undefined
  if (transactionStartedAt === undefined) return `${shortOf(startedAt)}-${idle}`
  const number = transactionId === undefined ? '' : `-${transactionId}`
  return `${shortOf(startedAt)}-${shortOf(transactionStartedAt)}${number}`
}

/** The same read back. @throws Misuse */
export function seenOf(text: string): SessionSeen {
  const [, session = '', transaction = '', number] = form.exec(text) ?? []
  if (session === '') throw new Misuse('--seen takes what cancel prints without --yes.')
  return {
    startedAt: longOf(session),
    transactionStartedAt: transaction === idle ? null : longOf(transaction),
    ...(number === undefined ? {} : { transactionId: number }),
  }
}

/** Microseconds since 1970 in letters and digits. */
function shortOf(iso: string): string {
  const [seconds = '', fraction = ''] = iso.replace('Z', '').split('.')
  return (Date.parse(`${seconds}Z`) * 1_000 + Number(fraction.padEnd(6, '0'))).toString(36)
}

function longOf(short: string): string {
  const micros = Number.parseInt(short, 36)
  const fraction = String(micros % 1_000_000).padStart(6, '0')
  const date = new Date(Math.floor(micros / 1_000_000) * 1_000)
  if (Number.isNaN(date.getTime()))
    throw new Misuse('--seen takes what cancel prints without --yes.')
  return date.toISOString().replace(/\.\d{3}Z$/, `.${fraction}Z`)
}
