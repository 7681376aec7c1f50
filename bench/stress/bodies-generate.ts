import { type Random, randomFor } from '../harness/random.ts'
import { chance, pick } from '../harness/weighted.ts'
import {
  type Action,
  type Body,
  calls,
  clientNames,
  type Entry,
  type Late,
  type Place,
  type Stray,
} from './bodies-model.ts'

/** Every client configuration; body number n belongs to the place n modulo their number. */
export const places: readonly Place[] = [false, true].flatMap((pooled) =>
  clientNames.map((client) => ({ client, pooled })),
)

const entries: readonly (readonly [number, Entry])[] = [
  [40, 'guard'],
  [28, 'tx.run'],
  [8, 'rows.optimistic'],
  [7, 'withVersionCheck'],
  [8, 'once'],
  [5, 'transactionHandler'],
  [4, 'transactional tick'],
]

/** As they are written by hand, by ORMs and by migration tools. */
const controls: readonly (readonly [number, string])[] = [
  [5, 'BEGIN'],
  [2, 'begin'],
  [2, 'START TRANSACTION'],
  [1, 'BEGIN ISOLATION LEVEL SERIALIZABLE'],
  [1, '/* helper */ BEGIN'],
  [6, 'COMMIT'],
  [2, 'commit'],
  [1, 'COMMIT WORK'],
  [2, 'END'],
  [1, '-- done\nCOMMIT'],
  [1, '/* orm */ commit;'],
  [2, 'COMMIT AND CHAIN'],
  [6, 'ROLLBACK'],
  [2, 'rollback'],
  [2, 'ABORT'],
  [1, '/* undo */ ROLLBACK'],
  [2, 'ROLLBACK AND CHAIN'],
  [3, 'ROLLBACK; BEGIN'],
  [3, 'COMMIT; BEGIN'],
  [1, 'SELECT 1; COMMIT'],
  [1, 'BEGIN; COMMIT'],
  [1, 'COMMIT; START TRANSACTION; SELECT 1'],
  [1, '/* a /* nested */ remark */ COMMIT'],
  [1, '; ;COMMIT'],
  [1, 'COMMIT--now'],
  [1, 'ROLLBACK/**/WORK'],
  [1, "SELECT ';' AS a; ROLLBACK; BEGIN"],
  [1, "SELECT E'\\''; COMMIT; BEGIN --'"],
  [1, 'SELECT $a$;$a$; COMMIT'],
  [1, 'SELECT 1 AS ";"; COMMIT'],
  [1, "PREPARE TRANSACTION 'never'"],
  // A carriage return ends a remark as well.
  [1, '-- done\rCOMMIT'],
  [1, 'SELECT 1 AS a -- one\r; ROLLBACK; BEGIN'],
  // No function with a body in SQL: two names.
  [
    1,
    'CREATE TEMP VIEW named AS SELECT x.begin atomic FROM (SELECT 1 AS begin) AS x; ROLLBACK; BEGIN',
  ],
]

const disguises: readonly (readonly [number, string])[] = [
  [3, 'COMMIT'],
  [3, 'ROLLBACK'],
  [4, 'ROLLBACK; BEGIN'],
  [4, 'COMMIT; BEGIN'],
  [1, 'BEGIN'],
  [1, 'ROLLBACK AND CHAIN'],
  [1, 'COMMIT AND CHAIN'],
]

const lookAlikes: readonly (readonly [number, string])[] = [
  [1, "SELECT 'COMMIT' AS a"],
  [1, "SELECT '; ROLLBACK; BEGIN' AS a"],
  [1, 'SELECT 1 AS a /* ; COMMIT */'],
  [1, 'SELECT 1 AS a -- ; ROLLBACK'],
  [1, 'SELECT 1 AS "; COMMIT"'],
  [1, 'SELECT $$; COMMIT; $$ AS a'],
  [1, 'SELECT $b$ $$; COMMIT; $$ $b$ AS a'],
  [1, 'DO $$ BEGIN PERFORM 1; END $$'],
  [1, 'DO $$ BEGIN BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END; END $$'],
  [1, "COMMENT ON TABLE public.written IS 'begin'"],
  [1, "SELECT E'it\\'s; COMMIT' AS a"],
  [1, "SELECT 'it''s; COMMIT' AS a"],
  [1, 'SELECT CASE WHEN true THEN 1 END AS a'],
  [1, 'SELECT 1 AS begin'],
  [1, 'CREATE FUNCTION pg_temp.one() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END'],
  [
    1,
    'CREATE FUNCTION pg_temp.two() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END',
  ],
  [1, "SELECT 'a' -- ';\n AS a"],
]

