import { readdirSync } from 'node:fs'
import { callerStatements } from './caller-statements.ts'
import { ownStatements } from './own-statements.ts'

/** One SQL text of ours, and which export makes it. */
export interface SampleText {
  readonly of: string
  readonly text: string
}

/** Exports that hold no statement: parts of statements, which are read in those, readers of answers, names. */
const noStatements: Readonly<Record<string, readonly string[]>> = {
  // Made of those that are listed.
  'engine.ts': ['postgres'],
  'locks/look-at-holders.ts': ['lookAtHolders', 'holdersOf'],
  'locks/taking.ts': ['postgresLocks'],
  'sql/call-function.ts': [
    'callFunction',
    'callIn',
    'sumOverPrimaries',
    'queryJoined',
    'answerOf',
    'schemaMissing',
    'missingSchema',
    'needingSchema',
    'needingTables',
  ],
  'observe/advice-words.ts': ['adviceWords'],
  'tx/activity.ts': ['splitApplication', 'blockerColumns', 'blockersAmong', 'blockersFrom'],
  'schedule/tick-board.ts': ['TickBoard', 'postgresSchedules'],
  'claims/check.ts': ['isServedByIndex', 'grantRows', 'usageOf'],
  'claims/dead.ts': ['deadFrom'],
  'claims/add-work.ts': ['addWork'],
  'claims/claims-engine.ts': ['postgresClaims'],
  'claims/dead-rows.ts': ['deadRows'],
  'claims/finish.ts': ['statesFrom'],
  'claims/leased-rows.ts': ['leasedRows'],
  'claims/sending.ts': ['aloneOn', 'askingAgain', 'joinedTo'],
  'claims/table-check.ts': ['checkTable', 'checkColumns', 'checkUse', 'checkIndexes'],
  'claims/over-table.ts': ['overTable'],
  'claims/taken-rows.ts': ['takenRows'],
  'claims/turn-order.ts': ['turnOrder'],
  'claims/texts.ts': ['textOf'],
  'claims/turns.ts': ['turnsOf'],
  'claims/claims.ts': [
    'rateRoom',
    'valueText',
    'columnOf',
    'equals',
    'inStatus',
    'isServed',
    'isDue',
    'atMost',
    'afterNow',
    'seesLatest',
    'claimedPerKey',
    'claimedRows',
  ],
  'sql/function-call.ts': ['connectingWithin'],
  'health/settings.ts': ['settingsFrom'],
  'sql/identifier.ts': ['quoteIdentifier', 'tableText', 'quoteLiteral'],
  'tx/join-marker.ts': ['isMarked'],
  'ledger/ledger.ts': ['columnsOfMany', 'columnsOfPlain'],
  // Its text is one of ledger.ts.
  'ledger/new-lines.ts': ['columnsOfNew', 'NewLinesStatement'],
  'locks/lock-order.ts': ['seenLocks', 'seenRows', 'heldKeys'],
  'locks/locks.ts': [
    'labelMark',
    'marker',
    'wantedRows',
    'keysJson',
    'isShort',
    'lockAnswer',
    'rowsToken',
    'heldBy',
  ],
  'observe/claims.ts': ['countedRows', 'isAffordable'],
  'observe/locks.ts': ['seenLocks'],
  'observe/notes.ts': ['notedNames'],
  'observe/settings.ts': ['plainly', 'isoText', 'millisecondsText', 'mayRead'],
  'leases/lease-calls.ts': ['leasesAlone', 'postgresLeases'],
  'leases/run-call.ts': ['runAlone', 'runOnSession'],
  'once/once.ts': ['onceLock'],
  'once/once-keys.ts': ['postgresOnce'],
  'sql/array-literal.ts': ['ArrayLiteral'],
  // Its text is one of ledger.ts.
  'sql/array-columns.ts': ['arrayColumns', 'columnsCall'],
  'sql/uuid-words.ts': ['Words', 'wordsOf'],
  'sql/binary-array.ts': [
    'headBytes',
    'elements',
    'arrayBytes',
    'textBytes',
    'writeTexts',
    'writeNull',
    'writeHead',
    'writeInt2',
    'writeInt8',
    'writeUuid',
  ],
  'sql/operators.ts': [
    'eq',
    'ne',
    'lt',
    'le',
    'gt',
    'ge',
    'plus',
    'minus',
    'times',
    'per',
    'cat',
    'like',
    'unlike',
    'matches',
    'jsonAt',
    'jsonText',
    'shifted',
    'bitOr',
    'bitAnd',
    'filled',
  ],
  'sql/own-operators.ts': ['comparing', 'withOperators'],
  'sql/parameter.ts': ['parameter', 'parameters'],
  'rows/rows.ts': ['modeOf', 'markerWithRows', 'typedRecord', 'columnList', 'sameKey', 'rowAnswer'],
  // Its texts are constants.
  'tx/savepoint.ts': ['withSavepoint'],
  'schema/catalogue.ts': ['objectsFrom', 'keyOf'],
  // Advice, for whoever reads it; made of what the catalogue describes.
  'schema/fixes.ts': ['fixOf'],
  'schema/online.ts': ['onlineIndex', 'stateFrom', 'online', 'metAnother'],
  'schema/owners.ts': ['misplacedFrom', 'powerFrom'],
  // The last two are parts of those that are listed.
  'schema/privileges.ts': ['tablePrivileges', 'privilegesFrom', 'entriesOf', 'runEach'],
  'schema/records.ts': ['recordsFrom'],
  'schema/retired.ts': ['retired'],
  'schema/script.ts': ['statementsOf', 'bindSchema', 'dollarQuoted', 'objectsIn', 'inTransaction'],
  'shards/moves.ts': ['moveOfSlot', 'moveRefusal', 'isCancelled'],
  'shards/shards.ts': ['shardRefusal'],
  'rows/contention.ts': ['contention', 'askBeside'],
  'rows/limited-wait.ts': ['LimitedWait', 'waiterOf', 'notGranted'],
  'rows/lock-table.ts': ['lockTable'],
  'rows/row-engine.ts': ['postgresRows'],
  'rows/row-order.ts': ['watchRowOrder'],
  'rows/set-json.ts': ['setJson'],
  'rows/table-lock.ts': ['conflictingModes', 'conflictsWith'],
  'tx/transaction-control.ts': ['controlIn', 'rollbacksToSavepoints'],
  'tx/transaction.ts': ['isolations'],
  'tx/wait-limit.ts': [
    'slackMs',
    'settingMs',
    'clockMs',
    'limitNumbers',
    'shortestLimitMs',
    'leftOfLimit',
    'isLimitedHere',
    'timeoutColumns',
    'endedBySetting',
    'restoredTimeouts',
    'waitLimitFrom',
    'shown',
  ],
}

