import { constants, hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { isHoldfastError } from 'holdfast/errors'
import { createLeases, type Lease, type LeaseReading, type Leases } from 'holdfast/leases'
import type { Call, Command } from '../command.ts'
import { type ExecTerms, execTerms, leastTtlSeconds } from '../exec/exec-terms.ts'
import { GuardedCommand } from '../exec/guarded-command.ts'
import type { Ended, NotStarted } from '../exec/guardian-words.ts'
import { keepLease } from '../exec/keep-lease.ts'
import { machineMs } from '../exec/machine-clock.ts'
import { Failed, failed, failureOf, Misuse } from '../failure.ts'
import { secondsOf } from '../number-flag.ts'
import { moment } from '../render/words.ts'

/** Nobody's exit codes but ours, as far as there are such: the command's own are handed on. */
const codes = {
  /** The lease was not free, or not in time: the command did not run. */
  busy: 75,
  /** The command was ended, or told to end, because the lease could not be kept. */
  lost: 76,
  /** Something failed before the command ran. */
  notRun: 125,
  /** The system did not start it; as shells tell it. */
  notStarted: 126,
} as const

export const exec: Command = {
  name: 'exec',
  about: 'Run a command under a lease: one at a time, across machines',
  needsDatabase: true,
  runsCommand: true,
  flags: {
    lock: {
      type: 'string',
      value: '<name>',
      about: 'Name of the lease: commands with the same name run one at a time',
      required: true,
    },
    wait: {
      type: 'string',
      value: '<seconds>',
      about: 'How long to wait until it is free; without it, as long as it takes',
    },
    'no-wait': { type: 'boolean', about: 'Exit with 75 if somebody else has it' },
    ttl: {
      type: 'string',
      value: '<seconds>',
      about: 'How long others wait if this machine dies. Default: 30',
    },
    grace: {
      type: 'string',
      value: '<seconds>',
      about:
        'Between SIGTERM and SIGKILL, if the lease cannot be kept. Default: ttl / 4, at most 10',
    },
  },
  async run(call) {
    const { flags, rest, schema } = call
    if (process.platform === 'win32') throw new Misuse('exec needs process groups: Linux or macOS.')
    if (rest.length === 0) throw new Misuse('The command is needed, after --.')
    if (flags['no-wait'] === true && flags['wait'] !== undefined) {
      throw new Misuse('--wait and --no-wait cannot be used together.')
    }
    const wait =
      flags['no-wait'] === true ? 'nowait' : (secondsOf(flags['wait'], 'wait') ?? Infinity)
    const terms = execTerms(
      secondsOf(flags['ttl'], 'ttl', leastTtlSeconds),
      secondsOf(flags['grace'], 'grace'),
    )
    const signals = new PassedSignals(call)
    try {
      return await call.database(async (driver) => {
        const leases = createLeases(driver, schema === undefined ? {} : { schema })
        const lease = await acquired(call, leases, terms, wait, signals.waiting)
        return await runUnder(call, lease, terms, signals)
      })
    } catch (error) {
      // Ended while it waited: as the signal would have ended it.
      if (signals.first !== undefined && error === signals.waiting.reason) {
        return exitCode({ code: null, signal: signals.first })
      }
      if (error instanceof Misuse) throw error
      if (!(error instanceof Failed)) throw new Failed(failureOf(error), codes.notRun)
      throw error.exitCode === failed ? new Failed(error.failure, codes.notRun) : error
    } finally {
      signals.end()
    }
  },
}

const passed = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
] as const satisfies readonly NodeJS.Signals[]

const ending: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

/** Signals end the wait for the lease; from then on they are the command's. */
class PassedSignals {
  readonly #waiting = new AbortController()
  readonly end: () => void
  first: NodeJS.Signals | undefined
  to: ((signal: NodeJS.Signals) => void) | undefined

  constructor({ around }: Call) {
    this.end = around.onSignals([...passed, 'SIGTSTP'], (signal) => {
      // Ctrl-Z would stop the renewals and not the command.
      if (signal === 'SIGTSTP') return
      if (this.to !== undefined) this.to(signal)
      else if (ending.includes(signal)) {
        this.first ??= signal
        this.#waiting.abort()
      }
    })
  }

  get waiting(): AbortSignal {
    return this.#waiting.signal
  }
}