const settings: readonly (readonly [number, string])[] = [
  [3, "SET LOCAL holdfast.held = ''"],
  [1, "SELECT set_config('holdfast.held', '', true)"],
  [1, "SET holdfast.held = ''"],
  [2, 'RESET holdfast.held'],
  [3, "SET LOCAL lock_timeout = '7s'"],
  [1, "SET lock_timeout = '7s'"],
  [2, "SET LOCAL application_name = 'mine'"],
  [1, "SET application_name = 'mine'"],
  [1, "SET LOCAL search_path = 'pg_catalog'"],
  [1, "SET search_path = 'pg_catalog'"],
  [3, 'RESET ALL'],
  [1, 'DISCARD PLANS'],
  [2, 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ'],
  [1, 'SET TRANSACTION READ ONLY'],
  [1, "SET LOCAL statement_timeout = '9s'"],
]

type Kind =
  | 'look-alikes'
  | 'plain'
  | 'savepoints'
  | 'control'
  | 'fails'
  | 'strays'
  | 'settings'
  | 'kill'
  | 'calls'

/**
 * Body number n of a seed; it depends on nothing else. Most bodies have one or two peculiarities among
 * ordinary statements: with many at once the first one decides, and the others are never seen.
 */
export function generateBody(seed: number, number: number): Body {
  const random = randomFor(seed, number)
  const place = places[number % places.length] as Place
  const entry = pick(random, entries)
  const flavours: Kind[] = ['plain']
  for (let more = random.integer(0, 2); more > 0; more -= 1) {
    flavours.push(
      pick<Kind>(random, [
        [4, 'savepoints'],
        [8, 'control'],
        [1, 'look-alikes'],
        [4, 'fails'],
        [4, 'strays'],
        [3, 'settings'],
        [2, 'kill'],
        [5, 'calls'],
      ]),
    )
  }
  const length = random.integer(1, 7)
  const actions = Array.from({ length }, () =>
    actionOf(random, flavours[random.integer(0, flavours.length - 1)] as Kind, 1),
  )
  // One loss is enough: each is waited for, and each attempt after it pauses.
  const kills = actions.filter((each) => each.do === 'kill')
  for (const more of kills.slice(1)) actions[actions.indexOf(more)] = { do: 'insert' }
  // Without a write there is nothing that can be told wrongly about.
  if (!actions.some((each) => each.do === 'insert')) {
    actions.splice(random.integer(0, actions.length), 0, { do: 'insert' })
  }
  // Who writes into our marker also relies on it.
  if (actions.some((each) => each.do === 'spoof') && chance(random, 60)) {
    actions.push({ do: 'call', what: 'assertHeld other' })
  }
  if (chance(random, 8)) actions.push({ do: 'throw' })
  const late = chance(random, 12)
    ? Array.from({ length: random.integer(1, 2) }, () => lateOf(random))
    : []
  return { ...place, entry, actions, late, twin: entry === 'guard' && chance(random, 8) }
}

function actionOf(random: Random, kind: Kind, depth: number): Action {
  const swallow = chance(random, 50) ? { swallow: true } : {}
  const by: readonly ('other' | 'beneath')[] = ['other', 'beneath']
  const other = chance(random, 30) ? { by: by[random.integer(0, 1)] ?? 'other' } : {}
  switch (kind) {
    case 'plain':
      if (chance(random, 12)) return { do: 'root', what: chance(random, 50) ? 'read' : 'insert' }
      return { do: chance(random, 70) ? 'insert' : 'read', ...other }
    case 'look-alikes':
      return { do: 'look-alike', text: pick(random, lookAlikes), ...other }
    case 'savepoints': {
      if (depth < 3 && chance(random, 35)) {
        const inner: readonly Kind[] = ['plain', 'plain', 'savepoints', 'fails', 'calls', 'control']
        const actions = Array.from({ length: random.integer(1, 3) }, () =>
          actionOf(random, inner[random.integer(0, inner.length - 1)] as Kind, depth + 1),
        )
        return { do: 'nested', actions, fails: chance(random, 40), ...swallow }
      }
      const name = chance(random, 70) ? 'a' : 'b'
      return pick<Action>(random, [
        [5, { do: 'savepoint', name }],
        [3, { do: 'rollback to', name, ...swallow }],
        [2, { do: 'release', name, ...swallow }],
      ])
    }
    case 'control':
      if (chance(random, 12)) {
        return { do: 'helper', ends: chance(random, 70) ? 'COMMIT' : 'ROLLBACK', ...swallow }
      }
      if (chance(random, 18)) return { do: 'disguised', text: pick(random, disguises), ...swallow }
      if (chance(random, 12)) {
        const all = ['begin', 'commit', 'rollback', 'release'] as const
        return { do: 'orm', what: all[random.integer(0, 3)] ?? 'commit', ...swallow }
      }
      return { do: 'control', text: pick(random, controls), ...swallow, ...other }
    case 'fails':
      return { do: 'fail', ...(chance(random, 75) ? { swallow: true } : {}) }
    case 'strays':
      return {
        do: 'unawaited',
        what: pick<Stray>(random, [
          [4, 'insert'],
          [2, 'slow insert'],
          [3, 'fail'],
          [1, 'rollback'],
          [1, 'commit'],
          [2, 'nested'],
        ]),
      }
    case 'settings':
      if (chance(random, 25)) return { do: 'spoof' }
      return { do: 'set', text: pick(random, settings), ...swallow }
    case 'kill':
      return {
        do: 'kill',
        wait: chance(random, 60),
        ...(chance(random, 70) ? { firstOnly: true } : {}),
      }
    case 'calls':
      return { do: 'call', what: calls[random.integer(0, calls.length - 1)] as never, ...swallow }
  }
}

function lateOf(random: Random): Late {
  return {
    when: pick<Late['when']>(random, [
      [2, 'microtask'],
      [2, 'immediate'],
      [3, 'inside'],
      [3, 'outside'],
    ]),
    what: pick<Late['what']>(random, [
      [5, 'insert'],
      [2, 'updateVersioned'],
      [1, 'acquire'],
      [1, 'nested insert'],
      [1, 'insert beneath'],
    ]),
  }
}
