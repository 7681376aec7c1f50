/** What Neon has before its servers: bytes of a WebSocket are passed on to PostgreSQL. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { WebSocketServer } from 'ws'

/** Listens on a port of its own. */
export async function webSocketProxy(url) {
  const { hostname, port } = new URL(url)
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  server.on('connection', (socket) => {
    const upstream = connect(Number(port), hostname)
    socket.on('message', (bytes) => upstream.write(bytes))
    upstream.on('data', (bytes) => socket.send(bytes))
    socket.on('close', () => upstream.destroy())
    upstream.on('close', () => socket.close())
    upstream.on('error', () => socket.close())
  })
  return server
}
