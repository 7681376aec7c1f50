import { assertOnceOptions, type OnceOptions } from 'holdfast/once'
import type { RunOptions } from 'holdfast/tx'
import type { AsyncMethodDecorator } from './guarded.ts'
import { isObject, refused } from './known-options.ts'
import { misused, wrapMethod } from './wrap-method.ts'

/** Options of `@Once`. */
export interface OnceMethodOptions<A extends unknown[]>
  extends Omit<OnceOptions, 'scope' | 'payload'>,
    RunOptions {
  /** What keys are unique within. @defaultValue the key itself */
  readonly scope?: string | ((...args: A) => string)
  /** What came with the key, of the arguments: something else under the same key is refused with 422. */
  readonly payload?: (...args: A) => unknown
}

/**
 * The method runs once per key, in a transaction of its own or in the one that is open; every later call gets what it
 * returned, as JSON gives it back. If it throws, nothing is kept, and the next call runs it again. It must return plain
 * data.
 *
 * @example class Payments { @Once((event: Paid) => `stripe:${event.id}`) async pay(event: Paid) { … } }
 * @throws those of `once`, OPTION_INVALID, UnprocessableEntityException
 */
export function Once<A extends unknown[]>(
  key: (...args: A) => string,
  options: OnceMethodOptions<A> = {},
): AsyncMethodDecorator<A> {
  if (typeof key !== 'function') throw misused('Once', 'give it a function that makes the key')
  if (!isObject(options)) throw refused('options', 'options must be an object')
  const { scope, payload, ...rest } = options
  if ('payload' in options && typeof payload !== 'function')
    throw refused('payload', 'payload must be a function of the arguments')
  // Of a function it is known only with the call.
  assertOnceOptions(scope === undefined || typeof scope === 'function' ? rest : { ...rest, scope })
  return (target, name, descriptor) => {
    wrapMethod('Once', target, name, descriptor, async (runtime, self, given, method) => {
      const args = given as A
      return await runtime.once(
        key.apply(self, args),
        {
          ...rest,
          ...(scope === undefined
            ? {}
            : { scope: typeof scope === 'function' ? scope.apply(self, args) : scope }),
          ...(payload === undefined ? {} : { payload: compared(payload.apply(self, args)) }),
        },
        method,
      )
    })
  }
}

/** Something that nobody sent cannot be compared: every call would be taken for the same. */
function compared(payload: unknown): unknown {
  if (payload === undefined)
    throw refused('payload', 'payload gave undefined: it must give what came with the key')
  return payload
}
