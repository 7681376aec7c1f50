import type { ObservedLock, ObservedSession } from 'holdfast/observe'
import { cleanText } from '../terminal/clean-text.ts'

/** A length of time for people: `350 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function age(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.floor(ms))} ms`
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  const units = [
    ['s', 1_000],
    ['min', 60_000],
    ['h', 3_600_000],
    ['d', 86_400_000],
  ] as const
  const at = units.findLastIndex(([, size]) => ms >= size)
  const [unit, size] = units[at] as (typeof units)[number]
  const whole = Math.floor(ms / size)
  const below = units[at - 1]
  const rest = below === undefined ? 0 : Math.floor((ms % size) / below[1])
  return below === undefined || rest === 0
    ? `${whole} ${unit}`
    : `${whole} ${unit} ${rest} ${below[0]}`
}

/** When it was, to the second, by the server's clock; without the day it was today. */
export function moment(iso: string | undefined): string {
  return iso === undefined ? '–' : iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z')
}

/** `billing`, or what is left to call a session by. */
export function sessionName({ pid, application, user }: ObservedSession): string {
  if (pid === 0) return 'prepared transaction'
  return cleanText(application === '' ? user : application)
}

/** `cart:7`, with what is done under it if that is known. */
export function lockName({ name, meaning }: ObservedLock): string {
  return cleanText(meaning === undefined ? name : `${name} (${meaning})`)
}

/** The first few by name, and how many more. */
export function lockNames(locks: readonly ObservedLock[], most: number): string {
  const names = [...new Set(locks.map(lockName))]
  const more = names.length - most
  return more > 0 ? `${names.slice(0, most).join(', ')} +${more}` : names.join(', ')
}

/** `idle in transaction for 12 s`. */
export function stateText({ state, stateMs, hidden }: ObservedSession): string {
  return hidden ? 'state not visible to this role' : `${cleanText(state)} for ${age(stateMs)}`
}

/** `1 session`, `3 sessions`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
