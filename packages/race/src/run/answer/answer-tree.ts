/**
 * What a flow returned, as a tree of values that JSON has. What JSON would make alike keeps its kind in a name of ours:
 * `{ '‹Date›': … }`. What nobody can look into is listed, since it cannot be compared.
 */
import { inspect, types } from 'node:util'
import { inShort, listInShort } from '../../core/long-text.ts'
import { isTag, tagged } from '../../core/tag.ts'
import { bodyOf, hasBody } from './answer-body.ts'

export interface SeenAnswer {
  readonly tree: unknown
  /** What could not be looked into, for people: `a Promise (later)`. */
  readonly unseen: readonly string[]
}

const mostDepth = 24
const mostNodes = 50_000

/** Bodies are read: that is work of the flow, as it is of the server that sends them. */
export async function lookInto(answer: unknown): Promise<SeenAnswer> {
  const look = new Look()
  const tree = look.at(answer, [])
  for (const fill of look.bodies) await fill()
  return { tree, unseen: [...look.unseen] }
}

/** An error with what it was made from. Of its own fields only what is no object: clients keep their insides there. */
export function errorTree(error: Error, depth = 0): Record<string, unknown> {
  const own = Object.entries(error).filter(
    ([name, value]) =>
      name !== 'stack' && (value === null || !/object|function/.test(typeof value)),
  )
  const { cause } = error
  const all =
    error instanceof AggregateError && depth < 8
      ? error.errors.map((one: unknown) =>
          one instanceof Error ? errorTree(one, depth + 1) : new Look().at(one, []),
        )
      : undefined
  const from =
    cause instanceof Error
      ? depth < 8 && errorTree(cause, depth + 1)
      : cause !== undefined && new Look().at(cause, [])
  return {
    ...Object.fromEntries(own.map(([name, value]) => [name, new Look().at(value, [])])),
    name: error.name,
    message: error.message,
    ...(all && { errors: all }),
    ...(from !== false && { cause: from }),
  }
}

/** For people: the values without our names, as JSON writes them. */
export function treeText(tree: unknown): string {
  if (typeof tree !== 'object' || tree === null)
    return Object.is(tree, -0) ? '-0' : JSON.stringify(tree)
  if (Array.isArray(tree)) return `[${tree.map(treeText).join()}]`
  const entries = Object.entries(tree)
  const [only] = entries
  if (entries.length === 1 && only && isTag(only[0]))
    return only[0] === '‹undefined›' ? 'undefined' : treeText(only[1])
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${treeText(value)}`).join()}}`
}

/** A result of node-postgres: the rest of it is about types, and the same for the same statement. */
function isResult(value: object): value is { rows: unknown[]; rowCount: unknown } {
  return Array.isArray(Reflect.get(value, 'rows')) && ('_types' in value || '_parsers' in value)
}

const ofResults = new Set([
  'rows',
  'rowCount',
  'command',
  'oid',
  'fields',
  'text',
  'RowCtor',
  'rowAsArray',
  '_parsers',
  '_types',
  '_prebuiltEmptyResultObject',
])

class Look {
  readonly unseen = new Set<string>()
  readonly bodies: (() => Promise<void>)[] = []
  /** Objects above the one that is looked at. */
  readonly #above: object[] = []
  #nodes = 0