async function acquired(
  { flags, tell }: Call,
  leases: Leases<unknown>,
  { ttlMs, stopBeforeMs }: ExecTerms,
  wait: number | 'nowait',
  signal: AbortSignal,
): Promise<Lease<unknown>> {
  const name = String(flags['lock'])
  const note = `${hostname()}, process ${process.pid}`
  // Renewed by hand, to know for certain until when.
  const options = { ttl: ttlMs, stopBefore: stopBeforeMs, renew: false, note }
  const lease = await leases.tryAcquire(name, options)
  if (lease !== undefined) return lease
  if (wait !== 'nowait') tell(`Waiting: ${holderIn(await leases.read(name))}.`)
  try {
    return await leases.acquire(name, { ...options, wait, signal })
  } catch (error) {
    if (!isHoldfastError(error, 'LEASE_TIMEOUT')) throw error
    // Whoever had it when the wait began may be gone.
    const held = await leases.read(name).catch(() => undefined)
    const message = `The command did not run. ${holderIn(held)}.`
    const next = 'Wait longer with --wait; `holdfast leases` shows who has it, and until when.'
    throw new Failed({ code: error.code, message, next }, codes.busy)
  }
}

/** Of a lease that is free, what is known is about the last holder. */
function holderIn(held: LeaseReading | undefined): string {
  if (held === undefined || held.state === 'free') return 'Somebody else took the lease'
  const holder = held.note === undefined ? 'Somebody else' : `${held.note},`
  const since = moment(held.acquiredAt?.toISOString())
  return held.state === 'held'
    ? `${holder} has had the lease since ${since}`
    : `${holder} lost the lease that it has had since ${since}, and its delay is not over`
}

async function runUnder(
  call: Call,
  lease: Lease<unknown>,
  terms: ExecTerms,
  signals: PassedSignals,
): Promise<number> {
  const stop = new AbortController()
  try {
    signals.waiting.throwIfAborted()
    const sentAt = machineMs()
    if (!(await lease.renew())) throw new Error('The lease was lost before the command could run.')
    signals.waiting.throwIfAborted()
    const environment = {
      ...call.around.environment,
      HOLDFAST_LEASE_NAME: lease.name,
      HOLDFAST_LEASE_TOKEN: String(lease.token),
    }
    const until = sentAt + terms.ttlMs - terms.stopBeforeMs
    const command = await GuardedCommand.start(call.rest, environment, terms, until)
    signals.to = (signal) => command.signal(signal)
    // It came while the command was being started.
    if (signals.first !== undefined) command.signal(signals.first)
    void keepLease(lease, terms, stop.signal, (next) => command.allow(next))
    const ended = await command.ended
    if (ended === 'unknown') throw cut('the process that watches over the command was killed')
    if ('reason' in ended) throw notStarted(ended)
    if (ended.cut) throw cut('the lease could not be renewed in time')
    return exitCode(ended)
  } finally {
    stop.abort()
    await released(call, lease)
  }
}

function notStarted({ reason }: NotStarted): Failed {
  const isLong = reason === 'E2BIG'
  const why = isLong ? `its arguments and environment are too long (${reason})` : reason
  const message = `The command could not be started: ${why}.`
  const next = isLong
    ? 'Pass them in a file or on standard input.'
    : 'Check the limits of this machine, and run it again.'
  return new Failed({ code: 'COMMAND_NOT_STARTED', message, next }, codes.notStarted)
}

function cut(why: string): Failed {
  const message = `The command was ended before it was through, because ${why}.`
  const next = 'Check what it has done so far, and run it again.'
  return new Failed({ code: 'LEASE_LOST', message, next }, codes.lost)
}

const releaseLimitMs = 5_000

/** Nothing of the command runs any more. A lease that cannot be given back expires. */
async function released({ tell }: Call, lease: Lease<unknown>): Promise<void> {
  const limit = new AbortController()
  const isReleased = await Promise.race([
    lease.release().catch(() => undefined),
    pause(releaseLimitMs, undefined, { signal: limit.signal }).catch(() => undefined),
  ])
  limit.abort()
  if (isReleased === undefined) tell('The lease could not be released; it expires by itself.')
}

/** As a shell tells it. */
function exitCode({ code, signal }: Pick<Ended, 'code' | 'signal'>): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}
