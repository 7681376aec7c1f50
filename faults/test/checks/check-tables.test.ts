import { describe, expect, it } from 'vitest'
import { checkClaims, type Task, type TaskEffect } from '../../checks/check-claims.ts'
import { checkGuard, type Seat } from '../../checks/check-guard.ts'
import { checkLeases, type FencedWrite } from '../../checks/check-leases.ts'
import { checkOnce, type HookEffect } from '../../checks/check-once.ts'
import { checkSchedules } from '../../checks/check-schedules.ts'
import type { Operation } from '../../history/operations-of.ts'
import { operation, rulesOf } from '../support/operation.ts'

const at = (began: number, ended: number): Pick<Operation, 'began' | 'ended'> => ({ began, ended })

describe('checkGuard', () => {
  const sit = (id: string, outcome: Operation['outcome'], began: number): Operation =>
    operation({ operation: 'sit', key: 'room', id, outcome, ...at(began, began + 5) })
  const seat = (id: string): Seat => ({ room: 'room', id })
  const history = [sit('a', 'ok', 0), sit('b', 'ok', 10), sit('c', 'refused', 20)]
  const rules = (operations: readonly Operation[], seats: readonly Seat[]): string[] =>
    rulesOf(checkGuard(operations, seats, 2))

  it('has nothing to say about a room in which as many sit as fit', () => {
    expect(rules(history, [seat('a'), seat('b')])).toEqual([])
    expect(rules([...history, sit('a', 'ok', 30)], [seat('a'), seat('b')])).toEqual([])
  })

  it('finds a room with more than fit', () => {
    const operations = [...history, sit('d', 'ok', 30)]
    expect(rules(operations, [seat('a'), seat('b'), seat('d')])).toEqual([
      'bound_crossed',
      'not_linearizable',
    ])
  })

  it('finds seats that are lost, taken twice, or of somebody who was turned away', () => {
    expect(rules(history, [seat('a')])).toEqual(['acknowledged_lost'])
    expect(rules(history.slice(0, 1), [seat('a'), seat('a')])).toEqual(['applied_twice'])
    expect(rules([sit('c', 'refused', 0)], [seat('c')])).toContain('refused_present')
    expect(rules([sit('c', 'failed', 0)], [seat('c')])).toEqual(['failed_present'])
    expect(rules([], [seat('x')])).toEqual(['unasked'])
  })

  it('finds somebody who was turned away while there was room', () => {
    expect(rules([sit('a', 'ok', 0), sit('c', 'refused', 10)], [seat('a')])).toEqual([
      'not_linearizable',
    ])
  })

  it('lets somebody of whom nothing is known take the last seat', () => {
    const operations = [sit('a', 'ok', 0), sit('u', 'unknown', 5), sit('c', 'refused', 20)]
    expect(rules(operations, [seat('a'), seat('u')])).toEqual([])
  })
})

describe('checkClaims', () => {
  const enqueue = operation({ operation: 'enqueue', key: 't', id: 't', outcome: 'ok' })
  const complete = (outcome: Operation['outcome']): Operation =>
    operation({ operation: 'complete', key: 't', id: 't@1', outcome })
  const done: Task = { id: 't', status: 'done', attempts: 1 }
  const effect: TaskEffect = { task: 't', token: '1' }
  const rules = (
    operations: readonly Operation[],
    tasks: readonly Task[],
    effects: readonly TaskEffect[],
  ): string[] => rulesOf(checkClaims([enqueue, ...operations], tasks, effects))

  it('has nothing to say about work that was done once', () => {
    expect(rules([complete('ok')], [done], [effect])).toEqual([])
    expect(rules([complete('unknown')], [{ ...done, status: 'claimed' }], [])).toEqual([])
  })

  it('finds work that was done twice, or half', () => {
    expect(rules([complete('ok')], [done], [effect, { ...effect, token: '2' }])).toEqual([
      'applied_twice',
    ])
    expect(rules([], [done], [])).toEqual(['torn'])
    expect(rules([complete('unknown')], [{ ...done, status: 'pending' }], [effect])).toEqual([
      'torn',
    ])
  })

  it('finds what was acknowledged and lost, and what was refused or failed and is there', () => {
    expect(rules([complete('ok')], [{ ...done, status: 'claimed' }], [])).toEqual([
      'acknowledged_lost',
    ])
    expect(rules([complete('refused')], [done], [effect])).toEqual(['stale_write'])
    expect(rules([complete('failed')], [done], [effect])).toEqual(['failed_present'])
    expect(rules([], [], [])).toEqual(['acknowledged_lost'])
  })

  it('finds work by somebody who had given it back, a claim with two owners, and a row given up', () => {
    const release = operation({ operation: 'release', key: 't', id: 't@1', outcome: 'ok' })
    expect(rules([release], [done], [effect])).toEqual(['stale_write'])
    const claim = (): Operation =>
      operation({ operation: 'claim', key: 'task', outcome: 'ok', answered: ['t@1'] })
    expect(rules([claim(), claim()], [done], [effect])).toEqual(['applied_twice'])
    expect(rules([], [{ ...done, status: 'dead' }], [])).toEqual(['given_up'])
  })
})

