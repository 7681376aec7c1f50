/** Under these names clients keep what they have made an error from. */
const buried = ['cause', 'driverError', 'meta', 'driverAdapterError', 'original']

/** An error and what clients have buried in it, the outermost first. */
function layersOf(error: unknown, depth: number = 0): object[] {
  if (typeof error !== 'object' || error === null || depth > 5) return []
  return [error, ...buried.flatMap((key) => layersOf(Reflect.get(error, key), depth + 1))]
}

/** What an error and its layers have under these names. */
function saidUnder(error: unknown, names: readonly string[]): unknown[] {
  return layersOf(error).flatMap((layer) => names.map((name): unknown => Reflect.get(layer, name)))
}

/** The server's code, however deep it is. */
export function sqlstateOf(error: unknown): string | undefined {
  return saidUnder(error, ['code', 'originalCode', 'sqlState']).find(isSqlstate)
}

/** Codes of Prisma's own look alike. */
function isSqlstate(code: unknown): code is string {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^P\d{4}$/.test(code)
}

/** The words of all layers: clients put their own before the server's. */
export function messagesOf(error: unknown): string {
  return saidUnder(error, ['message', 'originalMessage'])
    .filter((text) => typeof text === 'string')
    .join(' ')
}
