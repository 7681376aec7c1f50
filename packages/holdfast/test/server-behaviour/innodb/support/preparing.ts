import { createConnection, type PreparedStatementInfo } from 'mysql2/promise'

/** A statement that the server has prepared, by the number that it has given it. */
export interface Prepared {
  readonly id: number
  readonly statement: PreparedStatementInfo
}

/** A connection on which statements are prepared one by one. */
export interface PreparingConnection extends AsyncDisposable {
  prepare(text: string): Promise<Prepared>
  run(prepared: Prepared | undefined): Promise<unknown>
  /** COM_RESET_CONNECTION, which some pools send when a connection comes back. */
  forget(): Promise<void>
}

export async function openPreparing(uri: string): Promise<PreparingConnection> {
  const connection = await createConnection({ uri })
  return {
    async prepare(text) {
      const statement = await connection.prepare(text)
      const { id } = (statement as unknown as { readonly statement: { readonly id: number } })
        .statement
      return { id, statement }
    },
    run: async (prepared) => await prepared?.statement.execute([]),
    forget: async () => await connection.reset(),
    [Symbol.asyncDispose]: async () => await connection.end(),
  }
}
