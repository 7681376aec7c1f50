import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { deferred } from '@holdfast/testkit'
import { channels } from '../../packages/holdfast/src/core/events.ts'
import { isHoldfastError } from '../../packages/holdfast/src/core/errors.ts'
import type { ClaimsTroubleEvent } from '../../packages/holdfast/src/core/events/event-map.ts'
import { lockKey } from '../../packages/holdfast/src/core/locks/lock-key.ts'
import { poolSize } from './bodies-clients.ts'
import type { Lane } from './bodies-lane.ts'
import {
  type Action,
  type Body,
  type Call,
  endsTransaction,
  flat,
  type Late,
  type Stray,
} from './bodies-model.ts'
import { Play } from './bodies-savepoints.ts'
import type { Attempt, Caller, Present, RunRecord, Told, Write } from './bodies-record.ts'

/** A caller that has heard nothing after this has been left alone for ever. */
const answerWithinMs = 15_000
/** Statements that nobody waited for get so long to be answered after that. */
const settleWithinMs = 3_000

const doc = { schema: 'public', table: 'doc' } as const

/** Runs a body on its lane, waits until all is quiet, and writes down what was told and what is there. */
export async function runBody(lane: Lane, body: Body, id: string): Promise<RunRecord> {
  const ids = body.twin ? [`${id}-a`, `${id}-b`] : [id]
  const runs = ids.map((each) => new BodyRun(lane, body, each, id))
  await Promise.all(runs.map((each) => each.prepare()))
  await Promise.all(runs.map((each) => each.call()))
  const callers = runs.map((each) => each.caller)
  const leftovers = await lane.leftovers()
  const present = await presentRows(lane, ids, callers)
  const sets = flat(body.actions).some((action) => isSessionSet(action, body.pooled))
  const changedSettings = sets || leftovers !== '' ? undefined : await lane.changedSettings()
  const record = { body, callers, present, leftovers, changedSettings }
  if (needsReopening(record, sets)) await lane.reopen()
  return record
}

/** Changed by the body itself, for longer than its transaction. Behind a pooler RESET forgets the name that it gave. */
function isSessionSet(action: Action, pooled: boolean): boolean {
  if (action.do !== 'set') return false
  return /^SET (?!LOCAL|TRANSACTION)/.test(action.text) || (pooled && action.text === 'RESET ALL')
}

function needsReopening(record: RunRecord, sets: boolean): boolean {
  return (
    sets ||
    record.leftovers !== '' ||
    record.changedSettings !== '' ||
    record.callers.some(({ told, unanswered }) => told.kind === 'never' || unanswered > 0)
  )
}

/** Reports of workers name no queue; whose they are is known by where they were started. */
const heard = new AsyncLocalStorage<ClaimsTroubleEvent[]>()
channels.claimsTrouble.subscribe((event) => heard.getStore()?.push(event as ClaimsTroubleEvent))

class BodyError extends Error {
  override readonly name = 'BodyError'
}

class BodyRun {
  readonly caller: Caller
  readonly #lane: Lane
  readonly #body: Body
  readonly #id: string
  readonly #own
  readonly #other
  readonly #told = deferred()
  readonly #pending = new Set<Promise<unknown>>()
  #handle: unknown
  #serial = 0

  constructor(lane: Lane, body: Body, id: string, shared: string) {
    this.#lane = lane
    this.#body = body
    this.#id = id
    this.#own = lockKey('bodies', shared)
    this.#other = lockKey('bodies-other', id)
    this.caller = { id, attempts: [], told: { kind: 'never' }, unanswered: 0 }
  }

  /** The rows that it changes by their version: one for every use of one. */
  async prepare(): Promise<void> {
    await this.#lane.ask(
      `INSERT INTO public.doc (id) SELECT $1 || '.' || g FROM generate_series(0, 9) AS g`,
      [this.#id],
    )
  }

