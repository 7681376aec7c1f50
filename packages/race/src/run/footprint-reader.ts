import type { Footprint, Touch } from '../core/model.ts'
import type { Settlement } from '../gate/unit.ts'
import { beyond, beyondInside } from './beyond.ts'
import { type Catalogue, type Relation, readCatalogue, readStamp } from './catalogue.ts'
import type { Control } from './control.ts'
import { type Held, holdsNothing, nothingHeld, readHeld } from './held.ts'
import { type Derived, ended, joinFootprints, local, unknown } from './derived.ts'
import { asFootprint, lookInside, nothingInside, partsOf } from './inner-parts.ts'
import { releasedKeys } from './session-locks.ts'
import { cascades, resolveNames } from './names.ts'
import { givesKey, narrowed } from './row-object.ts'
import { type StatementShape, shapeOf } from './statement-shape.ts'
import { callsAdvisory, foretoldTouches, observedTouches, type Touched } from './touches.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** A unit that came to rest, with what is known about its session. */
export interface Observed {
  readonly settlement: Settlement
  readonly pid: number
  /** The session is still there, and its locks are to be seen. */
  readonly open: boolean
  readonly record: TransactionRecord
  /** What it waited for before it went on, if it did. */
  readonly waitedFor: Held | undefined
}

/** Tells what a step touched: by looking at its locks, until a text has been seen often enough. */
export interface FootprintReader {
  /** Called before every run: tables may have been made anew. Tells the catalogue's stamp. */
  prepare(): Promise<string>
  derive(observed: Observed): Promise<Derived>
  /** A statement that is known to read only: nothing is gained by holding its commit back. */
  onlyReads(text: string): boolean
  /** A statement that gives the whole key of a row: it finds that row, or none. */
  namesOneRow(text: string): boolean
  waitedFor(pid: number): Promise<Held>
}

/** After so many sightings with one result the text stands for itself. */
const enough = 2

interface Sighting {
  readonly touched: Touched
  readonly relations: Held['relations']
  readonly print: string
  times: number
}

const none: Touched = { touches: [], writes: [], deferred: [], plain: false }

