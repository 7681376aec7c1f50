export { type Barrier, barrier } from './barrier.ts'
export { type BetterSqlite3, betterSqlite3, type BetterSqlite3Class } from './better-sqlite3.ts'
export {
  closeForCopies,
  createDatabase,
  databaseOf,
  urlWithDatabase,
  withClient,
} from './create-database.ts'
export { type Deferred, deferred } from './deferred.ts'
export {
  innodbBinaries,
  type InnodbServerName,
  innodbServerNames,
  innodbServersOfRun,
} from './servers/innodb-binaries.ts'
export { replaceThere } from './replace-there.ts'
export { resetSocket } from './reset-socket.ts'
export { ends, inTurn, rounds, sample } from './sample.ts'
export { sendSignal } from './send-signal.ts'
export {
  defaultVersion,
  pgbouncerProgram,
  type PostgresVersion,
  postgresVersions,
  serversFolder,
} from './servers/server-binaries.ts'
export { type Etcd, startEtcd } from './servers/start-etcd.ts'
export { type InnodbServer, startInnodb } from './servers/start-innodb.ts'
export { type PatroniMember, startPatroni } from './servers/start-patroni.ts'
export {
  type PgBouncer,
  type StartPgBouncerOptions,
  startPgBouncer,
} from './servers/start-pgbouncer.ts'
export {
  type PostgresServer,
  type StartPostgresOptions,
  startPostgres,
} from './servers/start-postgres.ts'
export { type WaitUntilOptions, waitUntil } from './wait-until.ts'
export { type Observer, waitUntilBlocked } from './wait-until-blocked.ts'
