import * as call from '../../../src/engines/postgres/sql/function-call.ts'
import * as grants from '../../../src/engines/postgres/ledger/grants.ts'
import * as server from '../../../src/engines/postgres/health/server.ts'
import * as settings from '../../../src/engines/postgres/health/settings.ts'
import * as work from '../../../src/engines/postgres/health/work.ts'
import * as leases from '../../../src/engines/postgres/leases/leases.ts'
import * as ledgerCall from '../../../src/engines/postgres/ledger/call.ts'
import * as follow from '../../../src/engines/postgres/ledger/follow.ts'
import * as reads from '../../../src/engines/postgres/ledger/reads.ts'
import * as upkeep from '../../../src/engines/postgres/ledger/upkeep.ts'
import * as ledger from '../../../src/engines/postgres/ledger/ledger.ts'
import * as coordination from '../../../src/engines/postgres/observe/coordination.ts'
import * as interventions from '../../../src/engines/postgres/observe/interventions.ts'
import * as observedLedger from '../../../src/engines/postgres/observe/ledger.ts'
import * as observedLocks from '../../../src/engines/postgres/observe/locks.ts'
import * as notes from '../../../src/engines/postgres/observe/notes.ts'
import * as look from '../../../src/engines/postgres/observe/settings.ts'
import * as transactions from '../../../src/engines/postgres/observe/transactions.ts'
import * as once from '../../../src/engines/postgres/once/once.ts'
import * as rateLimit from '../../../src/engines/postgres/rate-limit/rate-limit.ts'
import * as own from '../../../src/engines/postgres/sql/own-operators.ts'
import * as schedule from '../../../src/engines/postgres/schedule/schedule.ts'
import * as catalogue from '../../../src/engines/postgres/schema/catalogue.ts'
import * as months from '../../../src/engines/postgres/schema/months.ts'
import * as online from '../../../src/engines/postgres/schema/online.ts'
import * as roles from '../../../src/engines/postgres/schema/role-texts.ts'
import * as owners from '../../../src/engines/postgres/schema/owners.ts'
import * as privileges from '../../../src/engines/postgres/schema/privileges.ts'
import * as records from '../../../src/engines/postgres/schema/records.ts'
import * as session from '../../../src/engines/postgres/tx/session.ts'
import * as moves from '../../../src/engines/postgres/shards/moves.ts'
import * as shards from '../../../src/engines/postgres/shards/shards.ts'
import * as transaction from '../../../src/engines/postgres/tx/transaction.ts'
import * as enqueue from '../../../src/engines/postgres/claims/work.ts'
import { callersTable, schema } from './caller-statements.ts'

/** Statements about our own schema and about the server, by file and export. */

const names = { bucket: 1, book: 'b', key: 'k', scope: 's' }
const limit = { limitMs: 5, yields: true, budgetMs: 9 }
const limitKey = { bucket: 1, uuid: 'u', words: { a: 1, b: 2, c: 3, d: 4 } }
const held = { scope: 's', name: 'n', owner: 'o', token: 1n, sessionLock: 2n }
const tick = { name: 'n', atUs: 1, manual: false }
const facts = { id: 'i', cluster: 'c', buckets: [1], source: 'a', target: 'b', tables: ['t'] }
const onceNames = { key: 'k', scope: 's', fingerprint: 'f' }
const file = { name: 'n', checksum: 'c', version: 'v' }
const objects = { functions: ['f'], views: ['v'], tables: ['t'] }
const follower = { name: 'n', book: undefined }
const setting = { name: 'fsync', value: 'off', level: 'database', needsRestart: false } as const

