/** R6: a handler whose transaction is run again after a conflict has its heartbeats, deadline and signal again. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimsLostEvent } from '../../../src/entries/claims.ts'
import { claimsFixture, expire } from '../../support/claims-fixture.ts'
import { eventsOn } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()
const lease = 1_200

/** The first COMMIT that wrote into the table fails with a conflict; a sequence is not rolled back. */
async function conflictOnce(name: string): Promise<void> {
  await fixture.observer.query(`
    CREATE TABLE effect_${name} (task bigint);
    CREATE SEQUENCE commits_${name};
    CREATE FUNCTION conflict_${name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('commits_${name}') = 1 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF;
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER once AFTER INSERT ON effect_${name} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION conflict_${name}()`)
}

const leaseEnd = async (name: string): Promise<number> => {
  const { rows } = await fixture.observer.query<{ until: Date | null }>(`SELECT until FROM ${name}`)
  return rows[0]?.until?.getTime() ?? 0
}

/** Waits until heartbeats have made the lease longer three times. */
async function threeBeats(name: string): Promise<void> {
  let last = await leaseEnd(name)
  for (let beat = 0; beat < 3; beat += 1) {
    last = await waitUntil('the lease is longer', async () => {
      const now = await leaseEnd(name)
      return now > last ? now : undefined
    })
  }
}

describe('R6: the second attempt of a transaction', () => {
  test('of transactionHandler keeps its claim, and commits once', async () => {
    const lost = eventsOn<ClaimsLostEvent>('holdfast:claims.lost')
    const { name, claims } = await fixture.table(1, { lease })
    await conflictOnce(name)
    const [again, goOn] = [deferred<void>(), deferred<void>()]
    let runs = 0
    const worker = await claims.run({
      recoverEvery: false,
      transactionHandler: async (tx, { id }) => {
        runs += 1
        await tx.query(`INSERT INTO effect_${name} VALUES ($1)`, [id])
        if (runs < 2) return
        again.resolve()
        await goOn.promise
      },
    })
    onTestFinished(async () => void (await worker.stop({ within: 1 })))
    await again.promise
    await threeBeats(name)
    expect((await claims.recover()).freed).toBe(0)
    goOn.resolve()
    await waitUntil('it ended', () => worker.active === 0 || undefined)
    const { rows } = await fixture.observer.query(`SELECT task FROM effect_${name}`)
    expect([rows.length, runs, lost]).toEqual([1, 2, []])
    expect((await fixture.rows(name))[0]?.state).toBe('ok')
  })

  test('of transactionHandler is told when the claim is lost', async () => {
    const { name, claims } = await fixture.table(1, { lease })
    await conflictOnce(name)
    const again = deferred<AbortSignal>()
    let runs = 0
    const worker = await claims.run({
      recoverEvery: false,
      transactionHandler: async (tx, { id }, { signal }) => {
        runs += 1
        await tx.query(`INSERT INTO effect_${name} VALUES ($1)`, [id])
        if (runs < 2) return
        again.resolve(signal)
        await new Promise<void>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      },
    })
    onTestFinished(async () => void (await worker.stop({ within: 1 })))
    const signal = await again.promise
    await expire(fixture.observer, name)
    await claims.recover()
    await waitUntil('it is told', () => signal.aborted || undefined)
    expect(signal.reason).toMatchObject({ code: 'CLAIM_LOST' })
  })

  test('of a handler that completes in a transaction of its own keeps its claim', async () => {
    const { name, claims } = await fixture.table(1, { lease })
    await conflictOnce(name)
    const [again, goOn] = [deferred<void>(), deferred<void>()]
    let runs = 0
    const worker = await claims.run({
      recoverEvery: false,
      handler: async ({ id }, { claim }) => {
        await fixture.hf.transaction(async (tx) => {
          runs += 1
          await tx.query(`INSERT INTO effect_${name} VALUES ($1)`, [id])
          if (runs === 2) {
            again.resolve()
            await goOn.promise
          }
          await claims.complete(tx, claim)
        })
      },
    })
    onTestFinished(async () => void (await worker.stop({ within: 1 })))
    await again.promise
    await threeBeats(name)
    goOn.resolve()
    await waitUntil('it ended', () => worker.active === 0 || undefined)
    expect((await fixture.rows(name))[0]?.state).toBe('ok')
  })
})
