/** The program of one process of callers of the ledger; see ledger-attack.ts. */
import { barrier } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import type { Credits } from '../../packages/holdfast/src/credits/index.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import { kinds } from '../../packages/holdfast/src/ledger/operation.ts'
import type { Verdict } from '../../packages/holdfast/src/ledger/verdict.ts'
import type { Quota } from '../../packages/holdfast/src/quota/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { joinTeam } from '../harness/team-member.ts'
import type { AttackOrder, AttackReport, AttackSetup } from './ledger-attack.ts'
import { type Choice, choose, holdsCredits, type Route, type Step } from './ledger-choices.ts'
import { type Sighting, testify } from './ledger-witness.ts'

/** Small against the amounts, so that the bound is always near. */
const limit = 20
const book = 'stress'
const connections = 8

interface Way {
  readonly hf: Holdfast<PoolClient>
  readonly quota: Quota<PoolClient, number>
  readonly credits: Credits<PoolClient, number>
}

/** Something done before that a later step can go on from. */
interface Earlier {
  readonly id: string
  readonly key: string
  readonly holdId: string | undefined
}

class ThoughtBetter extends Error {}

interface Opened {
  readonly url: string
  readonly schema: string
  readonly pool: Pool
  readonly combined: Way
  readonly direct: Way
}

async function open(url: string, schema: string): Promise<Opened> {
  const pool = await openPool(url, connections)
  const driver = fromPg(pool)
  const way = (coalesce: boolean): Way => {
    const hf = createHoldfast(driver, { ledger: { schema, coalesce } })
    // With these no movement at all may cross the bound.
    const policy = { overrun: 'available', late: 'refuse' } as const
    return {
      hf,
      quota: hf.quota({ name: book, limit, per: 'lifetime', ...policy }),
      credits: hf.credits({ name: 'stress-credits', ...policy }),
    }
  }
  return { url, schema, pool, combined: way(true), direct: way(false) }
}

joinTeam<AttackSetup, AttackOrder, AttackReport>(async ({ seed, callers }, member) => {
  let opened: Opened | undefined

  return {
    async ready(order) {
      if (opened?.url !== order.url || opened.schema !== order.schema) {
        await opened?.pool.end()
        opened = await open(order.url, order.schema)
      }
      const ways = opened
      const sightings: Sighting[] = []
      const troubles: string[] = []

      /** One call, its verdict, and a line for the witness. */
      const send = async (
        id: string,
        key: string,
        step: Step,
        earlier: Earlier | undefined,
        route: Route,
        rollback: boolean,
      ): Promise<Verdict<number> | undefined> => {
        const way = route === 'combined' ? ways.combined : ways.direct
        let verdict: Verdict<number> | undefined
        let undone = false
        try {
          if (route !== 'joined') verdict = await call(way, undefined, id, key, step, earlier)
          else {
            await way.hf.transaction(async (tx) => {
              verdict = await call(way, tx, id, key, step, earlier)
              if (rollback) throw new ThoughtBetter()
            })
          }
        } catch (error) {
          if (!(error instanceof ThoughtBetter)) {
            troubles.push(`${step.kind} failed: ${textOf(error)}`)
            return undefined
          }
          undone = true
        }
        if (verdict === undefined) return undefined
        sightings.push({
          id: earlier?.holdId?.slice(4) ?? id,
          kind: step.kind,
          key,
          amount: 'amount' in step ? step.amount : null,
          outcome: outcomeOf(verdict, undone),
          reason: verdict.ok ? null : verdict.reason,
          seq: verdict.sequence,
          credited: verdict.credited,
          debited: verdict.debited,
          held: verdict.held,
        })
        return undone ? undefined : verdict
      }

      const caller = async (index: number): Promise<void> => {
        const holds: Earlier[] = []
        const spent: Earlier[] = []
        const perform = async (id: string, choice: Choice): Promise<void> => {
          const ending = ['settle', 'release', 'extend'].includes(choice.step.kind)
          const earlier = ending
            ? holds.at(-1)
            : choice.step.kind === 'refund'
              ? spent.at(-1)
              : undefined
          // Nothing to go on from yet: begin something.
          const step: Step =
            (ending || choice.step.kind === 'refund') && earlier === undefined
              ? { kind: 'hold', amount: 3, ttlMs: 600_000 }
              : choice.step
          const key = earlier?.key ?? keyOf(choice.account)
          const once = (route: Route, rollback: boolean): ReturnType<typeof send> =>
            send(id, key, step, earlier, route, rollback)
          const first = once(choice.route, choice.rollback)
          const second = choice.again === 'meanwhile' ? once('direct', false) : undefined
          let verdict = await first
          verdict = (await second) ?? verdict
          if (choice.again === 'after') verdict = (await once('combined', false)) ?? verdict
          if (verdict?.ok !== true) return
          const done = { id, key, holdId: undefined }
          if (step.kind === 'hold') holds.push({ ...done, holdId: verdict.holdId })
          else if (step.kind === 'consume') spent.push(done)
          else if (step.kind === 'settle' || step.kind === 'release') holds.pop()
        }
        // First what all processes send under one id, then what each does with it.
        const common = choose(seed, numberOf(order.round, index, 0, 0), order.accounts)
        await together()
        await perform(`${order.round}-${index}-all`, { ...common, step: startOf(common.step) })
        const end: Step =
          member % 2 === 0 ? { kind: 'settle', amount: common.account % 9 } : { kind: 'release' }
        if (holds.length > 0) await perform('', { ...common, step: end })
        for (let at = 1; at <= order.steps; at += 1) {
          const shared = at % 5 === 0
          const number = numberOf(order.round, index, at, shared ? 0 : member + 1)
          const choice = choose(seed, number, order.accounts)
          await perform(
            `${order.round}-${index}-${at}-${shared ? 'all' : member}`,
            shared ? { ...choice, step: startOf(choice.step) } : choice,
          )
        }
      }

      const together = barrier(callers)
      return async () => {
        const everyone = Array.from({ length: callers }, (_, index) => caller(index))
        // What is due is swept up while everyone touches it.
        await Promise.all([...everyone, ways.direct.hf.ledger.sweep()])
        await testify(ways.pool, order.schema, sightings)
        return { calls: sightings.length, troubles }
      }
    },
    close: async () => await opened?.pool.end(),
  }
})

