/**
 * Runs written by hand that look like real ones: a play is a list of lines, and the transaction
 * states, commits and footprints follow from them.
 */
import type { Answer, Choice, Run, Step, Touch, TouchMode } from '../../src/core/model.ts'

export interface Line {
  readonly who: string
  readonly sql: string
  readonly parameters?: readonly (string | null)[]
  readonly half?: Step['half']
  readonly action?: Choice['action']
  /** `{ read: 'public.seats' }` */
  readonly touches?: Partial<Record<TouchMode, string>>
  /** Column names and rows, or an error, or a tag. */
  readonly rows?: readonly [readonly string[], ...(readonly (string | null)[])[]]
  readonly error?: { readonly sqlstate: string; readonly message: string }
  /** The command tag, where it is not one row. */
  readonly tag?: string
  readonly waitsFor?: string
  readonly resumedAfter?: number
}

export interface Play {
  readonly flows: readonly string[]
  readonly lines: readonly Line[]
  readonly isolation?: Step['footprint']['isolation']
}

interface State {
  open: boolean
  failed: boolean
  writes: string[]
  locks: string[]
}

/** The steps of a play. Objects that were inserted into, appended to or written are its writes. */
function stepsOf({ flows, lines, isolation = 'read committed' }: Play): Step[] {
  const states = new Map<string, State>()
  return lines.map((line, index): Step => {
    const flow = flows.indexOf(line.who)
    const state = states.get(line.who) ?? { open: false, failed: false, writes: [], locks: [] }
    states.set(line.who, state)
    const half = line.half ?? 'whole'
    const before = state.failed ? 'E' : state.open ? 'T' : 'I'
    const verb = /^\s*(\w+)/.exec(line.sql)?.[1]?.toUpperCase() ?? ''
    const touches = Object.entries(line.touches ?? {}).map(
      ([mode, object]): Touch => ({ mode: mode as TouchMode, object }),
    )
    for (const { mode, object } of touches) {
      if (mode === 'insert' || mode === 'append' || (mode === 'lock' && verb !== 'SELECT')) {
        state.writes.push(object)
      }
      if (mode !== 'read') state.locks.push(object)
    }
    if (verb === 'BEGIN') state.open = true
    if (line.error !== undefined && state.open) state.failed = true
    const rollsBack = verb === 'ROLLBACK' || (verb === 'COMMIT' && state.failed)
    const ends =
      half === 'commit' || verb === 'COMMIT' || rollsBack || (half === 'whole' && !state.open)
    const footprint = {
      opaque: false,
      touches: half === 'commit' ? [] : touches,
      isolation,
      ...(ends
        ? {
            ends: {
              how: rollsBack ? ('rollback' as const) : ('commit' as const),
              writes: rollsBack ? [] : [...new Set(state.writes)],
              locks: [...new Set(state.locks)],
            },
          }
        : {}),
    }
    if (ends) Object.assign(state, { open: false, failed: false, writes: [], locks: [] })
    return {
      index,
      flow,
      lane: 0,
      choice: { flow, lane: 0, action: line.action ?? 'go' },
      half,
      statements: line.sql === '' ? [] : [line.sql],
      parameters: line.parameters ?? [],
      before,
      after: state.failed ? 'E' : state.open ? 'T' : 'I',
      waitedFor: line.waitsFor === undefined ? [] : [flows.indexOf(line.waitsFor)],
      ...(line.resumedAfter === undefined ? {} : { resumedAfter: line.resumedAfter }),
      answer: half === 'commit' ? { rowCount: 0 } : answerOf(line, verb),
      footprint,
      pid: 4000 + flow,
    }
  })
}

function answerOf({ rows, error, tag }: Line, verb: string): Answer {
  if (error !== undefined) return { rowCount: 0, error }
  if (tag !== undefined) return { tag, rowCount: 0 }
  if (rows === undefined) {
    const tags: Record<string, string> = {
      INSERT: 'INSERT 0 1',
      UPDATE: 'UPDATE 1',
      DELETE: 'DELETE 1',
    }
    return { tag: tags[verb] ?? verb, rowCount: tags[verb] === undefined ? 0 : 1 }
  }
  const [columns, ...values] = rows
  return { tag: `${verb} ${values.length}`, columns, rows: values, rowCount: values.length }
}

/** A run of the play, with what it left behind. */
export function runOf(play: Play, rest: Partial<Run> = {}): Run {
  return {
    steps: stepsOf(play),
    decisions: [],
    outcomes: play.flows.map(() => ({ kind: 'returned', value: 'undefined' })),
    digest: '',
    state: '',
    tables: [],
    deadlocks: 0,
    notes: [],
    ...rest,
  }
}
