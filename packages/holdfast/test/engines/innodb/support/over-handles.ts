import type { InnodbDriver, InnodbTransaction } from '../../../../src/engines/innodb/driver.ts'
import type { Handle } from './innodb-clients.ts'

/** How the handles of a client are used by tests that know of none. */
export interface Handles<Native extends object> {
  /** For a body. */
  of(native: Native): Handle
  /** What one of `connect` stands for now: it changes when a transaction begins. */
  native(handle: Handle): Native
}

/** The driver of an ORM as one of handles that all clients have in common. */
export function overHandles<Native extends object>(
  driver: InnodbDriver<Native>,
  handles: Handles<Native>,
): InnodbDriver<Handle> {
  const known = new WeakMap<object, Handle>()
  const natives = new WeakMap<Handle, Native>()
  const handleOf = (native: Native): Handle => {
    const handle = known.get(native) ?? handles.of(native)
    known.set(native, handle)
    natives.set(handle, native)
    return handle
  }
  const over = (
    transaction: InnodbTransaction<Native>,
    native: Handle,
  ): InnodbTransaction<Handle> => {
    const nested: InnodbTransaction<Handle>['nested'] = (body) =>
      transaction.nested((inner) => body(over(inner as InnodbTransaction<Native>, native)))
    return new Proxy(transaction as unknown as InnodbTransaction<Handle>, {
      get(target, property) {
        if (property === 'native') return native
        if (property === 'server') return outer
        if (property === 'nested') return nested
        const value: unknown = Reflect.get(target, property)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }
  const outer: InnodbDriver<Handle> = {
    name: driver.name,
    engine: driver.engine,
    capabilities: driver.capabilities,
    alone: driver.alone,
    join: (handle) => over(driver.join(natives.get(handle) ?? handles.native(handle)), handle),
    transaction: (body, settings) =>
      driver.transaction(async (transaction, opened) => {
        const joined = transaction as InnodbTransaction<Native>
        return await body(over(joined, handleOf(joined.native)), opened)
      }, settings),
  }
  return outer
}
