/** The transaction type of a Drizzle database, with its schema. */
export type DrizzleTransactionOf<Db> = Db extends {
  transaction(body: (tx: infer Tx) => Promise<unknown>, ...rest: never): unknown
}
  ? Tx
  : never