  at(value: unknown, path: readonly string[]): unknown {
    this.#nodes += 1
    if (this.#nodes > mostNodes) return this.#hidden('more than can be looked at', path.slice(0, 3))
    if (typeof value === 'string') return inShort(value)
    if (typeof value === 'boolean' || value === null) return value
    if (typeof value === 'number')
      return Number.isFinite(value) ? value : tagged('number', String(value))
    if (typeof value === 'bigint') return tagged('bigint', String(value))
    if (value === undefined) return tagged('undefined', null)
    if (typeof value === 'symbol') return tagged('symbol', String(value))
    if (typeof value === 'function') return this.#hidden('a function', path)
    const depth = this.#above.indexOf(value as object)
    if (depth !== -1) return tagged('circle', `the object ${this.#above.length - depth} above`)
    if (this.#above.length >= mostDepth)
      return this.#hidden('more than can be looked at', path.slice(0, 3))
    this.#above.push(value as object)
    try {
      return this.#object(value as object, path)
    } catch (error) {
      // A getter, or a proxy, that throws says nothing else.
      return tagged('threw', error instanceof Error ? error.message : String(error))
    } finally {
      this.#above.pop()
    }
  }

  #hidden(what: string, path: readonly string[]): unknown {
    this.unseen.add(path.length === 0 ? what : `${what} (${path.join('.')})`)
    return tagged('unseen', what)
  }

  #object(value: object, path: readonly string[]): unknown {
    const name = classOf(value)
    const within = (part: unknown): unknown => this.at(part, path)
    if (hasBody(value)) return this.#body(value, path)
    if (types.isDate(value)) {
      const at = value.getTime()
      const said = Number.isNaN(at) ? 'Invalid Date' : new Date(at).toISOString()
      return this.#beside('Date', said, value, path)
    }
    if (value instanceof Error) return tagged(name, this.#error(value, path))
    if (types.isMap(value)) {
      const pairs = [...Map.prototype.entries.call(value)] as [unknown, unknown][]
      return this.#beside('Map', this.#items(pairs, path), value, path)
    }
    if (types.isSet(value)) {
      const items = [...Set.prototype.values.call(value)] as unknown[]
      return this.#beside('Set', this.#items(items, path), value, path)
    }
    if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value))
      return tagged(name, inShort(bytesOf(value).toString('base64')))
    if (types.isBoxedPrimitive(value))
      return this.#beside(name, within(value.valueOf()), value, path)
    if (Array.isArray(value)) return this.#list(value, path)
    if (isResult(value)) {
      const more = keysOf(value).filter((key) => !ofResults.has(String(key)))
      return {
        rows: within(value.rows),
        rowCount: within(value.rowCount),
        ...this.#named(value, more, path),
      }
    }
    if (value instanceof URL || value instanceof URLSearchParams || types.isRegExp(value))
      return this.#beside(name, String(value), value, path)
    if (value instanceof Headers || value instanceof FormData)
      return this.#beside(name, this.#items([...value], path), value, path)
    const toJson: unknown = Reflect.get(value, 'toJSON')
    if (typeof toJson === 'function') return within(toJson.call(value))
    if (isUnderWay(value)) return this.#hidden(withArticle(name), path)
    return this.#fields(value, name, path)
  }

  /** Holes are no values. Of more than can be looked at the rest is not gone through. */
  #items(list: readonly unknown[], path: readonly string[]): unknown {
    const short = listInShort(list)
    if (short !== undefined) return short
    const items: unknown[] = []
    for (let place = 0; place < list.length && this.#nodes <= mostNodes; place++)
      items.push(place in list ? this.at(list[place], path) : tagged('hole', null))
    if (items.length < list.length) this.#hidden('more than can be looked at', path.slice(0, 3))
    return items
  }

  /** Clients say how many rows there were beside those that they returned. */
  #list(value: readonly unknown[], path: readonly string[]): unknown {
    const items = this.#items(value, path)
    const count: unknown = Object.getOwnPropertyDescriptor(value, 'count')?.value
    const more = fieldsBeside(value)
    if (more.length > 0) return tagged('list', { items, ...this.#named(value, more, path) })
    return typeof count === 'number' ? { rows: items, count } : items
  }

  /** What an object of a kind that everybody knows says, and what somebody has put on it beside that. */
  #beside(name: string, said: unknown, value: object, path: readonly string[]): unknown {
    const more = fieldsBeside(value)
    if (hidesFields(value)) this.#hidden(withArticle(classOf(value)), path)
    if (more.length === 0) return tagged(name, said)
    return tagged(name, { [`‹${name}›`]: said, ...this.#named(value, more, path) })
  }

  #named(
    value: object,
    keys: readonly (string | symbol)[],
    path: readonly string[],
  ): Record<string, unknown> {
    const found = new Map<string, unknown>()
    for (const key of keys) {
      const field: unknown = Reflect.get(value, key)
      if (field === undefined) continue
      let name = String(key)
      // Two symbols may have one name.
      while (found.has(name)) name += "'"
      found.set(name, this.at(field, [...path, name]))
    }
    // Of these a field may be called __proto__.
    return Object.fromEntries(found)
  }

  #error(error: Error, path: readonly string[]): Record<string, unknown> {
    const fields = Reflect.ownKeys(error).filter(
      (key) => Object.getOwnPropertyDescriptor(error, key)?.enumerable === true,
    )
    const { cause } = error
    return {
      ...this.#named(error, fields, path),
      name: error.name,
      message: error.message,
      ...(error instanceof AggregateError && { errors: this.#list(error.errors, path) }),
      ...(cause !== undefined && { cause: this.at(cause, [...path, 'cause']) }),
    }
  }

  #body(value: Request | Response | Blob, path: readonly string[]): unknown {
    const tree: Record<string, unknown> = {}
    this.bodies.push(async () => {
      const { head, body } = await bodyOf(value)
      Object.assign(tree, head)
      if (body === undefined)
        this.#hidden(`the body of ${withArticle(classOf(value))}, which was read already`, path)
      else if (body !== null) tree['body'] = inShort(body)
    })
    return tagged(classOf(value), tree)
  }

  #fields(value: object, name: string, path: readonly string[]): unknown {
    const found = this.#named(value, keysOf(value), path)
    const kind: unknown = Object.getPrototypeOf(value)
    if (kind === null || kind === Object.prototype) return found
    if (hidesFields(value)) this.#hidden(withArticle(name), path)
    return tagged(name, found)
  }
}

