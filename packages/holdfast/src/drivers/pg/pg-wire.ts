import type { PackedValues, Statement, Value } from '../../core/driver.ts'

/**
 * The few messages of PostgreSQL's extended protocol that we send ourselves, as one buffer: one write
 * instead of seven, and no description of columns we already know.
 */

/** One statement of a pipeline. */
export interface PipelinedStatement {
  /** Empty for the unnamed statement, which lives until the next Parse. */
  readonly name: string
  readonly text: string
  readonly values: readonly Value[]
  /** In the place of `values`. */
  readonly packed?: PackedValues | undefined
  /** The connection already has it under this name. */
  readonly known: boolean
  /** The server is to say which columns come back. */
  readonly described?: boolean
  /** The server is to forget it again. */
  readonly once?: boolean
}

/** Each statement parsed if need be, bound and executed, then one Sync for all. */
export function pipelineMessage(...statements: readonly PipelinedStatement[]): Buffer {
  const writer = new MessageWriter()
  for (const { name, text, values, packed, known, described, once } of statements) {
    if (!known) {
      // Closing what does not exist is no error; parsing what exists is one.
      if (name !== '') writer.begin('C').text('S').cString(name).end()
      writer.begin('P').cString(name).cString(text).int16(0).end()
    }
    writer.begin('B').cString('').cString(name)
    if (packed === undefined) {
      // No format codes: parameters and results are text.
      writer.int16(0).int16(values.length)
      for (const value of values) writer.value(value)
    } else {
      // One code for all parameters: binary. Results are text.
      writer.int16(1).int16(1).int16(packed.count).packed(packed)
    }
    writer.int16(0).end()
    if (described === true) writer.begin('D').text('P').cString('').end()
    writer.begin('E').cString('').int32(0).end()
    if (once === true) writer.begin('C').text('S').cString(name).end()
  }
  return writer.begin('S').end().bytes()
}

const nothing: readonly Value[] = []

/** What is bound: the values as text are not even made where they are packed. */
export function bound(statement: Statement): Pick<PipelinedStatement, 'values' | 'packed'> {
  const { packed } = statement
  return packed === undefined ? { values: statement.values } : { values: nothing, packed }
}

/** A statement without values, by the simple protocol. */
export function simpleMessage(text: string): Buffer {
  return new MessageWriter().begin('Q').cString(text).end().bytes()
}

class MessageWriter {
  #buffer = Buffer.allocUnsafe(512)
  #at = 0
  #start = 0

  begin(type: string): this {
    this.text(type)
    this.#start = this.#at
    return this.int32(0)
  }

  /** Fills in the length, which counts itself and not the type. */
  end(): this {
    this.#buffer.writeInt32BE(this.#at - this.#start, this.#start)
    return this
  }

  text(text: string): this {
    this.#room(text.length * 3)
    this.#at += this.#buffer.write(text, this.#at)
    return this
  }

  cString(text: string): this {
    this.text(text)
    this.#room(1)
    this.#at = this.#buffer.writeUInt8(0, this.#at)
    return this
  }

  int16(value: number): this {
    this.#room(2)
    this.#at = this.#buffer.writeInt16BE(value, this.#at)
    return this
  }

  int32(value: number): this {
    this.#room(4)
    this.#at = this.#buffer.writeInt32BE(value, this.#at)
    return this
  }

  value(value: Value): this {
    if (value === null) return this.int32(-1)
    const at = this.#at
    this.int32(0).text(String(value))
    this.#buffer.writeInt32BE(this.#at - at - 4, at)
    return this
  }

  packed(values: PackedValues): this {
    this.#room(values.bytes)
    this.#at = values.write(this.#buffer, this.#at)
    return this
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe((this.#at + bytes) * 2)
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}
