import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isoText } from './settings.ts'
import { eq, le } from '../sql/operators.ts'

/** Of more leases than this, some are not looked at. */
const mostLeases = 10_000
const mostSchedules = 500

/** Leases, those that are held first, then by name. One JSON text. */
export function readLeases(schema: string, limit: number): Statement {
  return {
    text: `
SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
  'scope', l.scope, 'name', l.name, 'token', l.token::pg_catalog.text, 'held', l.held, 'note', l.note,
  'acquiredAt', ${isoText('l.acquired_at')}, 'expiresAt', ${isoText('l.expires_at')}
) ORDER BY l.held DESC, l.name, l.scope), '[]')::pg_catalog.text AS answer
FROM (
  SELECT * FROM (SELECT * FROM ${quoteIdentifier(schema)}.leases LIMIT ${mostLeases}) AS part
  ORDER BY held DESC, name, scope LIMIT $1::pg_catalog.text::pg_catalog.int4
) AS l`,
    values: [String(limit)],
  }
}

/** Schedules by name, each with its latest ticks, newest first; and the time. One JSON text. */
export function readSchedules(schema: string, ticks: number): Statement {
  const own = quoteIdentifier(schema)
  return {
    text: `
SELECT pg_catalog.json_build_object('at', ${isoText('pg_catalog.clock_timestamp()')},
  'schedules', coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
    'name', s.name, 'rule', s.rule, 'lastTick', ${isoText('s.last_tick')}, 'paused', s.paused_at IS NOT NULL,
    'running', s.running, 'waiting', s.waiting, 'ticks', coalesce(t.ticks, '[]')
  ) ORDER BY s.name), '[]'))::pg_catalog.text AS answer
FROM (SELECT * FROM ${own}.schedules ORDER BY name LIMIT ${mostSchedules}) AS s
CROSS JOIN LATERAL (
  SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'at', ${isoText('x.at')}, 'state', x.state, 'manual', x.manual, 'attempt', x.attempt, 'holder', x.holder,
    'startedAt', ${isoText('x.started_at')}, 'finishedAt', ${isoText('x.finished_at')},
    'leaseUntil', ${isoText('x.lease_until')}, 'missed', x.missed, 'error', x.error,
    'leaseOver', x.state ${eq} 'running' AND x.lease_until ${le} pg_catalog.clock_timestamp()
  ) ORDER BY x.at DESC) AS ticks
  FROM (
    SELECT * FROM ${own}.ticks AS y WHERE y.bucket ${eq} s.bucket AND y.schedule ${eq} s.name
    ORDER BY y.at DESC LIMIT $1::pg_catalog.text::pg_catalog.int4
  ) AS x
) AS t`,
    values: [String(ticks)],
  }
}
