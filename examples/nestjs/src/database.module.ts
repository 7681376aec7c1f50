import { Module } from '@nestjs/common'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import { Pool } from 'pg'

const tables = `
  CREATE TABLE IF NOT EXISTS show (id text PRIMARY KEY, seats int NOT NULL);
  CREATE TABLE IF NOT EXISTS ticket (id text, show text REFERENCES show);
  CREATE TABLE IF NOT EXISTS payment (event text, amount int);
  CREATE TABLE IF NOT EXISTS report (at timestamptz, tickets int);
  INSERT INTO show VALUES ('hamlet', 1000), ('faust', 1) ON CONFLICT DO NOTHING`

/** The pool, and the tables. Real applications install both before they start; see docs/schema.md. */
@Module({
  providers: [
    {
      provide: Pool,
      useFactory: async () => {
        const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
        await migrate(fromPg(pool))
        await pool.query(tables)
        return pool
      },
    },
  ],
  exports: [Pool],
})
export class DatabaseModule {}
