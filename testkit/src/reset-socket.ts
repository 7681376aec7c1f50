import type { Socket } from 'node:net'

/**
 * Tears the connection, so that the other side is told at once. One that is being ended cannot be reset as well:
 * Node would neither close it nor let the process end.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
