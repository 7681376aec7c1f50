import { UnprocessableEntityException } from '@nestjs/common'
import type { Holdfast } from 'holdfast'
import { ContentionError, UsageError } from 'holdfast/errors'
import type { AcquireOptions, GuardOptions, LockInput } from 'holdfast/locks'
import type { OnceOptions } from 'holdfast/once'
import type { RunOptions } from 'holdfast/tx'
import type { AmbientTransactions } from './ambient.ts'
import { assertDone, assertPlain } from './outcome.ts'

/** The method that was decorated, with the arguments of this call. */
export interface Wrapped {
  run(): unknown
  /** What is given back did not come from its last run: what that has set on a response counts no more. */
  forget(): void
}

/** What decorated methods of one application run with. */
export class Runtime<Tx> {
  readonly hf: Holdfast<Tx>
  readonly ambient: AmbientTransactions<Tx>

  constructor(hf: Holdfast<Tx>, ambient: AmbientTransactions<Tx>) {
    this.hf = hf
    this.ambient = ambient
  }

  /** In the transaction that is open, or in one of its own. */
  async guarded(
    keys: LockInput | readonly LockInput[],
    options: GuardOptions,
    method: Wrapped,
  ): Promise<unknown> {
    const open = this.ambient.find()
    if (open === undefined)
      return await this.hf.guard(
        keys,
        async (tx) => await this.ambient.run(tx, () => done(method)),
        options,
      )
    if (options.isolation !== undefined) throw joinedWith('isolation')
    await this.hf.locks.acquire(open, keys, waitingOf(options))
    return await done(method)
  }

  /** The same, once per key. */
  async once(key: string, options: OnceOptions & RunOptions, method: Wrapped): Promise<unknown> {
    const work = async (tx: Tx): Promise<unknown> =>
      await this.ambient.run(tx, async () => assertPlain(await done(method)))
    const open = this.ambient.find()
    if (open !== undefined && options.isolation !== undefined) throw joinedWith('isolation')
    const answer =
      open === undefined
        ? await this.hf.once(key, work, options)
        : await this.hf.once(open, key, work, memoryOf(options))
    if (!answer.ok || answer.replayed) method.forget()
    if (answer.ok) return answer.result
    if (answer.reason === 'in-progress') throw new ContentionError('ONCE_TIMEOUT')
    throw new UnprocessableEntityException('the key was used for another request')
  }
}

async function done(method: Wrapped): Promise<unknown> {
  return assertDone(await method.run())
}

/** Of a transaction that is open already only the wait is ours to choose. */
function waitingOf(options: GuardOptions): AcquireOptions {
  const { wait, waitMs, keepTransaction, allowStaleSnapshot } = options
  return given({ wait, waitMs, keepTransaction, allowStaleSnapshot })
}

function memoryOf({ scope, keep, payload, wait }: OnceOptions): OnceOptions {
  return given({ scope, keep, payload, wait })
}

/** Without what is undefined: an option that is there counts as given. */
function given<O extends object>(options: { [K in keyof O]: O[K] | undefined }): O {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as unknown as O
}

function joinedWith(option: string): Error {
  const subject = `${option} cannot be chosen for a transaction that is open already`
  return new UsageError('OPTION_INVALID', { details: { option, subject } })
}
