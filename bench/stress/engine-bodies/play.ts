import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { isHoldfastError } from '../../../packages/holdfast/src/core/errors.ts'
import type { ClaimsTroubleEvent } from '../../../packages/holdfast/src/core/events/event-map.ts'
import { channels } from '../../../packages/holdfast/src/core/events.ts'
import { lockKey } from '../../../packages/holdfast/src/core/locks/lock-key.ts'
import { Play } from '../bodies-savepoints.ts'
import type { Lane } from './lane.ts'
import { type Action, type Body, type Call, flat, type Late } from './model.ts'
import type { Attempt, RunRecord, Told, Write } from './record.ts'

/** A caller that has heard nothing after this has been left alone for ever. */
const answerWithinMs = 15_000
/** Statements that nobody waited for get so long to be answered after that. */
const settleWithinMs = 3_000

const doc = { table: 'doc' } as const

/** Runs a body on its lane, waits until all is quiet, and writes down what was told and what is there. */
export async function runBody(lane: Lane, body: Body, id: string): Promise<RunRecord> {
  const run = new BodyRun(lane, body, id)
  await lane.prepare(id)
  await run.call()
  const leftovers = await lane.leftovers()
  const present = await lane.seen([id, `root ${id}`])
  const sets = flat(body.actions).some(changesSession)
  const changedSettings = sets || leftovers !== '' ? undefined : await lane.changedSettings()
  const { attempts, told, unanswered } = run
  if (sets || leftovers !== '' || changedSettings !== '' || told.kind === 'never' || unanswered > 0)
    await lane.reopen()
  return { body, attempts, told, unanswered, present, leftovers, changedSettings }
}

/** Changed by the body itself, for longer than its transaction. */
function changesSession(action: Action): boolean {
  return action.do === 'set' || (action.do === 'error' && action.what === 'full')
}

/** Reports of workers name no table; whose they are is known by where they were started. */
const heard = new AsyncLocalStorage<ClaimsTroubleEvent[]>()
channels.claimsTrouble.subscribe((event) => heard.getStore()?.push(event as ClaimsTroubleEvent))

class BodyError extends Error {
  override readonly name = 'BodyError'
}

class BodyRun {
  readonly attempts: Attempt[] = []
  told: Told = { kind: 'never' }
  unanswered = 0
  readonly #lane: Lane
  readonly #body: Body
  readonly #id: string
  readonly #own
  readonly #other
  readonly #pending = new Set<Promise<unknown>>()
  #handle: unknown
  #prepared: { readonly id: string; run(): Promise<unknown> } | undefined
  #serial = 0

  constructor(lane: Lane, body: Body, id: string) {
    this.#lane = lane
    this.#body = body
    this.#id = id
    this.#own = lockKey('bodies', id)
    this.#other = lockKey('bodies-other', id)
  }

