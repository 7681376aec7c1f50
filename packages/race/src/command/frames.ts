/** Values over a socket: each with its length before it. */
import type { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'

const head = 4

/** Calls back with every value that arrives; what is returned sends one. */
export function talk(socket: Socket, heard: (value: unknown) => void): (value: unknown) => void {
  let left = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    left = Buffer.concat([left, chunk])
    while (left.length >= head && left.length >= head + left.readUInt32BE()) {
      const end = head + left.readUInt32BE()
      const value: unknown = deserialize(left.subarray(head, end))
      left = left.subarray(end)
      heard(value)
    }
  })
  return (value) => {
    if (socket.destroyed) return
    const body = serialize(value)
    const length = Buffer.alloc(head)
    length.writeUInt32BE(body.length)
    socket.write(Buffer.concat([length, body]))
  }
}