const folder = new URL('../../../src/engines/postgres/', import.meta.url)

const samples: Readonly<Record<string, Readonly<Record<string, () => unknown>>>> = {
  ...callerStatements,
  ...ownStatements,
}

/** Every SQL text that the engine makes, and the exports of which nobody has said what they make. */
export async function ownTexts(): Promise<{
  readonly texts: readonly SampleText[]
  readonly unknown: readonly string[]
}> {
  const texts = new Map<string, SampleText>()
  const unknown: string[] = []
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const exported = (await import(new URL(file, folder).href)) as Record<string, unknown>
    for (const [name, value] of Object.entries(exported)) {
      const of = `${file} ${name}`
      if (noStatements[file]?.includes(name) === true) continue
      const made = typeof value === 'function' ? samples[file]?.[name]?.() : value
      const found = textsIn(made)
      if (found.length === 0) unknown.push(of)
      for (const text of found) texts.set(text, { of, text })
    }
  }
  return { texts: [...texts.values()], unknown }
}

function textsIn(made: unknown): string[] {
  if (typeof made === 'string') return [made]
  if (Array.isArray(made)) return made.flatMap(textsIn)
  if (typeof made !== 'object' || made === null) return []
  if ('text' in made && typeof made.text === 'string') return [made.text]
  return Object.values(made).flatMap(textsIn)
}