  async call(): Promise<void> {
    const answer = this.#enter().then((told) => told, rejected)
    this.told = await Promise.race([
      answer,
      pause(answerWithinMs, { kind: 'never' } as const, { ref: false }),
    ])
    await this.#settle()
    for (const late of this.#body.late) {
      if (late.when === 'outside' && this.#handle !== undefined) this.#use(late)
    }
    await turn()
    await this.#settle()
  }

  async #settle(): Promise<void> {
    const until = performance.now() + settleWithinMs
    while (this.#pending.size > 0) {
      const leftMs = until - performance.now()
      if (leftMs <= 0) break
      await Promise.race([
        Promise.allSettled(this.#pending),
        pause(leftMs, undefined, { ref: false }),
      ])
    }
    this.unanswered = this.#pending.size
  }

  /** Calls the library, and says what it said. */
  async #enter(): Promise<Told> {
    const { hf } = this.#lane
    const [id, run] = [this.#id, (tx: unknown) => this.#run(tx)]
    switch (this.#body.entry) {
      case 'guard':
        await hf.guard(this.#own, run)
        return resolved
      case 'tx.run':
        await hf.tx.run(run)
        return resolved
      case 'tx.run, repeatable read':
        await hf.tx.run(run, { isolation: 'repeatable read' })
        return resolved
      case 'rows.optimistic':
        await hf.rows.optimistic(run)
        return resolved
      case 'withVersionCheck':
        await hf.rows.withVersionCheck(doc, `${id}.0`, {
          work: async () => await Promise.resolve(),
          write: run,
        })
        return resolved
      case 'once': {
        const answer = await hf.once(`once-${id}`, run)
        return { kind: 'resolved', replayed: answer.replayed }
      }
      case 'transactionHandler':
        return await this.#work(run)
      case 'transactional tick': {
        const schedule = hf.schedule({
          name: id,
          every: '7 days',
          guarantee: 'transactional',
          attempts: 1,
          handler: run,
        })
        const tick = await schedule.runNow()
        if (tick.outcome === 'done') return resolved
        return tick.outcome === 'unknown'
          ? { kind: 'rejected', code: 'COMMIT_UNKNOWN', ended: undefined, text: 'unknown' }
          : rejected(tick.error ?? new Error(tick.outcome))
      }
    }
  }

  /** One row of a table, which a worker claims, works on and finishes in one transaction. */
  async #work(run: (tx: unknown) => Promise<string>): Promise<Told> {
    const { client, hf } = this.#lane
    await client.root(`INSERT INTO job (id, batch) VALUES ('${this.#id}', '${this.#id}')`)
    const claims = hf.claims({
      table: 'job',
      where: { batch: this.#id },
      columns: { attempts: 'attempts' },
      maxAttempts: 1,
    })
    const troubles: ClaimsTroubleEvent[] = []
    await heard.run(troubles, async () => {
      const worker = await claims.run({
        concurrency: 1,
        transactionHandler: run,
        recoverEvery: false,
        poll: { min: 2, max: 10 },
      })
      await worker.drain()
    })
    const failed = troubles.find(({ during }) => during === 'handler')
    return failed === undefined ? resolved : rejected(failed.error)
  }

  /** The generated body itself. */
  async #run(tx: unknown): Promise<string> {
    const attempt: Attempt = {
      number: this.attempts.length + 1,
      connection: 0,
      writes: [],
      endings: [],
      opaque: false,
      disturbed: false,
      lies: [],
    }
    this.attempts.push(attempt)
    this.#handle = tx
    attempt.connection = await this.#lane.connectionOf(tx)
    await this.#steps(tx, this.#body.actions, new Play(attempt))
    for (const late of this.#body.late) {
      if (late.what === 'insert prepared') await this.#prepare(tx, attempt, late)
      if (late.when === 'microtask') queueMicrotask(() => this.#use(late))
      if (late.when === 'immediate') setImmediate(() => this.#use(late))
    }
    return 'done'
  }

  async #steps(tx: unknown, actions: readonly Action[], play: Play<Attempt>): Promise<void> {
    const { attempt } = play
    for (const action of actions) {
      if (action.firstOnly === true && attempt.number > 1) continue
      try {
        await this.#act(tx, action, play)
      } catch (error) {
        attempt.disturbed = true
        if (action.swallow !== true) throw error
      } finally {
        await this.#look(action.do, attempt)
      }
    }
  }

  /** What others see, and may take. */
  async #look(after: string, attempt: Attempt): Promise<void> {
    const isGuard = this.#body.entry === 'guard'
    if (isGuard && attempt.freeAfter === undefined && (await this.#lane.isFree(this.#own)))
      attempt.freeAfter = after
    const own = new Set(attempt.writes.filter(({ by }) => by === 'body').map(({ id }) => id))
    if (own.size === 0 || attempt.seenAfter !== undefined) return
    const seen = await this.#lane.seen([this.#id])
    if ([...own].some((id) => seen.has(id))) attempt.seenAfter = after
  }

  async #act(tx: unknown, action: Action, play: Play<Attempt>): Promise<void> {
    const { attempt } = play
    const { client } = this.#lane
    const send = (text: string): Promise<unknown> => client[action.by ?? 'run'](tx, text)
    switch (action.do) {
      case 'read':
        await send('SELECT id FROM written LIMIT 1')
        return
      case 'insert':
        await this.#insert(attempt, 'body', send)
        return
      case 'savepoint':
        await client.run(tx, `SAVEPOINT ${action.name}`)
        play.savepoints.push({ name: action.name, at: attempt.writes.length })
        return
      case 'rollback to':
        await client.run(tx, `ROLLBACK TO SAVEPOINT ${action.name}`)
        play.rollBackTo(action.name)
        return
      case 'release':
        await client.run(tx, `RELEASE SAVEPOINT ${action.name}`)
        play.release(action.name)
        return
      case 'nested':
        await this.#nested(tx, action, play)
        return
      case 'control':
      case 'hidden':
        attempt.endings.push(action.text)
        await send(action.text)
        return
      case 'look-alike':
        attempt.opaque ||= /\b(?:call|begin)\b/i.test(action.text)
        await send(action.text)
        return
      case 'own call': {
        const called = client.own?.(tx, action.what)
        if (called === undefined) return
        attempt.endings.push(action.what)
        await called
        return
      }
      case 'helper':
        attempt.endings.push('BEGIN')
        await client.run(tx, 'BEGIN')
        await this.#insert(attempt, 'body', (text) => client.run(tx, text))
        attempt.endings.push(action.ends)
        await client.run(tx, action.ends)
        return
      case 'error':
        attempt.disturbed = true
        await this.#lane.error(tx, action.what, attempt)
        return
      case 'unawaited':
        attempt.disturbed = true
        this.#stray(tx, action.what, attempt)
        return
      case 'set':
        attempt.disturbed = true
        await client.run(tx, action.text)
        return
      case 'kill': {
        attempt.disturbed = true
        const killed = this.#lane.kill(attempt)
        if (action.wait) await killed
        else this.#follow(killed)
        return
      }
      case 'call':
        await this.#call(tx, action.what, play)
        return
      case 'root':
        if (action.what === 'insert')
          await this.#insert(attempt, 'root', (text) => client.root(text))
        else await client.root('SELECT id FROM written LIMIT 1')
        return
      case 'throw':
        throw new BodyError('the body changed its mind')
    }
  }

  async #nested(
    tx: unknown,
    action: Action & { do: 'nested' },
    play: Play<Attempt>,
  ): Promise<void> {
    const at = play.attempt.writes.length
    const savepoints = play.savepoints.length
    try {
      await this.#lane.client.nested(tx, async (inner) => {
        await this.#steps(inner, action.actions, play)
        if (action.fails) throw new BodyError('nested')
      })
    } catch (error) {
      play.undo(at)
      throw error
    } finally {
      // They went with the savepoint around them.
      play.savepoints.length = Math.min(play.savepoints.length, savepoints)
    }
  }

  /** A call into another part of the library; where it says that something is held, that has to be so. */
  async #call(tx: unknown, what: Call, play: Play<Attempt>): Promise<void> {
    const { attempt } = play
    const { hf, client } = this.#lane
    const assertTaken = async (said: string, isFree: () => Promise<boolean>): Promise<void> => {
      // Statements under way may end the transaction between the answer and our look.
      const isSure = !attempt.endings.includes('unawaited') && !this.#killsUnawaited()
      if (isSure && (await isFree()))
        attempt.lies.push(`${said}, and another session could take the lock`)
    }
    switch (what) {
      case 'acquire':
        await hf.locks.acquire(tx, this.#other)
        await assertTaken('locks.acquire resolved', () => this.#lane.isFree(this.#other))
        return
      case 'tryAcquire':
        if (await hf.locks.tryAcquire(tx, this.#other))
          await assertTaken('locks.tryAcquire said true', () => this.#lane.isFree(this.#other))
        return
      case 'assertHeld':
        await hf.locks.assertHeld(tx, this.#own)
        await assertTaken('locks.assertHeld resolved', () => this.#lane.isFree(this.#own))
        return
      case 'rows.lock': {
        const row = `${this.#id}.9`
        await hf.rows.lock(tx, doc, [row], { expectAll: true })
        await assertTaken('rows.lock resolved', () => this.#lane.isRowFree(row))
        return
      }
      case 'updateVersioned':
        await this.#updateVersioned(tx, attempt)
        return
      case 'once': {
        const at = attempt.writes.length
        try {
          await hf.once(tx, this.#name(attempt), async (inner) => {
            await this.#insert(attempt, 'body', (text) => client.run(inner, text))
          })
        } catch (error) {
          play.undo(at)
          throw error
        }
        return
      }
    }
  }

  #killsUnawaited(): boolean {
    return flat(this.#body.actions).some((each) => each.do === 'kill' && !each.wait)
  }

  #name(attempt: Attempt): string {
    this.#serial += 1
    return `${this.#id}.${attempt.number}.${this.#serial}`
  }

  async #following(
    attempt: Attempt,
    by: Write['by'],
    send: (id: string) => Promise<unknown>,
    id = this.#name(attempt),
  ): Promise<void> {
    const write: Write = { id, by, state: 'sent', undone: false, endings: attempt.endings.length }
    attempt.writes.push(write)
    try {
      await send(id)
      write.state = 'ok'
    } catch (error) {
      write.state = 'failed'
      throw error
    }
  }

  async #insert(
    attempt: Attempt,
    by: Write['by'],
    send: (text: string) => Promise<unknown>,
  ): Promise<void> {
    const body = by === 'root' ? `root ${this.#id}` : this.#id
    await this.#following(attempt, by, (id) =>
      send(`INSERT INTO written (id, body) VALUES ('${id}', '${body}')`),
    )
  }

  async #updateVersioned(tx: unknown, attempt: Attempt): Promise<void> {
    const used = attempt.writes.length
    await this.#following(attempt, 'body', (note) =>
      this.#lane.hf.rows.updateVersioned(tx, doc, `${this.#id}.${(used % 8) + 1}`, {
        version: 1,
        set: { note },
      }),
    )
  }

  /** Nobody in the body waits for it. */
  #follow(promise: Promise<unknown>): void {
    const settled = promise.then(
      () => undefined,
      () => undefined,
    )
    this.#pending.add(settled)
    void settled.then(() => this.#pending.delete(settled))
  }

  #stray(tx: unknown, what: string, attempt: Attempt): void {
    const run = (text: string): Promise<unknown> => this.#lane.client.run(tx, text)
    if (what === 'insert') this.#follow(this.#insert(attempt, 'unawaited', run))
    else if (what === 'fail') this.#follow(run('SELECT * FROM nothing'))
    else {
      attempt.endings.push(what, 'unawaited')
      this.#follow(run(what))
    }
  }

  async #prepare(tx: unknown, attempt: Attempt, late: Late): Promise<void> {
    const id = `${this.#name(attempt)}.${late.when}`
    const text = `INSERT INTO written (id, body) VALUES ('${id}', '${this.#id}')`
    const run = await this.#lane.client.prepare?.(tx, text)
    if (run !== undefined) this.#prepared = { id, run }
  }

  #use(late: Late): void {
    const attempt = this.attempts.at(-1) as Attempt
    const by = late.when === 'outside' ? 'late' : 'just late'
    const { client, hf } = this.#lane
    const tx = this.#handle
    attempt.disturbed = true
    const begin = async (): Promise<unknown> => {
      if (late.what === 'insert')
        return await this.#insert(attempt, by, (text) => client.run(tx, text))
      if (late.what === 'insert beneath')
        return await this.#insert(attempt, by, (text) => client.beneath(tx, text))
      if (late.what === 'insert prepared') {
        const prepared = this.#prepared
        if (prepared === undefined) return undefined
        return await this.#following(attempt, by, () => prepared.run(), prepared.id)
      }
      await hf.locks.acquire(tx, this.#other)
      if (by === 'late')
        attempt.lies.push('locks.acquire resolved on a handle whose transaction had ended')
      return undefined
    }
    this.#follow(begin())
  }
}

const resolved: Told = { kind: 'resolved', replayed: false }

function rejected(error: unknown): Told {
  const told = error as { message?: string }
  const isOurs = isHoldfastError(error)
  const ended = isOurs ? (error.details['ended'] ?? error.details['reason']) : undefined
  return {
    kind: 'rejected',
    code: isOurs ? error.code : error instanceof BodyError ? "the body's own error" : 'raw error',
    ended: typeof ended === 'string' ? ended : undefined,
    text: String(told.message).slice(0, 200),
  }
}