function bytesOf(value: ArrayBufferView | ArrayBufferLike): Buffer {
  return ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value)
}

/** What is to come: it cannot be looked at without being used up. */
function isUnderWay(value: object): boolean {
  return (
    types.isPromise(value) ||
    types.isGeneratorObject(value) ||
    value instanceof ReadableStream ||
    ['then', 'pipe', 'next', 'getReader'].some(
      (name) => typeof Reflect.get(value, name) === 'function',
    )
  )
}

/** Its own, whatever they are, and the getters of its classes. */
function keysOf(value: object): readonly (string | symbol)[] {
  const getters = classesOf(value).flatMap((kind) =>
    Object.entries(Object.getOwnPropertyDescriptors(kind)).flatMap(([name, { get }]) =>
      get === undefined || name.startsWith('__') ? [] : [name],
    ),
  )
  return [...new Set([...Reflect.ownKeys(value), ...getters])]
}

/** Fields of a list, a map or a date, and getters of the classes that a program has made of these. */
function fieldsBeside(value: object): readonly (string | symbol)[] {
  const own = Reflect.ownKeys(value).filter(
    (key) =>
      !(typeof key === 'string' && /^\d+$/.test(key)) &&
      Object.getOwnPropertyDescriptor(value, key)?.enumerable === true,
  )
  const getters = classesOf(value)
    .filter((kind) => !isBuiltIn(kind))
    .flatMap((kind) =>
      Object.entries(Object.getOwnPropertyDescriptors(kind)).flatMap(([name, { get }]) =>
        get === undefined || name.startsWith('__') ? [] : [name],
      ),
    )
  return [...new Set([...own, ...getters])]
}

const builtIn: ReadonlySet<unknown> = new Set(
  [Array, Map, Set, Date, Number, String, Boolean, BigInt, Symbol, RegExp].map(
    (kind) => kind.prototype as unknown,
  ),
)
const ofTheRuntime: ReadonlySet<unknown> = new Set(
  [URL, URLSearchParams, Headers, FormData].map((kind) => kind.prototype as unknown),
)

function isBuiltIn(kind: object): boolean {
  return builtIn.has(kind) || ofTheRuntime.has(kind)
}

/** Prototypes, up to the one that all objects have. */
function classesOf(value: object): readonly object[] {
  const found: object[] = []
  let kind: unknown = Object.getPrototypeOf(value)
  while (typeof kind === 'object' && kind !== null && Object.getPrototypeOf(kind) !== null) {
    found.push(kind)
    kind = Object.getPrototypeOf(kind)
  }
  return found
}

/** Whether it has private fields, as its text tells; what the engine brings shows no text. */
function hidesFields(value: object): boolean {
  return classesOf(value).some((kind) => {
    if (isBuiltIn(kind)) return false
    const made: unknown = Reflect.get(kind, 'constructor')
    if (typeof made !== 'function') return false
    const text = Function.prototype.toString.call(made)
    return /\.#[\w$]|\bWeakMap\b|lassPrivateField|\{\s*\[native code\]/.test(text)
  })
}

function classOf(value: object): string {
  const made: unknown = Reflect.get(value, 'constructor')
  if (typeof made === 'function' && made !== Object && made.name !== '') return made.name
  return /^\[object (.*)\]$/.exec(Object.prototype.toString.call(value))?.[1] ?? inspect(value)
}

function withArticle(name: string): string {
  return `${/^[AEIOU]/i.test(name) ? 'an' : 'a'} ${name}`
}
