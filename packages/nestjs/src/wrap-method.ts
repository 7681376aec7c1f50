import 'reflect-metadata'
import { Inject } from '@nestjs/common'
import { UsageError } from 'holdfast/errors'
import { holdBack } from './hold-back.ts'
import { responsesIn } from './response-state.ts'
import type { Runtime, Wrapped } from './runtime.ts'
import { RUNTIME } from './tokens.ts'

/** Where Nest puts the runtime into the instances it makes: each application puts in its own. */
const place = '__holdfastRuntime'

type Method = (this: object, ...args: unknown[]) => unknown

/** What is done in place of a method. */
export type Instead = (
  runtime: Runtime<unknown>,
  self: object,
  args: unknown[],
  method: Wrapped,
) => Promise<unknown>

/** Puts something in place of a method of a class that Nest makes. */
export function wrapMethod(
  decorator: string,
  target: object,
  name: string | symbol,
  descriptor: PropertyDescriptor | undefined,
  instead: Instead,
): void {
  const original = methodOf(decorator, target, name, descriptor)
  if (sendsItself(target.constructor, name))
    throw misused(decorator, 'an answer sent through @Res() goes out before COMMIT: return it')
  const wrapped: Method = async function (...args) {
    const runtime = (this as Partial<Record<string, Runtime<unknown>>> | undefined)?.[place]
    if (runtime === undefined)
      throw misused(
        decorator,
        'the instance was not made by Nest with HoldfastModule, or the method was called without it',
      )
    // A response may get here in a route, with passthrough, or by a service that is handed one.
    const held = responsesIn(args).map((response) =>
      holdBack(response, () => sentItself(decorator)),
    )
    const call = (): unknown => original.apply(this, args)
    const method: Wrapped = {
      run: held.reduce(
        (run, { run: hold }) =>
          () =>
            hold(async () => await run()),
        call,
      ),
      forget: () => held.forEach(({ putBack }) => putBack()),
    }
    try {
      return await instead(runtime, this, args, method)
    } finally {
      for (const { release } of held.toReversed()) release()
    }
  }
  Object.defineProperty(wrapped, 'name', { value: original.name, configurable: true })
  // Routes, guards and pipes are notes on the function.
  for (const key of Reflect.getOwnMetadataKeys(original))
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), wrapped)
  ;(descriptor as PropertyDescriptor).value = wrapped
  // A class with two such methods needs it once.
  const known = (Reflect.getMetadata('self:properties_metadata', target.constructor) ??
    []) as readonly { key?: unknown }[]
  if (!known.some(({ key }) => key === place)) Inject(RUNTIME)(target, place)
}

/** The method itself. @throws OPTION_INVALID where a decorator stands on something else */
export function methodOf(
  decorator: string,
  target: unknown,
  name: unknown,
  descriptor: PropertyDescriptor | undefined,
): Method {
  if (typeof name === 'object' && name !== null && 'kind' in name)
    throw misused(decorator, 'it needs "experimentalDecorators", as all decorators of Nest do')
  if (typeof target === 'function')
    throw misused(decorator, 'a static method belongs to no instance')
  if (typeof descriptor?.value !== 'function')
    throw misused(decorator, 'it stands on a method only')
  return descriptor.value as Method
}

/** Whether a handler takes the response to itself, by `@Res()` or `@Next()`. */
export function sendsItself(type: object, name: string | symbol): boolean {
  if (Reflect.getMetadata('__responsePassthrough__', type, name) === true) return false
  const params: unknown = Reflect.getMetadata('__routeArguments__', type, name) ?? {}
  // Of Nest's RouteParamtypes, RESPONSE and NEXT.
  return Object.keys(params as object).some((kind) => /^[12]:/.test(kind))
}

/** A handler has sent an answer before COMMIT. */
export function sentItself(decorator: string): UsageError {
  return misused(decorator, 'the method sent an answer itself, before COMMIT: return it')
}

/** A mistake in the use of a decorator. */
export function misused(decorator: string, subject: string): UsageError {
  return new UsageError('OPTION_INVALID', {
    details: { option: `@${decorator}`, subject: `@${decorator}: ${subject}` },
  })
}