export const ownStatements: Readonly<Record<string, Readonly<Record<string, () => unknown>>>> = {
  'sql/function-call.ts': {
    functionCall: () => [
      call.functionCall(schema, 'f', [['timestamptz', 'a']], []),
      call.functionCall(schema, 'f', [['jsonb', 'a']], [], limit),
    ],
  },
  'ledger/grants.ts': {
    listGrants: () => grants.listGrants(schema, { bucket: 1, base: 'b' }, true, 5),
  },
  'health/server.ts': {
    serverFacts: () => server.serverFacts('r'),
    limitStatements: () => server.limitStatements(5),
    roleFacts: () => server.roleFacts('r'),
    oldTransactions: () => server.oldTransactions(1, 2, 3),
    endSession: () => server.endSession(1, 'b'),
    preparedTransactions: () => server.preparedTransactions(5),
    endPrepared: () => server.endPrepared('g'),
    dropSlot: () => server.dropSlot('s'),
  },
  'health/settings.ts': {
    readSettings: () => settings.readSettings(['a'], 'r'),
    setForRole: () => settings.setForRole(setting, 'on', { role: 'r', database: 'd' }),
    undoSetting: () => settings.undoSetting(setting, 'on', { role: 'r', database: 'd' }),
  },
  'health/work.ts': {
    overdueHolds: () => work.overdueHolds(schema, 5),
    sweepText: () => work.sweepText(schema),
    strandedClaims: () =>
      work.strandedClaims(
        {
          table: { table: callersTable },
          key: ['id'],
          status: 'status',
          pending: "'p'",
          claimed: "'c'",
          where: [['a', "'b'"]],
          runAt: undefined,
          priority: undefined,
          order: [],
          columns: undefined,
          leaseUntil: 'lease_until',
        },
        5,
      ),
    stuckTicks: () => work.stuckTicks(schema, 5),
    unvacuumedTables: () => work.unvacuumedTables(schema),
    vacuumAgain: () => work.vacuumAgain(schema, 't'),
    unloggedLimits: () => work.unloggedLimits(schema),
    logAgain: () => work.logAgain(schema, 't'),
  },
  'leases/leases.ts': {
    acquireLease: () =>
      leases.acquireLease(schema, { ...held, ttlMs: 1, delayMs: 2, note: undefined }),
    renewLease: () => leases.renewLease(schema, held),
    releaseLease: () => leases.releaseLease(schema, held),
    guardLease: () => leases.guardLease(schema, held),
    readLease: () => leases.readLease(schema, held),
    forgetLeases: () => leases.forgetLeases(schema, 1, 2),
  },
  'ledger/call.ts': { ledgerCall: () => ledgerCall.ledgerCall(schema, 'f', ['uuid[]'], ['{}']) },
  'ledger/follow.ts': {
    startFollowing: () => follow.startFollowing(schema, 'n', 'b', true),
    unreadAccounts: () => follow.unreadAccounts(schema, follower, 5),
    followAccounts: () => follow.followAccounts(schema, follower, [[1, 'a']], 5),
    noteFollowed: () => follow.noteFollowed(schema, 'n', 5),
    stopFollowing: () => follow.stopFollowing(schema, 'n'),
    readFollowers: () => follow.readFollowers(schema),
  },
  'ledger/reads.ts': {
    readBalance: () => reads.readBalance(schema, names, 'm'),
    dueBalance: () => reads.dueBalance(schema, names, 'b', 'f'),
    readHistory: () => reads.readHistory(schema, names, { window: '1', sequence: '2' }, 5),
    readHolds: () => reads.readHolds(schema, names, 5),
    earlierIds: () =>
      reads.earlierIds(schema, {
        owner: { bucket: 1, base: 'b' },
        bases: ['b'],
        ids: ['i'],
        buckets: [1],
      }),
    peekAt: () =>
      reads.peekAt(schema, {
        bucket: 1,
        base: 'b',
        amount: '1',
        allowance: '2',
        rolling: true,
        unit: 'day',
        zone: 'UTC',
        everyUs: '5',
      }),
    declareBook: () => reads.declareBook(schema, 'b', '{}', [1]),
    readBooks: () => reads.readBooks(schema),
    redeclareBook: () => reads.redeclareBook(schema, 'b', '{}'),
    listKeys: () => reads.listKeys(schema, 'b', 'k', 5),
    readUsage: () =>
      reads.readUsage(schema, {
        book: 'b',
        from: 'f',
        to: 't',
        unit: 'day',
        zone: 'UTC',
        by: [],
        key: 'k',
        scope: 's',
        most: 5,
      }),
    currentWindow: () => reads.currentWindow(schema, 1, 'day', 'UTC'),
  },
  'ledger/upkeep.ts': {
    sweepDue: () => upkeep.sweepDue(schema, 5),
    setLimitOf: () => upkeep.setLimitOf(schema, 1, []),
    auditSteps: () => upkeep.auditSteps(schema),
    auditRange: () => upkeep.auditRange(schema, 1, 2, 3),
    forgetGrants: () => upkeep.forgetGrants(schema, 1, 2),
    emptyDefaultPartition: () => upkeep.emptyDefaultPartition(schema),
    extendPartitions: () => upkeep.extendPartitions(schema, 5),
    upkeepPlan: () => upkeep.upkeepPlan(schema, 1, 2),
    forgetOperations: () => upkeep.forgetOperations(schema, 'm', 1, 2),
    forgetWindows: () => upkeep.forgetWindows(schema, 'm', 1, 2),
    dropMonth: () => upkeep.dropMonth(schema, '2026-01-01'),
  },
  'ledger/ledger.ts': {
    ledgerCalls: () =>
      (['alone', 'joined', 'marked'] as const).flatMap((where) => {
        const calls = ledger.ledgerCalls(schema, where)
        return [
          ...[false, true].flatMap((isMixed) => [
            calls.plain({ values: [], isMixed }, []),
            calls.many({ values: [], isMixed }, []),
          ]),
          calls.one([], []),
          calls.fresh([]),
          calls.debit([], []),
        ]
      }),
    lockedLines: () =>
      [false, true].map((isMixed) => ledger.lockedLines(schema, { values: [], isMixed }, [1])),
    accountLockers: () =>
      [false, true].map((isMixed) => ledger.accountLockers(schema, { values: [], isMixed }, [1])),
  },
  'rate-limit/rate-limit.ts': {
    takingStatement: () =>
      (['alone', 'joined', 'marked'] as const).flatMap((where) =>
        [undefined, { unit: 'day', zone: 'UTC' }].map((window) =>
          rateLimit.takingStatement(
            schema,
            window,
            where,
          )([{ id: limitKey, amount: 1, most: 2, unit: 1 }]),
        ),
      ),
    lookAtLimit: () => rateLimit.lookAtLimit(schema, limitKey, undefined),
    resetLimit: () => rateLimit.resetLimit(schema, limitKey),
    forgetLimits: () => rateLimit.forgetLimits(schema, [1, 'k'], 2),
    lockedLimits: () => rateLimit.lockedLimits(schema, [limitKey]),
  },
  'observe/coordination.ts': {
    readLeases: () => coordination.readLeases(schema, 5),
    readSchedules: () => coordination.readSchedules(schema, 5),
  },
  'observe/interventions.ts': {
    endWork: () =>
      (['statement', 'session'] as const).map((end) =>
        interventions.endWork(end, { pid: 1, startedAt: 's', transactionStartedAt: null }),
      ),
    whoseSession: () => interventions.whoseSession(1),
    findSchedule: () => interventions.findSchedule(schema, 1, 'n'),
  },
  'observe/ledger.ts': {
    readBooks: () => observedLedger.readBooks(schema),
    readAccount: () => observedLedger.readAccount(schema, names),
    readOpenHolds: () => observedLedger.readOpenHolds(schema, 5),
  },
  'observe/locks.ts': { lookAtLocks: () => observedLocks.lookAtLocks(1) },
  'observe/notes.ts': {
    noteLocks: () => notes.noteLocks(schema, '[]', '[]'),
    namesOf: () => notes.namesOf(schema, ['1/2']),
    lookForNames: () => notes.lookForNames(schema),
    latestNames: () => notes.latestNames(schema, 'n', 5),
    latestMinutes: () => notes.latestMinutes(schema, 'n', 5),
    hashTexts: () => notes.hashTexts(['a']),
    heldLeases: () => notes.heldLeases(schema, 5),
  },
  'observe/settings.ts': { lookOnly: () => [look.lookOnly(5), look.lookOnly(5, true)] },
  'observe/transactions.ts': { readTransactions: () => transactions.readTransactions(5) },
  'once/once.ts': {
    beginOnce: () => [
      once.beginOnce(schema, onceNames, limit),
      once.beginOnce(schema, onceNames, undefined),
    ],
    storeOnce: () => once.storeOnce(schema, onceNames, '{}', 5),
    forgetOnce: () => once.forgetOnce(schema, 5),
  },
  'sql/own-operators.ts': { readOperators: () => own.readOperators({ table: callersTable }) },
  'schema/role-texts.ts': {
    alterRole: () => roles.alterRole('r', 'NOCREATEROLE'),
    joinRole: () => roles.joinRole('p', 'm'),
    leaveRole: () => roles.leaveRole('p', 'm'),
  },
  'schedule/schedule.ts': {
    lookAtSchedule: () => schedule.lookAtSchedule(schema, 'n', true),
    claimTick: () =>
      schedule.claimTick(schema, {
        ...tick,
        token: 't',
        holder: 'h',
        leaseMs: 5,
        overlap: 1,
        retake: true,
        most: 1,
        missed: 0,
        run: true,
        afterUs: 1,
      }),
    renewTick: () => schedule.renewTick(schema, tick, 't', 5),
    guardTick: () => schedule.guardTick(schema, tick, 't'),
    finishTick: () => schedule.finishTick(schema, tick, 't', 'e', 5, 6),
    pauseSchedule: () => schedule.pauseSchedule(schema, 'n', true, 5),
    noteSchedule: () => schedule.noteSchedule(schema, 'n', '{}'),
    requestTick: () => schedule.requestTick(schema, 'n', 'h'),
    readTicks: () => schedule.readTicks(schema, 'n', 5),
  },
  'schema/catalogue.ts': {
    fixDescriptions: () => catalogue.fixDescriptions(schema),
    readObjects: () => catalogue.readObjects(schema),
  },
  'schema/months.ts': { countMonthsAhead: () => months.countMonthsAhead(schema) },
  'schema/online.ts': {
    lookForIndex: () => online.lookForIndex(schema, 'i'),
    dropBroken: () => online.dropBroken(schema, 'i'),
    countSharedKeys: () => online.countSharedKeys(schema),
  },
  'schema/owners.ts': {
    readMisplaced: () => owners.readMisplaced(schema),
    lookForRole: () => owners.lookForRole(schema, 'r'),
    giveToOwner: () => owners.giveToOwner(schema),
  },
  'schema/privileges.ts': {
    grantTexts: () => privileges.grantTexts(schema, 'r', objects),
    readPrivileges: () =>
      privileges.readPrivileges(schema, 'r', { functions: ['f'], views: [], tables: ['t'] }),
    readMissingPrivileges: () => privileges.readMissingPrivileges(schema, 'r', objects),
    noteObjects: () => privileges.noteObjects(schema),
    closeToOthers: () => privileges.closeToOthers(schema),
    takeExtra: () => privileges.takeExtra(schema, 'r', objects),
  },
  'schema/records.ts': {
    lockInstallers: () => records.lockInstallers(1n),
    setForFiles: () => records.setForFiles(schema),
    lookForSchema: () => records.lookForSchema(schema),
    readRecords: () => records.readRecords(schema),
    prepareSchema: () => records.prepareSchema(schema),
    recordMigration: () => records.recordMigration(schema, file),
    recordRepeatable: () => records.recordRepeatable(schema, file),
    forgetFile: () => records.forgetFile(schema, 'n'),
    assertMigrations: () => records.assertMigrations(schema, [file]),
  },
  'tx/session.ts': {
    keepWatch: () => session.keepWatch(5),
    listenText: () => session.listenText('c'),
    preparedAs: () => session.preparedAs('n'),
  },
  'shards/moves.ts': {
    moveStep: () => moves.moveStep(schema, 'publish_move', 'i'),
    moveShape: () => moves.moveShape(schema, ['t']),
    moveRights: () => moves.moveRights(schema, ['slot'], ['t'], 'c'),
    clearStrays: () => moves.clearStrays(schema, ['t'], 5),
    adoptBuckets: () => moves.adoptBuckets(schema, [1], [1]),
    openMove: () => moves.openMove(schema, facts),
    refuseMove: () => moves.refuseMove(schema, facts),
    subscribeMove: () => moves.subscribeMove(schema, 'i', 'm', 'c'),
    expectRows: () => moves.expectRows(schema, 'i', '{}'),
    refuseHiddenRows: () => moves.refuseHiddenRows(schema, ['t'], 'r'),
    takeMove: () => moves.takeMove(schema, 'i', [1]),
    closeSlot: () => moves.closeSlot(schema, 'i', null),
    clearMove: () => moves.clearMove(schema, 'i', 5),
    listMoves: () => moves.listMoves(schema, 5),
    limitStatements: () => moves.limitStatements(5),
  },
  'shards/shards.ts': {
    checkedStatement: () => [
      shards.checkedStatement(schema, transaction.whichTransaction, [1]),
      shards.checkedStatement(schema, session.whichBackend, [1]),
    ],
    askHere: () => shards.askHere(schema, [1]),
    readShards: () => shards.readShards(schema, [1]),
    confirmShards: () => shards.confirmShards(schema, [[1, 's', 1]], true),
    occupiedBuckets: () => shards.occupiedBuckets(schema),
    initShardsOf: () => shards.initShardsOf(schema, 'c', 's', ['a'], ['a']),
  },
  'tx/transaction.ts': {
    beginText: () => [transaction.beginText(undefined), transaction.beginText('serializable')],
    limitTransaction: () => transaction.limitTransaction(5),
    cancelTransaction: () => transaction.cancelTransaction(1, 'b'),
  },
  'claims/work.ts': { enqueueWork: () => enqueue.enqueueWork(schema, '[]', 'c', []) },
}