  async call(): Promise<void> {
    const { caller } = this
    const answer = this.#enter().then(
      (told) => told,
      (error: unknown) => rejected(error),
    )
    caller.told = await Promise.race([
      answer,
      pause(answerWithinMs, { kind: 'never' } as const, { ref: false }),
    ])
    await this.#settle()
    this.#told.resolve()
    for (const late of this.#body.late) {
      if (late.when === 'outside' && this.#handle !== undefined) this.#use(late)
    }
    // Those that the body left behind begin now.
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
    this.caller.unanswered = this.#pending.size
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
      case 'transactionHandler': {
        const work = hf.work({ queue: id })
        await work.enqueue({ payload: {}, maxAttempts: 1 })
        const troubles: ClaimsTroubleEvent[] = []
        await heard.run(troubles, async () => {
          const worker = await work.run({
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
      case 'transactional tick': {
        const tick = await hf
          .schedule({
            name: id,
            every: '7 days',
            guarantee: 'transactional',
            attempts: 1,
            handler: run,
          })
          .runNow()
        if (tick.outcome === 'done') return resolved
        return tick.outcome === 'unknown'
          ? { kind: 'rejected', code: 'COMMIT_UNKNOWN', ended: undefined, text: 'unknown' }
          : rejected(tick.error ?? new Error(tick.outcome))
      }
    }
  }

  /** The generated body itself. */
  async #run(tx: unknown): Promise<string> {
    const attempt: Attempt = {
      number: this.caller.attempts.length + 1,
      writes: [],
      controls: [],
      disturbed: false,
      lies: [],
      enteredAt: performance.now(),
    }
    this.caller.attempts.push(attempt)
    this.#handle = tx
    const play = new Play(attempt)
    try {
      const [row] = await this.#lane.client.run(
        tx,
        'SELECT pg_backend_pid() AS pid, extract(epoch FROM now())::text AS began',
      )
      attempt.origin = { pid: Number(row?.['pid']), began: String(row?.['began']) }
      await this.#steps(tx, this.#body.actions, play)
      for (const late of this.#body.late) this.#leave(late)
      return 'done'
    } finally {
      attempt.leftAt = performance.now()
    }
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
        if (this.#body.entry === 'guard' && attempt.freeAfter === undefined) {
          if (await this.#isFree(this.#own.lock.id)) attempt.freeAfter = action.do
        }
      }
    }
  }

  async #act(tx: unknown, action: Action, play: Play<Attempt>): Promise<void> {
    const { attempt } = play
    const { client } = this.#lane
    const send = (text: string): Promise<unknown> =>
      action.by === undefined ? client.run(tx, text) : client[action.by](tx, text)
    switch (action.do) {
      case 'read':
        await send('SELECT id FROM public.written LIMIT 1')
        return
      case 'insert':
        await this.#insert(attempt, 'body', send)
        return
      case 'savepoint':
        await client.run(tx, `SAVEPOINT ${action.name}`)
        play.savepoints.push({ name: action.name, at: attempt.writes.length })
        return
      case 'rollback to': {
        await client.run(tx, `ROLLBACK TO SAVEPOINT ${action.name}`)
        play.rollBackTo(action.name)
        return
      }
      case 'release':
        await client.run(tx, `RELEASE SAVEPOINT ${action.name}`)
        play.release(action.name)
        return
      case 'nested': {
        const at = attempt.writes.length
        const savepoints = play.savepoints.length
        try {
          await client.nested(tx, async (inner) => {
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
        return
      }
      case 'control':
        attempt.controls.push(action.text)
        await send(action.text)
        return
      case 'disguised':
        attempt.controls.push(action.text)
        await client.run(tx, 'SET LOCAL standard_conforming_strings = off')
        await client.run(tx, `SELECT 'a\\''; ${action.text} --'`)
        return
      case 'orm': {
        const called = client.orm?.(tx, action.what)
        if (called === undefined) return
        attempt.controls.push(action.what === 'release' ? 'COMMIT' : action.what)
        await called
        return
      }
      case 'look-alike':
        await send(action.text)
        return
      case 'helper':
        attempt.controls.push('BEGIN')
        await client.run(tx, 'BEGIN')
        await this.#insert(attempt, 'body', (text) => client.run(tx, text))
        attempt.controls.push(action.ends)
        await client.run(tx, action.ends)
        return
      case 'fail':
        attempt.disturbed = true
        await client.run(tx, 'SELECT 1 / 0')
        return
      case 'unawaited':
        attempt.disturbed = true
        this.#stray(tx, action.what, attempt)
        return
      case 'set':
        attempt.disturbed = true
        await client.run(tx, action.text)
        return
      case 'spoof':
        attempt.disturbed = true
        await client.run(
          tx,
          `SELECT set_config('holdfast.held', ',x${this.#other.lock.id},', true)`,
        )
        return
      case 'kill': {
        attempt.disturbed = true
        const killed = this.#lane.kill(attempt.origin?.pid ?? 0)
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
        else await client.root('SELECT id FROM public.written LIMIT 1')
        return
      case 'throw':
        throw new BodyError('the body changed its mind')
    }
  }

  /** A call into another part of the library; where it says that something is held, that has to be so. */
  async #call(tx: unknown, what: Call, play: Play<Attempt>): Promise<void> {
    const { attempt } = play
    const { hf } = this.#lane
    const assertTaken = async (said: string, free: () => Promise<boolean>): Promise<void> => {
      // Statements under way may end the transaction between the answer and our look.
      const sure = !this.#body.twin && !attempt.controls.includes('unawaited')
      if (sure && !this.#killsUnawaited() && (await free())) attempt.lies.push(said)
    }
    switch (what) {
      case 'acquire':
      case 'acquire own': {
        const key = what === 'acquire' ? this.#other : this.#own
        await hf.locks.acquire(tx, key)
        await assertTaken('locks.acquire resolved, and another session could take the lock', () =>
          this.#isFree(key.lock.id),
        )
        return
      }
      case 'tryAcquire':
        if (await hf.locks.tryAcquire(tx, this.#other)) {
          await assertTaken(
            'locks.tryAcquire said true, and another session could take the lock',
            () => this.#isFree(this.#other.lock.id),
          )
        }
        return
      case 'assertHeld':
      case 'assertHeld other': {
        const key = what === 'assertHeld' ? this.#own : this.#other
        await hf.locks.assertHeld(tx, key)
        await assertTaken(
          'locks.assertHeld resolved, and another session could take the lock',
          () => this.#isFree(key.lock.id),
        )
        return
      }
      case 'rows.lock': {
        const row = `${this.#id}.9`
        await hf.rows.lock(tx, doc, [row], { expectAll: true })
        await assertTaken(
          'rows.lock resolved, and another session could lock the row',
          async () => {
            const rows = await this.#lane.ask(
              'SELECT FROM public.doc WHERE id = $1 FOR UPDATE SKIP LOCKED',
              [row],
            )
            return rows.length > 0
          },
        )
        return
      }
      case 'updateVersioned':
        await this.#updateVersioned(tx, attempt, 'body')
        return
      case 'once': {
        const at = attempt.writes.length
        try {
          await hf.once(tx, this.#name(attempt), async (inner) => {
            await this.#insert(attempt, 'body', (text) => this.#lane.client.run(inner, text))
          })
        } catch (error) {
          play.undo(at)
          throw error
        }
        return
      }
      case 'consume': {
        const write = this.#write(attempt, 'movement', 'body')
        await this.#following(write, async () => {
          const quota = hf.quota({ name: 'bodies', limit: 1_000, per: 'day', timeZone: 'UTC' })
          const verdict = await quota.consume(tx, this.#id, 1, { operationId: write.id })
          if (!verdict.ok) throw new Error('refused')
        })
        return
      }
      case 'enqueue': {
        const write = this.#write(attempt, 'work', 'body')
        await this.#following(write, async () => {
          await hf.work({ queue: 'bodies' }).enqueue(tx, { payload: {}, uniqueKey: write.id })
        })
        return
      }
    }
  }

  #killsUnawaited(): boolean {
    return flat(this.#body.actions).some((each) => each.do === 'kill' && !each.wait)
  }

  async #isFree(key: bigint): Promise<boolean> {
    const [row] = await this.#lane.ask('SELECT pg_try_advisory_xact_lock($1) AS free', [
      String(key),
    ])
    return row?.['free'] === true
  }

  #name(attempt: Attempt): string {
    this.#serial += 1
    return `${this.#id}.${attempt.number}.${this.#serial}`
  }

  #write(attempt: Attempt, table: Write['table'], by: Write['by'], id?: string): Write {
    const write: Write = {
      id: id ?? this.#name(attempt),
      table,
      by,
      state: 'sent',
      undone: false,
      afterEnding: attempt.controls.some(endsTransaction),
    }
    attempt.writes.push(write)
    return write
  }

  async #following(write: Write, send: () => Promise<unknown>): Promise<void> {
    try {
      await send()
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
    from = '',
  ): Promise<void> {
    const write = this.#write(attempt, 'written', by)
    const held = this.#body.entry === 'guard' ? `public.own_lock(${this.#own.lock.id})` : 'NULL'
    await this.#following(write, () =>
      send(
        `INSERT INTO public.written (id, body, held) SELECT '${write.id}', '${this.#id}', ${held}${from}`,
      ),
    )
  }

  async #updateVersioned(tx: unknown, attempt: Attempt, by: Write['by']): Promise<void> {
    const used = attempt.writes.filter(({ table }) => table === 'doc').length
    const row = `${this.#id}.${(used % 8) + 1}`
    const write = this.#write(attempt, 'doc', by)
    await this.#following(write, () =>
      this.#lane.hf.rows.updateVersioned(tx, doc, row, {
        version: used < 8 ? 1 : 2,
        set: { note: write.id },
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

  #stray(tx: unknown, what: Stray, attempt: Attempt): void {
    const { client } = this.#lane
    const run = (text: string): Promise<unknown> => client.run(tx, text)
    if (what === 'insert') this.#follow(this.#insert(attempt, 'unawaited', run))
    if (what === 'slow insert') {
      this.#follow(this.#insert(attempt, 'unawaited', run, ' FROM pg_sleep(0.02)'))
    }
    if (what === 'fail') this.#follow(run('SELECT 1 / 0'))
    if (what === 'nested') {
      // Not followed: it ends when the caller was told, and its client may keep it for ever.
      const open = client.nested(tx, async () => {
        await this.#told.promise
        await this.#amongWitnesses(attempt)
        throw new BodyError('a late savepoint')
      })
      open.catch(() => undefined)
    }
    if (what === 'rollback' || what === 'commit') {
      attempt.controls.push(what.toUpperCase(), 'unawaited')
      this.#follow(run(what.toUpperCase()))
    }
  }

  /**
   * Resolves when every connection of the pool is in a transaction of somebody else. These go on a moment later,
   * and if they are told that they are done, their work has to be there.
   */
  async #amongWitnesses(attempt: Attempt): Promise<void> {
    const [ready, goOn] = [deferred(), deferred()]
    let inside = 0
    const { client, hf } = this.#lane
    const insert = (tx: unknown, id: string): Promise<unknown> =>
      client.nested(tx, async (inner) => {
        await client.run(inner, `INSERT INTO public.written (id, body) VALUES ('${id}', 'witness')`)
      })
    const witness = async (_: unknown, at: number): Promise<void> => {
      const ids = [1, 2].map((part) => `witness-${this.#id}.${at}.${part}`) as [string, string]
      await hf.transaction(
        async (tx) => {
          await insert(tx, ids[0])
          inside += 1
          if (inside === poolSize) ready.resolve()
          await goOn.promise
          await insert(tx, ids[1])
        },
        { retry: false },
      )
      const there = await this.#lane.ask('SELECT FROM public.written WHERE id = ANY ($1)', [ids])
      if (there.length < 2) {
        attempt.lies.push(
          'a transaction beside a late savepoint resolved, and not all of it is there',
        )
      }
    }
    const all = Promise.allSettled(Array.from({ length: poolSize }, witness))
    this.#follow(all.finally(() => ready.resolve()))
    void ready.promise.then(() => setTimeout(goOn.resolve, 20))
    // A twin may have one of the connections, and want another.
    const enough = setTimeout(ready.resolve, 200)
    await ready.promise
    clearTimeout(enough)
  }

  /** What the body leaves behind to be done with its handle when it has returned. */
  #leave(late: Late): void {
    if (late.when === 'microtask') queueMicrotask(() => this.#use(late))
    if (late.when === 'immediate') setImmediate(() => this.#use(late))
    if (late.when === 'inside') void this.#told.promise.then(() => this.#use(late))
  }

  #use(late: Late): void {
    const attempt = this.caller.attempts.at(-1) as Attempt
    const by = late.when === 'inside' || late.when === 'outside' ? 'late' : 'just late'
    const { client, hf } = this.#lane
    const tx = this.#handle
    attempt.disturbed = true
    const begin = async (): Promise<unknown> => {
      switch (late.what) {
        case 'insert':
          return await this.#insert(attempt, by, (text) => client.run(tx, text))
        case 'updateVersioned':
          return await this.#updateVersioned(tx, attempt, by)
        case 'acquire':
          await hf.locks.acquire(tx, this.#other)
          if (by === 'late')
            attempt.lies.push('locks.acquire resolved on a handle whose transaction had ended')
          return undefined
        case 'insert beneath':
          return await this.#insert(attempt, by, (text) => client.beneath(tx, text))
        case 'nested insert':
          return await client.nested(tx, async (inner) => {
            await this.#insert(attempt, by, (text) => client.run(inner, text))
          })
      }
    }
    this.#follow(begin())
  }
}

