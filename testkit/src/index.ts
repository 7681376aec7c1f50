export { type Barrier, barrier } from './barrier.ts'
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
} from './innodb-binaries.ts'
export { replaceThere } from './replace-there.ts'
export { resetSocket } from './reset-socket.ts'
export { sample } from './sample.ts'
export { sendSignal } from './send-signal.ts'
export {
  defaultVersion,
  type PostgresVersion,
  postgresVersions,
  serversFolder,
} from './server-binaries.ts'
export { type Etcd, startEtcd } from './start-etcd.ts'
export { type InnodbServer, startInnodb } from './start-innodb.ts'
export { type PatroniMember, startPatroni } from './start-patroni.ts'
export { type PgBouncer, type StartPgBouncerOptions, startPgBouncer } from './start-pgbouncer.ts'
export { type PostgresServer, type StartPostgresOptions, startPostgres } from './start-postgres.ts'
export { type WaitUntilOptions, waitUntil } from './wait-until.ts'
export { type Observer, waitUntilBlocked } from './wait-until-blocked.ts'
