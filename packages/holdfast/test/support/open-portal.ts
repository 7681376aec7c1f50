import { deferred } from '@holdfast/testkit'
import type pg from 'pg'

interface Connection {
  parse(message: { readonly text: string }): void
  bind(message: object): void
  execute(message: { readonly rows: number }): void
  flush(): void
  close(message: { readonly type: 'P' }): void
  sync(): void
}

/** A cursor of `pg` that gives one row at a time, as `pg-cursor` and what is built on it does. */
export class OpenPortal {
  readonly #text: string
  readonly #answered = deferred<{ one: string }[]>()
  readonly #closed = deferred()
  #connection: Connection | undefined

  constructor(text = 'SELECT generate_series(1, 1000)') {
    this.#text = text
  }

  submit(given: pg.Connection): void {
    const connection = given as unknown as Connection
    this.#connection = connection
    connection.parse({ text: this.#text })
    connection.bind({})
    connection.execute({ rows: 1 })
    connection.flush()
  }

  /** The first rows; more is never asked for. */
  async read(): Promise<{ one: string }[]> {
    return await this.#answered.promise
  }

  async close(): Promise<void> {
    this.#connection?.close({ type: 'P' })
    this.#connection?.sync()
    await this.#closed.promise
  }

  handleDataRow(): void {}

  handlePortalSuspended(): void {
    this.#answered.resolve([{ one: '1' }])
  }

  handleReadyForQuery(): void {
    this.#closed.resolve()
  }

  handleError(error: Error): void {
    this.#answered.reject(error)
    this.#closed.resolve()
  }
}
