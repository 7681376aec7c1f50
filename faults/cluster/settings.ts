/**
 * Of servers that are broken on purpose. Processes are killed and the machine is not: what was written is in
 * the operating system's cache, so `fsync` would only cost time.
 */
export const serverSettings: Readonly<Record<string, string>> = {
  fsync: 'off',
  max_connections: '120',
  shared_buffers: '48MB',
  min_wal_size: '32MB',
  checkpoint_timeout: '5min',
  // A crash in an autovacuum worker is as good as any other; it is just as busy as in production.
  autovacuum_naptime: '5s',
  log_min_messages: 'warning',
  log_min_error_statement: 'panic',
  log_line_prefix: '%m [%p] %d ',
}

/** With PgBouncer's defaults it would be 15 s after a failed login before it tries again. */
export const poolerSettings: Readonly<Record<string, string>> = {
  server_login_retry: '1',
  server_connect_timeout: '3',
  query_wait_timeout: '10',
  autodb_idle_timeout: '30',
  log_connections: '0',
  log_disconnections: '0',
  log_stats: '0',
}
