import { Duplex } from 'node:stream'
import { currentPlace } from './call-places.ts'
import { type Gate, type GateSite, openGate } from './open-gate.ts'

/** The socket that node-postgres takes for its own: a gate in the same process. */
export class GateStream extends Duplex {
  readonly #site: GateSite
  #gate: Gate | undefined

  constructor(site: GateSite) {
    super({ allowHalfOpen: true })
    this.#site = site
  }

  /** Called by node-postgres; host and port are the gate's business. */
  connect(): this {
    this.#gate = openGate(this.#site, {
      toClient: (bytes) => void this.push(bytes),
      closed: (error) => {
        if (error) this.destroy(error)
        else if (!this.readableEnded) this.push(null)
        this.end()
      },
      placeOfClient: currentPlace,
    })
    process.nextTick(() => this.emit('connect'))
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {
    // The server's answers are pushed when they are let through.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#gate?.fromClient(chunk)
    done()
  }

  override _final(done: () => void): void {
    this.#gate?.clientGone()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#gate?.clientGone()
    done(error)
  }
}