/** One operation, by the face that its account belongs to. */
async function call(
  { hf, quota, credits }: Way,
  tx: PoolClient | undefined,
  operationId: string,
  key: string,
  step: Step,
  earlier: Earlier | undefined,
): Promise<Verdict<number>> {
  const credit = key.startsWith(creditsPrefix)
  const face = credit ? credits : quota
  const options = { operationId }
  const holdId = earlier?.holdId ?? ''
  switch (step.kind) {
    case 'consume': {
      const use = credit ? credits.spend : quota.consume
      return await (tx === undefined
        ? use(key, step.amount, options)
        : use(tx, key, step.amount, options))
    }
    case 'hold': {
      const holding = { ...options, ttl: step.ttlMs }
      return await (tx === undefined
        ? face.hold(key, step.amount, holding)
        : face.hold(tx, key, step.amount, holding))
    }
    case 'refund': {
      const refunding = { ...options, of: earlier?.id ?? '' }
      return await (tx === undefined
        ? face.refund(key, step.amount, refunding)
        : face.refund(tx, key, step.amount, refunding))
    }
    case 'settle':
      return await (tx === undefined
        ? face.settle(holdId, step.amount)
        : face.settle(tx, holdId, step.amount))
    case 'release':
      return await (tx === undefined ? face.release(holdId) : face.release(tx, holdId))
    case 'extend':
      return await (tx === undefined
        ? face.extend(holdId, '10 min')
        : face.extend(tx, holdId, '10 min'))
    case 'credit': {
      if (credit) {
        const terms = { ...options, priority: step.amount % 3, expiresIn: step.ttlMs }
        return await (tx === undefined
          ? credits.grant(key, step.amount, terms)
          : credits.grant(tx, key, step.amount, terms))
      }
      const lines = [{ line: { kind: kinds.credit, book, key, amount: String(step.amount) } }]
      return await (tx === undefined
        ? hf.ledger.apply(lines, options)
        : hf.ledger.apply(tx, lines, options))
    }
  }
}

const creditsPrefix = 'credits-'

function keyOf(account: number): string {
  return holdsCredits(account) ? `${creditsPrefix}${account}` : `account-${account}`
}

/** What every process can begin with, whatever it did before. */
function startOf(step: Step): Step {
  if (step.kind === 'consume' || step.kind === 'credit') return step
  return { kind: 'hold', amount: 'amount' in step ? step.amount : 4, ttlMs: 600_000 }
}

function outcomeOf(verdict: Verdict<number>, undone: boolean): Sighting['outcome'] {
  if (!verdict.ok) return 'refused'
  if (undone && !verdict.replayed) return 'rolled back'
  return verdict.replayed ? 'replayed' : 'accepted'
}

/** A number for each place in the run, so that the choices do not depend on who comes first. */
function numberOf(round: number, caller: number, step: number, member: number): number {
  return ((round * 128 + caller) * 64 + step) * 8 + member
}

function textOf(error: unknown): string {
  const { cause } = error as Error
  return `${String(error)}${cause instanceof Error ? ` (${cause.message})` : ''}`
}