export async function createFootprintReader(
  control: Control,
  functions: 'open' | 'atomic' = 'open',
): Promise<FootprintReader> {
  let catalogue: Catalogue = await readCatalogue(control)
  const sightings = new Map<string, Sighting>()

  async function prepare(): Promise<string> {
    if ((await readStamp(control)) === catalogue.stamp) return catalogue.stamp
    catalogue = await readCatalogue(control)
    sightings.clear()
    return catalogue.stamp
  }

  async function held(pid: number, waiting: boolean = false): Promise<Held> {
    const locks = await control.locks(pid)
    const found = readHeld(locks, catalogue, waiting)
    if (!found.unknown) return found
    // A table that was made, or made anew, since the run began.
    catalogue = await readCatalogue(control)
    return readHeld(locks, catalogue, waiting)
  }

  function onlyReads(text: string): boolean {
    const sighting = sightings.get(text)
    return (
      sighting !== undefined &&
      sighting.times >= enough &&
      sighting.touched.touches.every(({ mode }) => mode === 'read')
    )
  }

  async function derive(observed: Observed): Promise<Derived> {
    const { settlement, record } = observed
    const shapes = settlement.unit.statements.map(shapeOf)
    const [shape] = shapes
    if (settlement.unit.closesCycle || !shape) return ended(settlement, record, 'commit')
    if (shapes.some(tellsOthers)) return unknown(settlement, record)
    const [far] = shapes.flatMap((one) => farOf(one) ?? [])
    if (far !== undefined) return openTo(far, observed)
    if (shapes.length > 1) return opening(observed, shapes) ?? several(observed, shapes)
    if (settlement.answer.error && shape.kind !== 'commit') return failed(observed, shape)
    switch (shape.kind) {
      case 'begin':
        // Inside of a transaction it is a warning and nothing else.
        if (settlement.before === 'I') record.clear()
        if (shape.isolation) record.setIsolation(shape.isolation, false)
        return local(record)
      case 'commit':
        return ended(settlement, record, settlement.answer.error ? 'rollback' : 'commit')
      case 'rollback':
        return ended(settlement, record, 'rollback')
      case 'rollback-to':
        return { footprint: record.ends('rollback'), idle: false }
      case 'local':
        setSession(shape, settlement, record)
        return shape.verb === 'discard' ? discarded(shape, record) : local(record)
      case 'query':
      case 'lock':
      case 'unknown':
        return statement(observed, shape)
    }
  }

  function farOf(shape: StatementShape): string | undefined {
    const far = beyond(shape, catalogue)
    return far ?? (functions === 'atomic' ? undefined : beyondInside(shape, catalogue))
  }

  /** It looks where no lock tells: it depends on everything, and its flow is to say so. */
  function openTo(beyond: string, { settlement, record }: Observed): Derived {
    if (settlement.before === 'I') record.clear()
    return { ...unknown(settlement, record), beyond }
  }

  /** DISCARD ALL gives back the locks of the session. */
  function discarded(shape: StatementShape, record: TransactionRecord): Derived {
    return shape.resetsIsolation ? { footprint: record.lost(), idle: true } : local(record)
  }

  function setSession(
    shape: StatementShape,
    { before }: Settlement,
    record: TransactionRecord,
  ): void {
    if (shape.verb === 'savepoint') record.savepoint(1)
    if (shape.verb === 'release') record.savepoint(-1)
    if (shape.resetsIsolation) record.resetIsolation()
    if (!shape.isolation) return
    record.setIsolation(shape.isolation, shape.forSession)
    if (before === 'I' && shape.forSession) record.clear()
  }

  async function statement(observed: Observed, shape: StatementShape): Promise<Derived> {
    const { settlement, record, pid } = observed
    const [text = ''] = settlement.unit.statements
    const visible = observed.open && (settlement.held || settlement.after === 'T')
    if (settlement.before === 'I') record.clear()
    const known = sightings.get(text)
    if (known && known.times >= enough) {
      const after = { ...record.held, relations: merged(record.held.relations, known.relations) }
      const reads = known.touched.touches.every(({ mode }) => mode === 'read')
      const idle = record.quiet && (reads || touchedNothing(shape, settlement))
      return made(observed, shape, known.touched, after, idle)
    }
    if (!visible) {
      const guess = foretold(shape, nothingHeld)
      if (!guess) return unseen(observed, shape)
      return made(observed, shape, guess, nothingHeld, true)
    }
    const after = await held(pid)
    if (after.far !== undefined) return openTo(after.far, observed)
    const isOpen = shape.kind === 'unknown' && !observable.has(shape.verb)
    if (after.unknown || isOpen || mayCommit(shape, text, catalogue)) {
      record.add(none, after)
      return unknown(settlement, record)
    }
    const names = resolveNames(shape, catalogue, after)
    const touched = observedTouches(shape, names, catalogue, record.held, after)
    remember(text, shape, touched, after)
    return made(observed, shape, touched, after, record.quiet && holdsNothing(after))
  }

  /** Executed and committed in one step, or by several commits of its own: others may act in between. */
  function unseen({ settlement, record }: Observed, shape: StatementShape): Derived {
    const { footprint, idle } = unknown(settlement, record)
    if (atOnce.has(shape.verb)) return { footprint, idle }
    const part = asFootprint(undefined, record.isolation)
    return { footprint: { ...footprint, parts: [part, part] }, idle }
  }

  function foretold(shape: StatementShape, waitedFor: Held): Touched | undefined {
    return foretoldTouches(shape, resolveNames(shape, catalogue), catalogue, waitedFor)
  }

  /** By rows where the key is given; what is remembered of a text is of its tables only. */
  function inRows(
    touched: Touched,
    shape: StatementShape,
    { unit }: Settlement,
    { isolation }: TransactionRecord,
    held: Held,
  ): Touched {
    return narrowed(touched, shape, resolveNames(shape, catalogue, held), unit, isolation)
  }

  /** Puts the footprint of a finished statement together and adds it to the transaction's record. */
  function made(
    { settlement, record }: Observed,
    shape: StatementShape,
    found: Touched,
    after: Held,
    idle: boolean,
  ): Derived {
    const before = record.held
    const touched = inRows(found, shape, settlement, record, after)
    const wroteNothing = touchedNothing(shape, settlement) && touched.plain
    // What is proven in another way is taken as its locks tell.
    const isKnown = found.plain || functions === 'atomic'
    const inside = isKnown ? nothingInside : lookInside(settlement, shape, found, catalogue)
    record.add(wroteNothing ? { ...touched, writes: [], deferred: [] } : touched, after)
    const parts = partsOf(inside, record.isolation, found.touches)
    const own: Footprint = {
      opaque: inside.forgotten === undefined,
      touches: withSnapshot([...touched.touches, ...(inside.forgotten ?? [])], shape, record),
      isolation: record.isolation,
      ...(parts && { parts }),
    }
    const released = releasedKeys(shape, found, record, before, after)
    if (released.length > 0) {
      return { footprint: { ...own, ends: { how: 'rollback', writes: [], locks: released } }, idle }
    }
    if (settlement.after !== 'I') return { footprint: own, idle }
    // Committed within the same step.
    const end = record.ends('commit')
    record.clear()
    const whole = joinFootprints(own, end)
    return { footprint: parts ? { ...whole, parts: [...parts, end] } : whole, idle }
  }

  /** The locks of a failed statement are gone, and outside a savepoint those of its transaction. */
  function failed({ settlement, record, waitedFor }: Observed, shape: StatementShape): Derived {
    if (settlement.before === 'E') return local(record)
    const guess = ['query', 'lock', 'unknown'].includes(shape.kind)
      ? foretold(shape, waitedFor ?? nothingHeld)
      : none
    if (settlement.before === 'I') record.clear()
    const touched = guess && inRows(guess, shape, settlement, record, nothingHeld)
    const touches = withSnapshot(touched?.touches ?? [], shape, record)
    if (touched) record.add({ ...touched, writes: [] }, record.held)
    const own: Footprint = { opaque: !touched, touches, isolation: record.isolation }
    const end = settlement.before === 'T' ? record.ends('rollback') : undefined
    if (record.savepoints === 0) record.clear()
    return { footprint: end ? joinFootprints(own, end) : own, idle: true }
  }

  /** BEGIN with one statement behind it is that statement: its locks are there to be looked at. */
  function opening(
    observed: Observed,
    [begin, shape, more]: readonly StatementShape[],
  ): Promise<Derived> | undefined {
    const { settlement, record } = observed
    if (begin?.kind !== 'begin' || shape?.kind !== 'query' || more) return undefined
    if (settlement.before !== 'I' || settlement.answer.error) return undefined
    record.clear()
    if (begin.isolation) record.setIsolation(begin.isolation, false)
    const unit = { ...settlement.unit, statements: settlement.unit.statements.slice(1) }
    return statement({ ...observed, settlement: { ...settlement, before: 'T', unit } }, shape)
  }

  /** Several statements at once are one step: what each does is put together, if it can be told. */
  function several({ settlement, record }: Observed, shapes: readonly StatementShape[]): Derived {
    const guesses = shapes.map((shape) =>
      shape.kind === 'local' || shape.kind === 'begin' ? none : foretold(shape, nothingHeld),
    )
    if (settlement.before === 'I') record.clear()
    const parts = guesses.map((guess) => asFootprint(guess?.touches, record.isolation))
    const saves = shapes.filter(({ verb }) => verb === 'savepoint' || verb === 'release')
    for (const { verb } of saves) record.savepoint(verb === 'savepoint' ? 1 : -1)
    const isUnknown = saves.length > 0 || guesses.includes(undefined)
    if (settlement.answer.error || isUnknown || shapes.some(({ kind }) => kind === 'begin')) {
      const { footprint, idle } = unknown(settlement, record)
      return { footprint: { ...footprint, parts: [...parts, footprint] }, idle }
    }
    const all = guesses.flatMap((guess) => guess ?? [])
    const touched: Touched = {
      touches: all.flatMap(({ touches }) => touches),
      writes: all.flatMap(({ writes }) => writes),
      deferred: all.flatMap(({ deferred }) => deferred),
      plain: false,
    }
    record.add(touched, record.held)
    const touches = shapes[0] ? withSnapshot(touched.touches, shapes[0], record) : touched.touches
    const own: Footprint = { opaque: false, touches, isolation: record.isolation, parts }
    if (settlement.after !== 'I') return { footprint: own, idle: false }
    const end = record.ends('commit')
    record.clear()
    return { footprint: joinFootprints({ ...own, parts: [...parts, end] }, end), idle: true }
  }

  function remember(text: string, shape: StatementShape, touched: Touched, after: Held): void {
    const names = resolveNames(shape, catalogue)
    if (!names.plain || !names.fixed || callsAdvisory(shape)) return
    if (!isSteady(shape, names.target)) return
    const print = JSON.stringify(touched)
    const known = sightings.get(text)
    if (known?.print === print) {
      known.times += 1
      return
    }
    const objects = new Set(touched.touches.map(({ object }) => object))
    const relations = new Map([...after.relations].filter(([object]) => objects.has(object)))
    sightings.set(text, { touched, relations, print, times: 1 })
  }

  return {
    prepare,
    derive,
    onlyReads,
    namesOneRow(text) {
      const shape = shapeOf(text)
      const { target, reads } = resolveNames(shape, catalogue)
      return givesKey(shape, target ?? reads[0])
    },
    waitedFor: (pid) => held(pid, true),
  }
}

