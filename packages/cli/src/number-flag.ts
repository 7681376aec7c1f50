import { type Failed, Misuse, notFound } from './failure.ts'

/** The whole number that a flag was given; undefined without the flag. */
export function numberOf(value: string | boolean | undefined, flag: string): number | undefined {
  if (typeof value !== 'string') return undefined
  if (/^\d{1,6}$/.test(value)) return Number(value)
  throw new Misuse(`--${flag} takes a whole number.`)
}

const mostSeconds = 99_999

/** Seconds, with a fraction if need be, as milliseconds. */
export function secondsOf(
  value: string | boolean | undefined,
  flag: string,
  least = 0.1,
): number | undefined {
  if (typeof value !== 'string') return undefined
  const seconds = /^\d{1,5}(\.\d{1,3})?$/.test(value) ? Number(value) : 0
  if (seconds >= least) return seconds * 1_000
  throw new Misuse(
    `--${flag} takes a number of seconds without a unit, from ${least} to ${mostSeconds}.`,
  )
}

/** The process id of a session. */
export function pidOf(value: string | undefined): number {
  const pid = /^\d{1,10}$/.test(value ?? '') ? Number(value) : 0
  if (pid >= 1 && pid < 2 ** 32) return pid
  throw new Misuse('<pid> is the process id of a session, as holdfast locks shows it.')
}

/** It has ended since, most likely. */
export function noSession(pid: number): Failed {
  return notFound(
    `No client of this database has a session with pid ${pid}.`,
    'Run `holdfast locks`, which shows those that wait or are waited for.',
  )
}
