import { connect, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { sslRequestMessage } from '../wire/startup.ts'

/** Where the server listens, and how it wants to be spoken to. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly ssl: boolean | ConnectionOptions
}

/** A connection to the server; what is written before it is open waits. */
export interface ServerSocket {
  write(bytes: Buffer): void
  end(): void
  /** Does not keep the process alive any more. */
  unref(): void
}

export interface ServerListener {
  data(bytes: Buffer): void
  /** Called once, with the error if there was one. The server has ended its session. */
  closed(error: Error | undefined): void
}

/** Takes over a socket whose session is open already. */
export function adoptServerSocket(socket: Duplex, listener: ServerListener): ServerSocket {
  let failure: Error | undefined
  socket.on('data', listener.data)
  socket.on('error', (error) => {
    failure ??= error
  })
  socket.on('close', () => listener.closed(failure))
  return {
    write: (bytes) => void socket.write(bytes),
    end: () => void socket.end(),
    unref: () => unref(socket),
  }
}

function unref(socket: Duplex): void {
  if (socket instanceof Socket) socket.unref()
}

export function openServerSocket(address: ServerAddress, listener: ServerListener): ServerSocket {
  let socket: Socket = connect(
    address.host.startsWith('/')
      ? { path: `${address.host}/.s.PGSQL.${address.port}` }
      : { host: address.host, port: address.port, noDelay: true },
  )
  let waiting: Buffer[] | undefined
  let failure: Error | undefined
  let over = false

  const onError = (error: Error): void => {
    failure ??= error
  }
  const onClose = (): void => {
    if (over) return
    over = true
    listener.closed(failure)
  }
  const attach = (): void => {
    socket.on('data', listener.data)
    socket.on('error', onError)
    socket.on('close', onClose)
  }

  if (address.ssl === false) {
    attach()
  } else {
    waiting = []
    socket.on('error', onError)
    socket.on('close', onClose)
    socket.write(sslRequestMessage)
    socket.once('data', secure)
  }

  function secure(reply: Buffer): void {
    if (reply.toString('latin1') !== 'S') {
      socket.destroy(new Error('the server does not speak TLS'))
      return
    }
    const options = address.ssl === true ? {} : address.ssl
    socket = connectTls({ host: address.host, ...options, socket })
    attach()
    socket.once('secureConnect', () => {
      for (const bytes of waiting ?? []) socket.write(bytes)
      waiting = undefined
    })
  }

  return {
    write(bytes) {
      if (waiting) waiting.push(bytes)
      else if (!socket.writableEnded) socket.write(bytes)
    },
    end: () => void socket.end(),
    unref: () => unref(socket),
  }
}
