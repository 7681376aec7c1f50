import { createBodyReader } from './body-reader.ts'
import type { Frame } from './frame-reader.ts'
import { int32, zeroTerminated } from './write-frame.ts'

/** What a client may say first. */
export type Opening =
  /** Asks for TLS or GSS encryption; it goes on without when the answer is `N`. */
  | { readonly kind: 'encryption' }
  /** Asks to cancel what another connection is doing; nothing follows. */
  | { readonly kind: 'cancel'; readonly pid: number }
  | {
      readonly kind: 'start'
      readonly version: number
      readonly parameters: ReadonlyMap<string, string>
    }

const cancelRequest = 80_877_102
const sslRequest = 80_877_103
const gssRequest = 80_877_104

/** Reads a message of `createStartupReader`. */
export function readOpening(frame: Frame): Opening {
  const body = createBodyReader(frame.body)
  const code = body.int32()
  if (code === sslRequest || code === gssRequest) return { kind: 'encryption' }
  if (code === cancelRequest) return { kind: 'cancel', pid: body.int32() }
  const parameters = new Map<string, string>()
  for (let name = body.text(); name !== ''; name = body.text()) parameters.set(name, body.text())
  return { kind: 'start', version: code, parameters }
}

/** The first message of a client, with these parameters. */
export function writeStart(version: number, parameters: ReadonlyMap<string, string>): Buffer {
  const fields = [...parameters].flatMap(([name, value]) => [
    zeroTerminated(name),
    zeroTerminated(value),
  ])
  const body = Buffer.concat([int32(version), ...fields, Buffer.from([0])])
  return Buffer.concat([int32(body.length + 4), body])
}

/** Asks the server for TLS. */
export const sslRequestMessage: Buffer = Buffer.concat([int32(8), int32(sslRequest)])