const resolved: Told = { kind: 'resolved', replayed: false }

function rejected(error: unknown): Told {
  const told = error as { code?: unknown; name?: string; message?: string; details?: unknown }
  const code = isHoldfastError(error)
    ? error.code
    : told instanceof BodyError
      ? "the body's own error"
      : `raw error`
  const ended = isHoldfastError(error) ? error.details['ended'] : undefined
  const reason = isHoldfastError(error) ? error.details['reason'] : undefined
  return {
    kind: 'rejected',
    code,
    ended: typeof ended === 'string' ? ended : typeof reason === 'string' ? reason : undefined,
    text: String(told.message).slice(0, 200),
  }
}

/** Rows are looked for by plain pg, when all backends are idle. */
async function presentRows(
  lane: Lane,
  ids: readonly string[],
  callers: readonly Caller[],
): Promise<ReadonlyMap<string, Present>> {
  const writes = callers.flatMap(({ attempts }) => attempts.flatMap((each) => each.writes))
  const tablesUsed = new Set(writes.map(({ table }) => table))
  const wanted = writes.map(({ id }) => id)
  const present = new Map<string, Present>()
  const note = (rows: Awaited<ReturnType<Lane['ask']>>): void => {
    for (const { id, pid, began, held } of rows) {
      const origin =
        pid === null || pid === undefined ? undefined : { pid: Number(pid), began: String(began) }
      present.set(String(id), { origin, held: typeof held === 'boolean' ? held : undefined })
    }
  }
  note(
    await lane.ask('SELECT id, pid, began, held FROM public.written WHERE body = ANY ($1)', [ids]),
  )
  if (tablesUsed.has('doc')) {
    note(
      await lane.ask('SELECT note AS id, pid, began FROM public.doc WHERE note = ANY ($1)', [
        wanted,
      ]),
    )
  }
  if (tablesUsed.has('movement')) {
    const text = 'SELECT operation_id AS id FROM holdfast.movement WHERE operation_id = ANY ($1)'
    note(await lane.ask(text, [wanted]))
  }
  if (tablesUsed.has('work')) {
    const text = 'SELECT unique_key AS id FROM holdfast.work WHERE unique_key = ANY ($1)'
    note(await lane.ask(text, [wanted]))
  }
  return present
}
