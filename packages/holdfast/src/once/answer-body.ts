/**
 * The body of an answer is stored as JSON, which writes a Map, a stream or a file as `{}`: everybody would get that.
 *
 * @throws TypeError if JSON would not give it back, at any depth
 */
export function assertKept(body: unknown): void {
  if (body === undefined || typeof body === 'string') return
  // Bytes say of themselves that they are an object with a list of numbers. That is nobody's file.
  if (ArrayBuffer.isView(body) || JSON.stringify(body, keptAsIs) === undefined) throw lost()
}

/** For `JSON.stringify`, which has called `toJSON` before. */
function keptAsIs(_: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && isLost(value)) throw lost()
  return value
}

/** What JSON reads as more than its properties. An instance of a class without such a name has nothing but them. */
const told: ReadonlySet<string> = new Set(['Object', 'Array', 'String', 'Number', 'Boolean'])

function isLost(value: object): boolean {
  if (Array.isArray(value)) return false
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1)
  if (!told.has(kind)) return true
  const { then, pipe } = value as { readonly then?: unknown; readonly pipe?: unknown }
  // Streams and what else gives its contents bit by bit, or later.
  return (
    typeof then === 'function' ||
    typeof pipe === 'function' ||
    Symbol.asyncIterator in value ||
    (kind === 'Object' && Symbol.iterator in value)
  )
}

function lost(): TypeError {
  return new TypeError(
    'its body must be text or plain data, and no Map, stream, file or function: of these JSON keeps nothing',
  )
}