describe('checkLeases', () => {
  const acquire = (token: number, began: number): Operation =>
    operation({
      operation: 'acquire',
      key: 'report',
      outcome: 'ok',
      answered: { token: String(token) },
      ...at(began, began + 5),
    })
  const write = (id: string, token: number, outcome: Operation['outcome'], began: number) =>
    operation({
      operation: 'write',
      key: 'report',
      id,
      outcome,
      asked: { token: String(token) },
      ...at(began, began + 5),
    })
  const row = (seq: number, id: string, token: number): FencedWrite => ({
    seq,
    lease: 'report',
    token,
    id,
  })
  const rules = (operations: readonly Operation[], writes: readonly FencedWrite[]): string[] =>
    rulesOf(checkLeases(operations, writes))

  it('has nothing to say about writes of the latest holder', () => {
    const operations = [
      acquire(1, 0),
      write('a', 1, 'ok', 10),
      acquire(2, 20),
      write('b', 1, 'refused', 30),
      write('c', 2, 'ok', 40),
    ]
    expect(rules(operations, [row(1, 'a', 1), row(2, 'c', 2)])).toEqual([])
  })

  it('finds a write of somebody who had lost it', () => {
    const operations = [
      acquire(1, 0),
      acquire(2, 10),
      write('c', 2, 'ok', 20),
      write('b', 1, 'ok', 30),
    ]
    expect(rules(operations, [row(1, 'c', 2), row(2, 'b', 1)])).toEqual([
      'not_linearizable',
      'stale_write',
    ])
    // Also if the next holder has not written yet.
    expect(
      rules([acquire(1, 0), acquire(2, 10), write('b', 1, 'ok', 20)], [row(1, 'b', 1)]),
    ).toEqual(['not_linearizable'])
  })

  it('finds tokens that do not grow, and writes that are lost', () => {
    expect(rules([acquire(2, 0), acquire(1, 10)], [])).toEqual(['not_linearizable', 'token_reused'])
    expect(rules([acquire(2, 0), acquire(2, 10)], [])).toEqual(['not_linearizable', 'token_reused'])
    expect(rules([acquire(1, 0), write('a', 1, 'ok', 10)], [])).toEqual(['acknowledged_lost'])
  })
})

describe('checkSchedules', () => {
  const fire = (outcome: string, tick: number): Operation =>
    operation({
      operation: 'fire',
      key: 'tick',
      outcome: 'ok',
      answered: [{ at: new Date(tick).toISOString(), outcome }],
    })
  const state = {
    lastTick: 600,
    everyMs: 200,
    ticks: [],
    effects: [200, 400, 600].map((tick) => ({ tick })),
  }

  it('has nothing to say about ticks that ran once, or are still to come', () => {
    expect(checkSchedules([fire('done', 200), fire('taken', 400)], state)).toEqual([])
    const waiting = {
      ...state,
      effects: state.effects.slice(0, 2),
      ticks: [{ at: 600, state: 'waiting' }],
    }
    expect(checkSchedules([], waiting)).toEqual([])
  })

  it('finds ticks that ran twice, did not run, or run again', () => {
    const twice = { ...state, effects: [...state.effects, { tick: 400 }] }
    expect(rulesOf(checkSchedules([], twice))).toEqual(['applied_twice'])
    const missing = { ...state, effects: [{ tick: 200 }, { tick: 600 }] }
    expect(rulesOf(checkSchedules([], missing))).toEqual(['tick_lost'])
    expect(rulesOf(checkSchedules([fire('done', 400)], missing))).toEqual([
      'acknowledged_lost',
      'tick_lost',
    ])
    const again = { ...state, ticks: [{ at: 600, state: 'waiting' }] }
    expect(rulesOf(checkSchedules([], again))).toEqual(['torn'])
  })
})

describe('checkOnce', () => {
  const receive = (result: string, replayed: boolean, began: number): Operation =>
    operation({
      operation: 'receive',
      key: 'hook',
      outcome: 'ok',
      answered: { result, replayed },
      ...at(began, began + 5),
    })
  const ended = (outcome: Operation['outcome']): Operation =>
    operation({ operation: 'receive', key: 'hook', outcome, ...at(0, 5) })
  const effect = (id: string): HookEffect => ({ hook: 'hook', id })
  const rules = (operations: readonly Operation[], effects: readonly HookEffect[]): string[] =>
    rulesOf(checkOnce(operations, effects))

  it('has nothing to say about one effect that everybody is told of', () => {
    expect(rules([receive('x', false, 0), receive('x', true, 10)], [effect('x')])).toEqual([])
    expect(rules([ended('unknown'), receive('x', true, 10)], [effect('x')])).toEqual([])
    // Its own first try had been done when the library asked again.
    expect(rules([receive('x', true, 0), receive('x', true, 10)], [effect('x')])).toEqual([])
    expect(rules([ended('failed')], [])).toEqual([])
  })

  it('finds two effects, none, and one of a call that failed', () => {
    expect(rules([receive('x', false, 0)], [effect('x'), effect('y')])).toEqual(['applied_twice'])
    expect(rules([receive('x', false, 0)], [])).toEqual(['acknowledged_lost'])
    expect(rules([ended('failed')], [effect('x')])).toEqual(['failed_present'])
    expect(rules([], [effect('x')])).toEqual(['unasked'])
  })

  it('finds a duplicate that is told something else, or before it happened', () => {
    expect(rules([receive('x', false, 0), receive('y', true, 10)], [effect('x')])).toEqual([
      'not_linearizable',
      'replay_differs',
    ])
    expect(rules([receive('x', true, 0), receive('x', false, 10)], [effect('x')])).toEqual([
      'not_linearizable',
    ])
    expect(rules([receive('x', false, 0), receive('x', false, 10)], [effect('x')])).toEqual([
      'not_linearizable',
      'told_twice',
    ])
  })
})
