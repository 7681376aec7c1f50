/**
 * Something of which there is one in a process, however many copies of this library are in it. Node loads one copy, but
 * a bundler may put one into each bundle it makes, beside one in node_modules. The name ends with a number: whoever
 * changes what is kept under it takes the next one, so that two versions never read each other's.
 */
export function processWide<T extends object>(name: `${string}.${number}`, make: () => T): T {
  const everywhere = globalThis as unknown as Record<symbol, T | undefined>
  return (everywhere[Symbol.for(`holdfast.${name}`)] ??= make())
}
