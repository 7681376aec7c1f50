import type { Row } from '../../core/driver.ts'
import { type Duration, durationMs } from '../../core/options/duration.ts'
import type { SweepEvent } from '../../core/events/event-map.ts'
import { channels, publish } from '../../core/events.ts'
import { sweepDue } from '../../engines/postgres/ledger/upkeep.ts'
import { needingSchema } from '../../engines/postgres/sql/call-function.ts'
import type { Kernel } from '../kernel.ts'
import { type Rounds, startRoundsOnEach } from './rounds.ts'
import { textAnswer } from '../stored-text.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'
import { countOf } from '../calendar.ts'

/** Options of `sweep`. */
export interface SweepOptions {
  /** How many due holds and grants one call looks for, 1 to 1000. @defaultValue 100 */
  readonly limit?: number
}

/** What a sweep did. */
export interface Swept {
  /** Movements it booked: holds that expired, grants that began, lapsed or rolled over. */
  readonly fallen: number
  /** More is due: there was more than `limit`, or somebody works on those accounts right now. */
  readonly more: boolean
}

/** Options of `startSweeper`. */
export interface SweeperOptions extends SweepOptions {
  /** Pause between two rounds, each time a little longer or shorter. @defaultValue '10 s' */
  readonly every?: Duration
}

const sweepOptions: KnownOptions<SweepOptions> = {
  limit: 'checked',
}

const sweeperOptions: KnownOptions<SweeperOptions> = {
  ...sweepOptions,
  every: 'checked',
}

/** A sweeper that is running. */
export type Sweeper = Rounds

/** Booking what falls due on accounts that nobody touches. */
export interface LedgerSweeping {
  /**
   * Expires due holds and grants of cold accounts. Correctness does not need it: an operation books
   * what is due on its account first. Any number of processes may sweep at once.
   *
   * @throws OPTION_INVALID, SCHEMA_MISSING, SHARD_PRIMARY_FAILED
   */
  sweep(options?: SweepOptions): Promise<Swept>
  /** Sweeps every so often until stopped. Does not keep the process alive. @throws OPTION_INVALID */
  startSweeper(options?: SweeperOptions): Sweeper
}

export function createSweeping<Tx>(kernel: Kernel<Tx>): LedgerSweeping {
  const { schema } = kernel
  const sweptOf = (rows: readonly Row[]): Swept => {
    const [fallen, more] = (textAnswer(rows) ?? '').split(',')
    return { fallen: Number(fallen), more: more === '1' }
  }
  return {
    async sweep(given) {
      const most = countOf(optionsGiven(given, sweepOptions).limit ?? 100, 'limit')
      const swept = (await kernel.readEach(() => sweepDue(schema, most))).map(sweptOf)
      return {
        fallen: swept.reduce((sum, { fallen }) => sum + fallen, 0),
        more: swept.some(({ more }) => more),
      }
    },
    startSweeper(given) {
      const { every = '10 s', limit = 100 } = optionsGiven(given, sweeperOptions)
      const most = countOf(limit, 'limit')
      return startRoundsOnEach(
        kernel,
        durationMs(every, 'every'),
        ({ primary, name, answered }) => {
          const sweep = async (): Promise<Swept> =>
            sweptOf(
              await answered(() => needingSchema(primary.alone.query(sweepDue(schema, most)))),
            )
          return (isStopped) => sweepAll(sweep, name, isStopped)
        },
      )
    },
  }
}

/** Sweeps until nothing is left. */
async function sweepAll(
  sweep: () => Promise<Swept>,
  primary: string | undefined,
  isStopped: () => boolean,
): Promise<void> {
  let event: SweepEvent
  do {
    event = await attempt(sweep, primary)
    publish(channels.ledgerSweep, event)
    // Where nothing fell although more is due, somebody else is at it.
  } while (!isStopped() && event.more && event.fallen > 0)
}

async function attempt(
  sweep: () => Promise<Swept>,
  primary: string | undefined,
): Promise<SweepEvent> {
  const began = performance.now()
  const durationMs = (): number => performance.now() - began
  try {
    return { ...(await sweep()), primary, durationMs: durationMs(), error: undefined }
  } catch (error) {
    return { fallen: 0, more: false, primary, durationMs: durationMs(), error }
  }
}
