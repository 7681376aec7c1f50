import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Answer } from '../crew/recorder.ts'
import type { Claim, Claims } from '../../packages/holdfast/src/entries/claims.ts'
import { isHoldfastError } from '../../packages/holdfast/src/index.ts'
import { type TaskRow, taskOptions } from './claims-table.ts'

const batch = 3
/** This one leaves it to a worker of the library. */
const workerIndex = 2

/** Adds rows, claims some, and completes them together with their effect. */
export const claimsActor: Actor = {
  workload: 'claims',
  copies: 1,
  async act<Tx>(stage: Stage<Tx>) {
    const { app, recorder, stopping } = stage
    const tasks = app.hf.claims<TaskRow>(taskOptions)
    await using _worker = stage.index === workerIndex ? runWorker(stage, tasks) : undefined
    for (let round = 0; !stopping.aborted; round += 1) {
      await enqueue(stage)
      if (stage.index !== workerIndex) {
        const { answer } = await recorder.attempt({ operation: 'claim', key: 'task' }, async () => {
          const claims = await tasks.claim(batch)
          const value = claims.map(({ row, token }) => `${row.id}@${token}`)
          return { outcome: 'ok' as const, value, claims }
        })
        await stage.pace()
        for (const claim of answer?.claims ?? []) await finish(stage, tasks, claim)
        if (round % 10 === 0) {
          await recorder.attempt({ operation: 'recover', key: 'task' }, async () => {
            const { freed } = await tasks.recover()
            return { outcome: 'ok', value: freed }
          })
        }
      }
      await stage.pace()
    }
  },
}

async function enqueue<Tx>({ app, recorder, process }: Stage<Tx>): Promise<void> {
  const id = newId({ process })
  await recorder.persist({ operation: 'enqueue', key: id, id }, () =>
    app.hf.transaction(
      async (tx) => {
        await app.query(tx, 'INSERT INTO task (id) VALUES ($1::text) ON CONFLICT DO NOTHING', [id])
        return { outcome: 'ok' }
      },
      // If it was there already, nothing is written that would wait for the standby.
      { durable: true },
    ),
  )
}

async function finish<Tx>(
  { app, recorder, random }: Stage<Tx>,
  tasks: Claims<Tx, TaskRow>,
  claim: Claim<TaskRow>,
): Promise<void> {
  const { row, token } = claim
  const id = `${row.id}@${token}`
  const ended = { key: row.id, id }
  if (random.integer(0, 9) === 0) {
    await recorder.persist({ ...ended, operation: 'release' }, async () => {
      const { lost } = await tasks.release(claim)
      return { outcome: lost.length === 0 ? 'ok' : 'refused' }
    })
    return
  }
  // Once more after an unknown end would find the claim gone: it was completed, or it was not.
  await recorder.attempt({ ...ended, operation: 'complete' }, async (): Promise<Answer> => {
    try {
      return await app.hf.transaction(async (tx) => {
        await effect(app, tx, row.id, token)
        await tasks.complete(tx, claim)
        return { outcome: 'ok' }
      })
    } catch (error) {
      if (isHoldfastError(error, 'CLAIM_LOST')) return { outcome: 'refused' }
      throw error
    }
  })
}

async function effect<Tx>(
  app: Stage<Tx>['app'],
  tx: Tx,
  task: string,
  token: string,
): Promise<void> {
  const insert = 'INSERT INTO task_effect (task, token) VALUES ($1::text, $2::uuid)'
  await app.query(tx, insert, [task, token])
}

/** The library's loop, started as soon as the database lets it. */
function runWorker<Tx>(
  { app, stopping, pace }: Stage<Tx>,
  tasks: Claims<Tx, TaskRow>,
): AsyncDisposable {
  const started = (async () => {
    while (!stopping.aborted) {
      try {
        return await tasks.run({
          concurrency: 2,
          recoverEvery: '500 ms',
          poll: { min: '20 ms', max: '100 ms' },
          transactionHandler: async (tx, row, { claim }) => {
            await effect(app, tx, row.id, claim.token)
          },
        })
      } catch {
        await pace()
      }
    }
    return undefined
  })()
  return {
    async [Symbol.asyncDispose]() {
      await (await started)?.stop({ within: '3 s', leaveAfter: '1 s' })
    },
  }
}
