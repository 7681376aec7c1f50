import type { Footprint } from '../../core/model.ts'
import { type Beyond, beyond } from '../statement/beyond.ts'
import { type Catalogue, readCatalogue, readStamp } from '../catalogue/catalogue.ts'
import type { Control } from '../connection/control.ts'
import { type Held, holdsNothing, mergedRelations, nothingHeld, readHeld } from './held.ts'
import { type Derived, ended, howItEnds, joinFootprints, local, unknown } from './derived.ts'
import {
  anythingInside,
  asFootprint,
  type Inside,
  isOfOneRow,
  lookInside,
  lookInsideUnseen,
  nothingInside,
  partsOf,
  putOffBy,
} from '../statement/inner-parts.ts'
import {
  atOnce,
  mayCommit,
  observable,
  runsLate,
  tellsOthers,
} from '../statement/open-statements.ts'
import { leavesBehind } from '../statement/leaves.ts'
import { followLevel } from './level-doubt.ts'
import { releasedKeys } from './session-locks.ts'
import { isSteady, resolveNames } from '../statement/names.ts'
import type { Observed } from './observed.ts'
import { givesKey, narrowed } from './row-object.ts'
import { runsInside } from '../statement/runs-inside.ts'
import { withSnapshot } from './snapshot-taken.ts'
import { type StatementShape, shapeOf, unread } from '../statement/statement-shape.ts'
import {
  callsAdvisory,
  foretoldTouches,
  observedTouches,
  type Touched,
  touchedNothing,
} from './touches.ts'
import { applySetting, type TransactionRecord } from './transaction-record.ts'

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
  const atomic = functions === 'atomic'
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
    const { statements } = settlement.unit
    const isRead = (text: string): boolean => observed.isPlain || !text.includes('\\')
    const shapes = statements.map((text) => (isRead(text) ? shapeOf(text) : unread()))
    const leaves = leavesBehind(settlement, shapes, catalogue, record.prepared)
    const found = await derived(observed, shapes)
    const { prepared } = record
    const countsAsOne = atomic ? runsInside(settlement, shapes, catalogue, prepared) : undefined
    const followed = followLevel(found, shapes, settlement.unit, record, catalogue)
    return { ...followed, leaves, countsAsOne }
  }

  async function derived(observed: Observed, shapes: readonly StatementShape[]): Promise<Derived> {
    const { settlement, record } = observed
    const [shape] = shapes
    if (settlement.unit.closesCycle || !shape) {
      // Inside of BEGIN a Sync ends nothing.
      return settlement.after === 'I'
        ? ended(settlement, record, howItEnds(settlement))
        : local(record)
    }
    if (!settlement.answer.error)
      for (const { prepares } of shapes)
        if (prepares) record.prepared.set(prepares.name, prepares.shape)
    const [far] = shapes.flatMap((one) => beyond(one, catalogue, !atomic) ?? [])
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
        return ended(settlement, record, howItEnds(settlement))
      case 'rollback':
        return ended(settlement, record, 'rollback')
      case 'rollback-to':
        return { footprint: record.rollsBackTo(), idle: false }
      case 'local':
        if (tellsOthers(shape)) return statement(observed, shape)
        applySetting(shape, settlement.before, record)
        // DISCARD ALL gives back the locks of the session.
        if (shape.resetsIsolation && shape.verb === 'discard')
          return { footprint: record.lost(), idle: true }
        return local(record, withSnapshot([], shape, record))
      case 'query':
      case 'lock':
      case 'unknown':
        return statement(observed, shape)
    }
  }

  /** It looks where no lock tells: it depends on everything, and its flow is to say so. */
  function openTo(far: Beyond, { settlement, record }: Observed): Derived {
    if (settlement.before === 'I') record.clear()
    return { ...unknown(settlement, record), beyond: far }
  }

  async function statement(observed: Observed, shape: StatementShape): Promise<Derived> {
    const { settlement, record, pid } = observed
    const [text = ''] = settlement.unit.statements
    const visible = observed.open && (settlement.held || settlement.after === 'T')
    if (settlement.before === 'I') record.clear()
    const known = sightings.get(text)
    if (known && known.times >= enough) {
      const after = {
        ...record.held,
        relations: mergedRelations(record.held.relations, known.relations),
      }
      const reads = known.touched.touches.every(({ mode }) => mode === 'read')
      const idle = record.quiet && (reads || touchedNothing(shape, settlement.answer))
      return made(observed, shape, known.touched, after, idle)
    }
    if (!visible) {
      const guess = foretold(shape, nothingHeld)
      if (!guess) return unseen(observed, shape)
      return made(observed, shape, guess, nothingHeld, true)
    }
    const after = await held(pid)
    if (after.far !== undefined) return openTo({ what: after.far, isInside: false }, observed)
    const isOpen = tellsOthers(shape) || (shape.kind === 'unknown' && !observable.has(shape.verb))
    const names = resolveNames(shape, catalogue, after)
    const touched = observedTouches(shape, names, catalogue, record.held, after)
    if (after.unknown || isOpen || mayCommit(shape, text, catalogue)) {
      record.add(none, after)
      const inside = lookInside(settlement, shape, touched, catalogue, record.prepared)
      putOff(observed, shape, touched)
      return unknownWith(inside, observed, shape)
    }
    remember(text, shape, touched, after)
    return made(observed, shape, touched, after, record.quiet && holdsNothing(after))
  }

  /** Executed and committed in one step, or by several commits of its own: others may act in between. */
  function unseen(observed: Observed, shape: StatementShape): Derived {
    const { settlement, record } = observed
    const inside = lookInsideUnseen(settlement, shape, catalogue, record.prepared)
    return unknownWith(atOnce.has(shape.verb) ? inside : anythingInside, observed, shape)
  }

  /** It depends on everything; that does not make one statement of what it runs inside. */
  function unknownWith(
    inside: Inside,
    { settlement, record }: Observed,
    { verb }: StatementShape,
  ): Derived {
    const late = runsLate.has(verb) ? record.runLate() : []
    const { isolation } = record
    const derived = unknown(settlement, record)
    if (atomic) return derived
    const all = { ...inside, parts: [...inside.parts, ...late], forgotten: undefined }
    const parts = partsOf(all, isolation, [])
    return parts ? { ...derived, footprint: { ...derived.footprint, parts } } : derived
  }

  /** What the COMMIT will have to run for it. */
  function putOff(
    { settlement, record }: Observed,
    shape: StatementShape,
    { writes, plain }: Touched,
  ): void {
    if (plain) return
    record.putOff(putOffBy(writes, isOfOneRow(settlement.answer, shape), catalogue))
    if (shape.runsOn) record.spoil()
  }

  function foretold(shape: StatementShape, waitedFor: Held): Touched | undefined {
    if (shape.prepares) {
      // It locks the tables as what it prepares would, and writes nothing.
      const locks = foretold(shape.prepares.shape, waitedFor)
      return locks && { ...locks, writes: [], deferred: [] }
    }
    return foretoldTouches(shape, resolveNames(shape, catalogue), catalogue, waitedFor)
  }

  /** By rows where the key is given; what is remembered of a text is of its tables only. */
  function inRows(
    touched: Touched,
    shape: StatementShape,
    { settlement: { unit }, record: { isolation }, isPlain }: Observed,
    held: Held,
  ): Touched {
    if (!isPlain) return touched
    return narrowed(touched, shape, resolveNames(shape, catalogue, held), unit, isolation)
  }

  /** Puts the footprint of a finished statement together and adds it to the transaction's record. */
  function made(
    observed: Observed,
    shape: StatementShape,
    found: Touched,
    after: Held,
    idle: boolean,
  ): Derived {
    const { settlement, record } = observed
    const before = record.held
    const touched = inRows(found, shape, observed, after)
    const wroteNothing = touchedNothing(shape, settlement.answer) && touched.plain
    // What is proven in another way is taken as its locks tell.
    const isKnown = found.plain || atomic
    const inside = isKnown
      ? nothingInside
      : lookInside(settlement, shape, found, catalogue, record.prepared)
    record.add(wroteNothing ? { ...touched, writes: [], deferred: [] } : touched, after)
    putOff(observed, shape, found)
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
    return { footprint: joinFootprints(own, end), idle }
  }

  /** The locks of a failed statement are gone, and outside a savepoint those of its transaction. */
  function failed(observed: Observed, shape: StatementShape): Derived {
    const { settlement, record, waitedFor } = observed
    if (settlement.before === 'E') return local(record)
    const guess = ['query', 'lock', 'unknown'].includes(shape.kind)
      ? foretold(shape, waitedFor ?? nothingHeld)
      : none
    if (settlement.before === 'I') record.clear()
    const touched = guess && inRows(guess, shape, observed, nothingHeld)
    const touches = withSnapshot(touched?.touches ?? [], shape, record)
    if (touched) record.add({ ...touched, writes: [] }, record.held)
    // An error tells what was seen by then.
    const inside =
      touched || atomic
        ? nothingInside
        : lookInsideUnseen(settlement, shape, catalogue, record.prepared)
    const parts = partsOf({ ...inside, forgotten: undefined }, record.isolation, [])
    const own: Footprint = {
      opaque: !touched,
      touches,
      isolation: record.isolation,
      ...(parts && { parts }),
    }
    const end = settlement.before === 'T' ? record.ends('rollback') : undefined
    if (record.savepoints === 0) record.clear('rollback')
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
    const isUnknown = saves.length > 0 || guesses.includes(undefined) || shapes.some(tellsOthers)
    if (guesses.includes(undefined)) putOffAnything(record)
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
    return { footprint: joinFootprints(own, end), idle: true }
  }

  /** Of several statements nobody knows which tables they met. */
  function putOffAnything(record: TransactionRecord): void {
    const tables = [...catalogue.relations.values()].map(({ object }) => object)
    record.putOff(putOffBy(tables, false, catalogue))
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
