import type { Frame } from '../wire/frame-reader.ts'

/** Puts bytes together; a single part is not copied. */
export function concatBytes(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first ? first : Buffer.concat(parts)
}

export function concatFrames(frames: readonly Frame[], ...more: readonly Buffer[]): Buffer {
  return concatBytes([...frames.map((frame) => frame.bytes), ...more])
}
