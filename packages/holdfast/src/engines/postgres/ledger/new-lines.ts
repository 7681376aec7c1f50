import type { Scope } from '../../../core/bucket.ts'
import type { PackedValues, Statement, Value } from '../../../core/driver.ts'
import type { Words } from '../sql/uuid-words.ts'
import { ArrayLiteral } from '../sql/array-literal.ts'
import {
  arrayBytes,
  elements,
  headBytes,
  textBytes,
  writeHead,
  writeInt2,
  writeInt8,
  writeNull,
  writeTexts,
  writeUuid,
} from '../sql/binary-array.ts'

/** A line as `apply_new` takes it. */
export interface NewLine {
  readonly account: { readonly bucket: number; readonly base: string; readonly words: Words }
  /** A UUID in lower case. */
  readonly operationId: string
  readonly idWords: Words
  readonly kind: number
  /** Safe integers. */
  readonly amount: number
  readonly allowance: number
  /** Whose ids are meant, if it is not the account. */
  readonly owner: { readonly base: string; readonly words: Words } | undefined
  /** The operation's id as it was given, if it is no such UUID. */
  readonly givenId: string | undefined
}

/** How many parameters `apply_new` takes. */
export const columnsOfNew = 8

/**
 * A call of `apply_new`. A class, and not a literal with getters: V8 makes a hidden class of its own for each of those,
 * and what it refers to then stays alive for long.
 */
export class NewLinesStatement implements Statement {
  readonly text: string
  readonly packed: PackedValues
  readonly columns: readonly string[]
  readonly name: string
  readonly #lines: readonly NewLine[]

  constructor(
    { text, columns, name }: { text: string; columns: readonly string[]; name: string },
    lines: readonly NewLine[],
  ) {
    this.text = text
    this.columns = columns
    this.name = name
    this.#lines = lines
    this.packed = new PackedLines(lines)
  }

  /** For drivers whose client takes text only. */
  get values(): readonly Value[] {
    const alike = new Alike(this.#lines)
    const column = (isAlike: boolean, valueOf: (line: NewLine) => string | number): string =>
      `{${(isAlike ? this.#lines.slice(0, 1) : this.#lines).map(valueOf).join(',')}}`
    return [
      column(alike.account, ({ account }) => account.bucket),
      column(alike.account, ({ account }) => account.base),
      column(false, ({ operationId }) => operationId),
      column(alike.kind, ({ kind }) => kind),
      column(alike.amount, ({ amount }) => amount),
      column(alike.allowance, ({ allowance }) => allowance),
      alike.owner ? null : column(false, ({ owner, account }) => (owner ?? account).base),
      alike.givenId ? null : textsOf(this.#lines),
    ]
  }

  /** Only a sharded driver asks. */
  get scopes(): readonly Scope[] {
    return [...new Set(this.#lines.map(({ account }) => account.bucket))]
  }
}

/** No nulls: see `columnsCall`. Where there is no other text, it is the id. */
function textsOf(lines: readonly NewLine[]): string | null {
  const texts = new ArrayLiteral()
  for (const { givenId, operationId } of lines) texts.text(givenId ?? operationId)
  return texts.literal()
}

/** Which columns have the same value in all lines: these are sent once. */
class Alike {
  account = true
  kind = true
  amount = true
  allowance = true
  /** No line has one. */
  owner = true
  givenId = true

  constructor(lines: readonly NewLine[]) {
    const first = lines[0] as NewLine
    for (let at = 0; at < lines.length; at += 1) {
      const line = lines[at] as NewLine
      if (line.account.base !== first.account.base) this.account = false
      if (line.kind !== first.kind) this.kind = false
      if (line.amount !== first.amount) this.amount = false
      if (line.allowance !== first.allowance) this.allowance = false
      if (line.owner !== undefined) this.owner = false
      if (line.givenId !== undefined) this.givenId = false
    }
  }
}

class PackedLines implements PackedValues {
  readonly count = columnsOfNew
  readonly bytes: number
  readonly #lines: readonly NewLine[]
  readonly #alike: Alike

  constructor(lines: readonly NewLine[]) {
    const { length } = lines
    const { int2, int8, uuid } = elements
    this.#lines = lines
    this.#alike = new Alike(lines)
    let texts = 0
    if (!this.#alike.givenId) for (const { givenId } of lines) texts += textBytes(givenId)
    this.bytes =
      2 * arrayBytes(int2, length) +
      3 * arrayBytes(uuid, length) +
      2 * arrayBytes(int8, length) +
      headBytes +
      texts
  }

  write(to: Buffer, at: number): number {
    const lines = this.#lines
    const { length } = lines
    const accounts = this.#alike.account ? 1 : length
    const kinds = this.#alike.kind ? 1 : length
    const amounts = this.#alike.amount ? 1 : length
    const allowances = this.#alike.allowance ? 1 : length
    let end = writeHead(to, at, elements.int2, accounts)
    for (let i = 0; i < accounts; i += 1) {
      end = writeInt2(to, end, (lines[i] as NewLine).account.bucket)
    }
    end = writeHead(to, end, elements.uuid, accounts)
    for (let i = 0; i < accounts; i += 1) {
      end = writeUuid(to, end, (lines[i] as NewLine).account.words)
    }
    end = writeHead(to, end, elements.uuid, length)
    for (let i = 0; i < length; i += 1) end = writeUuid(to, end, (lines[i] as NewLine).idWords)
    end = writeHead(to, end, elements.int2, kinds)
    for (let i = 0; i < kinds; i += 1) end = writeInt2(to, end, (lines[i] as NewLine).kind)
    end = writeHead(to, end, elements.int8, amounts)
    for (let i = 0; i < amounts; i += 1) end = writeInt8(to, end, (lines[i] as NewLine).amount)
    end = writeHead(to, end, elements.int8, allowances)
    for (let i = 0; i < allowances; i += 1) {
      end = writeInt8(to, end, (lines[i] as NewLine).allowance)
    }
    end = this.#alike.owner ? writeNull(to, end) : writeOwners(to, end, lines)
    return this.#alike.givenId ? writeNull(to, end) : writeGivenIds(to, end, lines)
  }
}

function writeOwners(to: Buffer, at: number, lines: readonly NewLine[]): number {
  let end = writeHead(to, at, elements.uuid, lines.length)
  for (const { owner, account } of lines) end = writeUuid(to, end, (owner ?? account).words)
  return end
}

function writeGivenIds(to: Buffer, at: number, lines: readonly NewLine[]): number {
  const texts = lines.map(({ givenId }) => givenId)
  return writeTexts(to, at, texts)
}
