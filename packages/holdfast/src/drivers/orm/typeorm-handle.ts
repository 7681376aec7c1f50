/** The `EntityManager` a data source hands to its transactions. */
export type TypeOrmTransactionOf<Source> = Source extends {
  transaction(isolation: never, body: (manager: infer Manager) => Promise<unknown>): unknown
}
  ? Manager
  : never
