/** The columns of docs/what-runs-where.md. */
export const engines = {
  postgres: 'PostgreSQL',
  innodb: 'MariaDB, MySQL',
  sqlite: 'SQLite',
} as const
