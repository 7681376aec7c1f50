import { assertGuardOptions, type GuardOptions, type LockInput } from 'holdfast/locks'
import { misused, wrapMethod } from './wrap-method.ts'

/** Decorates a method that takes at least these parameters, and is async. */
export type AsyncMethodDecorator<A extends unknown[]> = <
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever it takes beyond A
  M extends (...args: any[]) => Promise<unknown>,
>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M> &
    (Parameters<M> extends readonly [...A, ...unknown[]] ? unknown : never),
) => void

/**
 * The method runs in a transaction that holds these locks, and its writes are committed when it returns. `key` gets the
 * arguments of the method. If a transaction is open around the call (`@Guarded`, `@Once`, `@Tick`, `@Transactional`),
 * the locks are taken in that one. The method gets its transaction from `CurrentTransaction`.
 *
 * After a deadlock or a serialization failure the method runs again: what it does outside of the database must bear it.
 *
 * @example class Uploads { @Guarded((user: string) => lockKey('upload', user)) async add(user: string) { … } }
 * @throws those of `guard`, OPTION_INVALID
 */
export function Guarded<A extends unknown[]>(
  key: (...args: A) => LockInput | readonly LockInput[] | Promise<LockInput | readonly LockInput[]>,
  options: GuardOptions = {},
): AsyncMethodDecorator<A> {
  if (typeof key !== 'function') throw misused('Guarded', 'give it a function that makes the key')
  // Where it stands, and not with the first call: in a transaction that is open already some options are not read.
  assertGuardOptions(options)
  return (target, name, descriptor) => {
    wrapMethod('Guarded', target, name, descriptor, async (runtime, self, args, method) => {
      const keys = await key.apply(self, args as A)
      return await runtime.guarded(keys, options, method)
    })
  }
}
