import 'reflect-metadata'
import type { DiscoveryService, MetadataScanner } from '@nestjs/core'
import {
  assertScheduleOptions,
  type LeasedTick,
  type Schedule,
  type ScheduleOptions,
  type Tick as AnyTick,
} from 'holdfast/schedule'
import { isObject, refused } from './known-options.ts'
import type { Runtime } from './runtime.ts'
import { methodOf, misused } from './wrap-method.ts'

/** What a schedule is, without what it does: that is the method. */
type Without<O> = O extends unknown ? Omit<O, 'handler'> : never

/** Options of `@Tick`: those of `hf.schedule`, without the handler. */
export type TickOptions = Without<ScheduleOptions<unknown>>

const noted = Symbol.for('holdfast.nestjs.tick')

/**
 * The method runs at the ticks of this schedule, each tick in one of all processes. It gets the tick; a transactional
 * one has its transaction in `CurrentTransaction`. It starts with the application and stops with it. Only of providers
 * and controllers of which there is one: a request-scoped or transient one is refused when the application starts.
 *
 * @example class Reports { @Tick({ name: 'nightly', cron: '0 3 * * *', guarantee: 'transactional' }) async run() { … } }
 * @throws OPTION_INVALID
 */
export function Tick(options: TickOptions): MethodDecorator {
  if (!isObject(options)) throw refused('options', 'options must be an object')
  if ('handler' in options) throw refused('handler', 'handler is the method itself')
  const handler = (): undefined => undefined
  assertScheduleOptions({ ...options, handler } as ScheduleOptions<unknown>)
  return (target, name, descriptor) => {
    Reflect.defineMetadata(
      noted,
      options,
      methodOf('Tick', target, name, descriptor as PropertyDescriptor),
    )
  }
}

/** A method under `@Tick`, and whose it is. */
export interface TickMethod {
  readonly options: TickOptions
  readonly instance: Readonly<Record<string, (tick: AnyTick) => unknown>>
  readonly method: string
}

/** All methods under `@Tick` of the application. @throws OPTION_INVALID */
export function tickMethodsOf(discovery: DiscoveryService, scanner: MetadataScanner): TickMethod[] {
  const found: TickMethod[] = []
  const seen = new Set<unknown>()
  const names = new Map<string, string>()
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    const isOne = wrapper.isDependencyTreeStatic() && !wrapper.isTransient
    // Of one, whatever made it: a class, a factory or a value.
    const prototype: unknown = isOne ? prototypeOf(wrapper.instance) : wrapper.metatype?.prototype
    // An alias is the same instance once more.
    if (
      typeof prototype !== 'object' ||
      prototype === null ||
      (isOne && seen.has(wrapper.instance))
    )
      continue
    if (isOne) seen.add(wrapper.instance)
    for (const method of scanner.getAllMethodNames(prototype)) {
      const options = optionsAt(prototype, method)
      if (options === undefined) continue
      const place = `${prototype.constructor.name}.${method}`
      if (!isOne)
        throw misused('Tick', `${place} belongs to a request-scoped or transient provider`)
      const other = names.get(options.name)
      if (other !== undefined)
        throw misused('Tick', `${place} and ${other} are the same schedule: give each its own name`)
      names.set(options.name, place)
      found.push({ options, instance: wrapper.instance as TickMethod['instance'], method })
    }
  }
  return found
}

function prototypeOf(instance: unknown): unknown {
  return typeof instance === 'object' && instance !== null ? Object.getPrototypeOf(instance) : null
}

function optionsAt(prototype: object, method: string): TickOptions | undefined {
  const value: unknown = (prototype as Record<string, unknown>)[method]
  if (typeof value !== 'function') return undefined
  return Reflect.getOwnMetadata(noted, value) as TickOptions | undefined
}

/** Declares one; `close` of the Holdfast stops what was started of it. */
export function scheduleOf<Tx>(
  runtime: Runtime<Tx>,
  { options, instance, method }: TickMethod,
): Schedule {
  const run = async (tick: AnyTick): Promise<unknown> => await instance[method]?.(tick)
  const handler =
    options.guarantee === 'transactional'
      ? (tx: Tx, tick: AnyTick) => runtime.ambient.run(tx, () => run(tick))
      : (tick: LeasedTick<Tx>) => run(tick)
  return runtime.hf.schedule({ ...options, handler } as ScheduleOptions<Tx>)
}
