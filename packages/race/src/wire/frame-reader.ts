/** One message of the PostgreSQL protocol. */
export interface Frame {
  /** The type byte as a character; empty for the first message of a connection, which has none. */
  readonly type: string
  /** The whole message as it was sent, type byte and length included. */
  readonly bytes: Buffer
  /** What follows the length. */
  readonly body: Buffer
}

/** Cuts a stream of bytes into frames, wherever the chunks happen to end. */
export interface FrameReader {
  /** The frames that are complete with this chunk. */
  push(chunk: Buffer): Frame[]
}

// A length above this is not PostgreSQL's protocol; without a limit we would wait for ever.
const limit = 1 << 30

/** Reads messages with a type byte: everything but the first message of a client. */
export function createFrameReader(): FrameReader {
  return createReader(1)
}

/** Reads messages without a type byte: start-up, SSL and cancel requests. */
export function createStartupReader(): FrameReader {
  return createReader(0)
}

function createReader(typeLength: 0 | 1): FrameReader {
  let parts: Buffer[] = []
  let size = 0
  let needed = typeLength + 4

  function push(chunk: Buffer): Frame[] {
    // Chunks are only put together once there is enough for the frame that is being read.
    parts.push(chunk)
    size += chunk.length
    if (size < needed) return []
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts, size)
    const frames: Frame[] = []
    for (;;) {
      needed = typeLength + 4
      if (rest.length < needed) break
      const length = rest.readUInt32BE(typeLength)
      if (length < 4 || length > limit)
        throw new Error(`a frame of ${length} bytes is not PostgreSQL's`)
      needed = typeLength + length
      if (rest.length < needed) break
      const bytes = rest.subarray(0, needed)
      const type = typeLength === 1 ? String.fromCharCode(bytes.readUInt8(0)) : ''
      frames.push({ type, bytes, body: bytes.subarray(typeLength + 4) })
      rest = rest.subarray(needed)
    }
    parts = rest.length > 0 ? [rest] : []
    size = rest.length
    return frames
  }

  return { push }
}
