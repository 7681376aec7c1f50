/** Reads the fields of a message body from front to back. */
export interface BodyReader {
  int8(): number
  int16(): number
  int32(): number
  /** A text that ends with a zero byte. */
  text(): string
  bytes(length: number): Buffer
  atEnd(): boolean
}

export function createBodyReader(body: Buffer): BodyReader {
  let at = 0

  function bytes(length: number): Buffer {
    if (at + length > body.length) throw new Error('a message ends before its fields do')
    at += length
    return body.subarray(at - length, at)
  }

  return {
    int8: () => bytes(1).readUInt8(0),
    int16: () => bytes(2).readInt16BE(0),
    int32: () => bytes(4).readInt32BE(0),
    bytes,
    atEnd: () => at >= body.length,
    text() {
      const end = body.indexOf(0, at)
      if (end === -1) throw new Error('a message ends inside a text')
      const text = body.toString('utf8', at, end)
      at = end + 1
      return text
    },
  }
}
