/** A message of one type with this body. */
export function writeFrame(type: string, ...body: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 0, 'latin1')
  head.writeInt32BE(
    body.reduce((size, part) => size + part.length, 4),
    1,
  )
  return Buffer.concat([head, ...body])
}

/** A text that ends with a zero byte. */
export function zeroTerminated(text: string): Buffer {
  return Buffer.from(`${text}\0`, 'utf8')
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
