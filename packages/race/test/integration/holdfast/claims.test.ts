import { describe, expect, test } from 'vitest'
import type { Claim, Claims } from '../../../../holdfast/src/entries/claims.ts'
import type { Flow, FlowContext, InvariantContext } from '../../../src/run/options.ts'
import { appStage } from './app-stage.ts'
import { patienceMs } from './expectations.ts'
import type { OwnHoldfast, Tx } from './ledger-stage.ts'
import { driverWithout, holdfastOn, ownDriver } from './room-stage.ts'

/** Claims by their verbs, one call at a time: a worker would decide by the clock when to call. */
const tables = `
  CREATE TABLE task (
    id int PRIMARY KEY, status text NOT NULL, claim_token uuid, lease_until timestamptz, attempts int NOT NULL);
  CREATE INDEX ON task (id) WHERE status = 'pending';
  CREATE INDEX ON task (lease_until) WHERE status = 'claimed';
  CREATE TABLE effect (task int NOT NULL)`
const compared = {
  tables: ['task', 'effect'],
  ignore: ['task.claim_token', 'task.lease_until'],
}
const oldToken = '00000000-0000-4000-8000-000000000001'
const waiting = `TRUNCATE effect; TRUNCATE task; INSERT INTO task VALUES (1, 'pending', NULL, NULL, 0), (2, 'pending', NULL, NULL, 0)`
/** Claimed long ago by somebody who was thought to be dead. */
const overdue = `TRUNCATE effect; TRUNCATE task; INSERT INTO task VALUES (1, 'claimed', '${oldToken}', now() - interval '1 hour', 1)`

interface TaskRow {
  readonly id: number
}

function claimsOf(hf: OwnHoldfast): Claims<Tx, TaskRow> {
  return hf.claims<TaskRow>({ table: 'task', columns: { attempts: 'attempts' }, lease: '1 h' })
}

const own = (cx: FlowContext): OwnHoldfast => holdfastOn(ownDriver(cx))

/** The effect and the end of the row together. */
async function finish(hf: OwnHoldfast, claim: Claim<TaskRow>): Promise<string> {
  return await hf.transaction(async (tx) => {
    await tx.query('INSERT INTO effect VALUES ($1)', [claim.key[0]])
    await claimsOf(hf).complete(tx, claim)
    return 'done'
  })
}

const oldClaim: Claim<TaskRow> = {
  row: { id: 1 },
  key: ['1'],
  token: oldToken,
  attempt: 1,
  deadline: Number.POSITIVE_INFINITY,
}

describe('claim and claim', () => {
  const explored = appStage(tables, waiting)

  const claiming =
    (limit: number, connect = own): Flow =>
    async (cx) => {
      const claims = await claimsOf(connect(cx)).claim(limit)
      return claims.map(({ row }) => row.id)
    }

  /** Claims one and finishes it. */
  const working: Flow = async (cx) => {
    const hf = own(cx)
    const [claim] = await claimsOf(hf).claim()
    return claim === undefined ? 'nothing' : `${claim.row.id} ${await finish(hf, claim)}`
  }

  test('one row each', async () => {
    const report = await explored({ a: claiming(1), b: claiming(1) }, { oracle: compared })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
  })

  test(
    'three of them, and two rows',
    async () => {
      const flows = { a: claiming(1), b: claiming(1), c: claiming(1) }
      const report = await explored(flows, { oracle: compared, symmetric: true })
      expect(report).toBeExhausted({ classes: 7, schedules: 13 })
    },
    patienceMs,
  )

  test('both rows, and one', async () => {
    const report = await explored({ a: claiming(2), b: claiming(1) }, { oracle: compared })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
  })

  test(
    'worked on to the end: every effect once',
    async () => {
      const report = await explored({ a: working, b: working }, { oracle: compared })
      expect(report).toBeExhausted({ classes: 34, schedules: 36 })
    },
    patienceMs,
  )

  test('control: rows that are not locked are claimed twice', async () => {
    const unlocked = (cx: FlowContext): OwnHoldfast =>
      holdfastOn(driverWithout(cx, / FOR NO KEY UPDATE OF "#row" SKIP LOCKED/, ''))
    const flows = { a: claiming(1, unlocked), b: claiming(1, unlocked) }
    expect(await explored(flows, { oracle: compared })).toBeCaught(/no serial order/)
  })
})

describe('complete and sweep', () => {
  const explored = appStage(tables, overdue)

  const sweeping: Flow = async (cx) => (await claimsOf(own(cx)).recover()).freed
  const completing: Flow = async (cx) =>
    (await claimsOf(own(cx)).complete(oldClaim)).lost.length === 0 ? 'kept' : 'lost'
  /** Of a row that is locked right now nothing is known: its old deadline stays. */
  const beating: Flow = async (cx) => {
    const claim = { ...oldClaim, deadline: 0 }
    await claimsOf(own(cx)).heartbeat(claim)
    return claim.deadline > 0 ? 'longer' : 'as it was'
  }

  /** Somebody who thinks the other dead: takes its row over and works on it, if it is free right now. */
  const takingOver: Flow = async (cx) => {
    const hf = own(cx)
    await claimsOf(hf).recover()
    const [claim] = await claimsOf(hf).claim()
    if (claim !== undefined) await finish(hf, claim)
  }
  /** Done, and its effect once; or waiting for somebody who looks again, and no effect. */
  const onceIfDone = async ({ query }: InvariantContext): Promise<void> => {
    const [row] = await query(
      'SELECT status, (SELECT count(*)::int FROM effect) AS effects FROM task',
    )
    const { status, effects } = row as { status: string; effects: number }
    if (effects !== (status === 'done' ? 1 : 0)) throw new Error(`${status}, ${effects} effects`)
  }

  test('by itself', async () => {
    const report = await explored({ a: completing, b: sweeping }, { oracle: compared })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
  })

  test(
    'two sweeps, and who completes',
    async () => {
      const flows = { a: completing, b: sweeping, c: sweeping }
      const report = await explored(flows, { oracle: compared })
      expect(report).toBeExhausted({ classes: 38, schedules: 45 })
    },
    patienceMs,
  )

  test(
    'with its effect, against somebody who takes over: once',
    async () => {
      const flows = { dead: (cx: FlowContext) => finish(own(cx), oldClaim), alive: takingOver }
      const report = await explored(flows, { oracle: false, invariant: onceIfDone })
      expect(report).toBeExhausted({ classes: 14, schedules: 16 })
    },
    patienceMs,
  )

  test('a heartbeat, and a sweep', async () => {
    const report = await explored({ a: beating, b: sweeping }, { oracle: compared })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
  })

  test('control: completed by its id and status, as most do, the effect happens twice', async () => {
    const unfenced: Flow = (cx) =>
      own(cx).transaction(async (tx) => {
        const { rowCount } = await tx.query(
          `UPDATE task SET status = 'done' WHERE id = 1 AND status = 'claimed'`,
        )
        if (rowCount === 1) await tx.query('INSERT INTO effect VALUES (1)')
        return 'done'
      })
    const flows = { dead: unfenced, alive: takingOver }
    const report = await explored(flows, { oracle: false, invariant: onceIfDone })
    expect(report).toBeCaught(/2 effects/)
  })
})
