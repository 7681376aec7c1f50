import type { Pool } from 'pg'
import { type SchemaFiles, schemaFile } from '../../src/schema/schema-files.ts'

/** A sequence: it can be set at any time, and everybody sees that at once, whatever their snapshot. */
const clock = schemaFile(
  'internal/clock',
  `CREATE SEQUENCE IF NOT EXISTS :"schema".clock_hand;
CREATE OR REPLACE FUNCTION :"schema".hand_set_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$
  SELECT timestamptz 'epoch' + x.last_value * interval '1 microsecond' FROM :"schema".clock_hand x
$$;
`,
)

/** The same functions with a clock that stands still until it is set. */
export function handSetClock(files: SchemaFiles): SchemaFiles {
  const repeatables = files.repeatables.map((file) =>
    schemaFile(file.name, file.text.replaceAll('clock_timestamp()', ':"schema".hand_set_clock()')),
  )
  return { ...files, repeatables: [clock, ...repeatables] }
}

export async function setClock(pool: Pool, schema: string, us: number): Promise<void> {
  await pool.query(`SELECT setval('${schema}.clock_hand', $1::bigint)`, [us])
}