/** Messages between sessions: who hears of what when depends on everything. */
function tellsOthers({ verb, calls }: StatementShape): boolean {
  return ['listen', 'unlisten', 'notify'].includes(verb) || calls.has('pg_notify')
}

// Not queries, but what they lock is all they do.
const observable = new Set([
  'call',
  'do',
  'execute',
  'copy from',
  'copy to',
  'explain',
  'fetch',
  'move',
  'declare',
])

// What they do they do at one moment: when they commit, or when they read.
const atOnce = new Set(['prepared', 'chain', 'copy to', 'select', 'show'])

/** Procedures and blocks may commit in between, and then their locks do not tell what they did. */
function mayCommit({ verb }: StatementShape, text: string, { routines }: Catalogue): boolean {
  if (verb === 'do') return commits.test(text)
  return (
    verb === 'call' && [...routines.values()].flat().some(({ body }) => commits.test(body ?? ''))
  )
}

const commits = /\b(?:commit|rollback)\b/i

/** The first query of such a transaction decides what all of them see. */
function withSnapshot(
  touches: readonly Touch[],
  shape: StatementShape,
  record: TransactionRecord,
): readonly Touch[] {
  // LOCK TABLE and DDL do not take it.
  if (shape.kind !== 'query' && !observable.has(shape.verb)) return touches
  if (record.takesSnapshot()) return [...touches, { object: '*', mode: 'read' }]
  // Whatever it reads, it reads the catalogue, which DDL of others changes.
  return touches.length > 0 ? touches : [{ object: 'pg_catalog', mode: 'read' }]
}

/** Whether foreign keys cannot make the statement touch now this and now that. */
function isSteady(shape: StatementShape, target: Relation | undefined): boolean {
  if (shape.target === undefined) return !shape.writesSeveral
  return target !== undefined && target.parents.size === 0 && !cascades(shape, target)
}

/** An UPDATE of no row, an INSERT of none. */
function touchedNothing(shape: StatementShape, { answer }: Settlement): boolean {
  if (shape.writesSeveral) return false
  const counted = shape.target === undefined ? shape.lockingRead : true
  return (
    counted &&
    /^(INSERT 0|UPDATE|DELETE|MERGE|SELECT) 0$/.test(answer.tag ?? '') &&
    (shape.target === undefined || !answer.tag?.startsWith('SELECT'))
  )
}

function merged(one: Held['relations'], other: Held['relations']): Held['relations'] {
  const all = new Map([...one].map(([object, modes]) => [object, new Set(modes)]))
  for (const [object, modes] of other) {
    all.set(object, new Set([...(all.get(object) ?? []), ...modes]))
  }
  return all
}
