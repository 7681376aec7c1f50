/**
 * What a process has once, however often this package is loaded into it: as ESM and as CommonJS, bundled twice, again
 * after a hot reload, or in a test that resets its modules. Two of it would refuse what is the same, listen to a
 * pool once more after every reload, or not know of each other.
 *
 * The name has a number: whoever changes the shape of what is kept raises it, because two versions of the package
 * may be loaded as well.
 */
export function processWide<T extends object>(name: `${string}/${number}`, make: () => T): T {
  const key = Symbol.for(`holdfast.${name}`)
  const kept = (globalThis as Record<symbol, unknown>)[key]
  if (kept !== undefined) return kept as T
  const made = make()
  Object.defineProperty(globalThis, key, { value: made })
  return made
}
