/** What racy entries and their safe twins do alike. What differs is what comes before it, and the level. */
import { balance, doctors, sameEmail, setBalance } from './grounds.ts'
import { type Ask, type Isolation, type Kit, numberOf } from './model.ts'

/** Reads the balance, waits, and writes 30 less. `lock` is put behind the read: ` FOR UPDATE`. */
export async function spendBy(kit: Kit, ask: Ask, lock = ''): Promise<unknown> {
  const n = await numberOf(ask(`${balance}${lock}`))
  await kit.wait()
  await ask(setBalance, n - 30)
  return kit.answer(200)
}

export const spend = (kit: Kit, isolation?: Isolation): Promise<unknown> =>
  kit.transaction((ask) => spendBy(kit, ask), isolation)

export const sumOfTwoReads = (kit: Kit, isolation?: Isolation): Promise<unknown> =>
  kit.transaction(async (ask) => {
    const one = await numberOf(ask('SELECT n FROM account WHERE id = 1'))
    await kit.wait()
    const two = await numberOf(ask('SELECT n FROM account WHERE id = 2'))
    return kit.answer(200, { sum: one + two })
  }, isolation)

export const sum = (kit: Kit): Promise<unknown> =>
  numberOf(kit.ask('SELECT sum(n)::int AS n FROM account')).then((n) => kit.answer(200, { sum: n }))

/** From one account to the other; `between` the two something may happen. */
export async function transferBy(
  kit: Kit,
  ask: Ask,
  between?: () => Promise<unknown>,
): Promise<unknown> {
  await ask('UPDATE account SET n = n - 30 WHERE id = 1')
  await between?.()
  await ask('UPDATE account SET n = n + 30 WHERE id = 2')
  return kit.answer(200)
}

export const transfer = (kit: Kit, between?: () => Promise<unknown>): Promise<unknown> =>
  kit.transaction((ask) => transferBy(kit, ask, between))

/** Looks for the e-mail, waits, and inserts it. */
export async function register(kit: Kit, ask: Ask = kit.ask): Promise<unknown> {
  if ((await numberOf(ask(sameEmail))) > 0) return kit.answer(409)
  await kit.wait()
  await kit.record(ask, 'users', { email: 'x', who: kit.who })
  return kit.answer(201)
}

/** Looks whether two are on call, waits, and takes itself off. */
export const leave = (kit: Kit, isolation?: Isolation): Promise<unknown> =>
  kit.transaction(async (ask) => {
    if ((await numberOf(ask(doctors))) < 2) return kit.answer(409)
    await kit.wait()
    await ask('UPDATE doctor SET on_call = false WHERE name = $1', kit.who)
    return kit.answer(200)
  }, isolation)
