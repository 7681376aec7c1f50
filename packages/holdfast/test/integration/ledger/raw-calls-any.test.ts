import fc from 'fast-check'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import {
  callApply,
  callApplyOne,
  callApplyPlain,
  columnsOf,
  endingOf,
  honestLine,
  type RawLine,
  type Victims,
  victims,
} from '../../support/ledger-raw.ts'

/** Generated calls of the functions, with the application's role and without the library. */
const fixture = ledgerFixture()
const app = appRole(fixture)

const largest = String(2n ** 62n - 1n)
const refusedBy = (error: pg.DatabaseError): string => error.code as string

/** Anything at all, made of honest pieces and, now and then, of wrong ones. */
function anyLine(made: Victims): fc.Arbitrary<RawLine> {
  const { hold, debit } = made
  const stranger = honestLine(fresh(), 'stranger', fresh())
  const endings = endingOf(hold, 4)
  const ids = [hold.id, debit.id, ...Array.from({ length: 8 }, fresh)]
  const holds = [hold.ref, ...Array.from({ length: 4 }, fresh)]
  const fixed = (...values: readonly (string | null)[]): fc.Arbitrary<string | null> =>
    fc.constantFrom(...values)
  const mostly = (usual: fc.Arbitrary<string | null>, ...wrong: (string | null)[]): typeof usual =>
    fc.oneof({ weight: 40, arbitrary: usual }, { weight: 1, arbitrary: fixed(...wrong) })
  return fc
    .record({
      op: fc.nat({ max: 5 }),
      place: fc.constantFrom(made.line(), made.walled(), made.line(), stranger),
      id: fixed(...ids),
      kind: fc.constantFrom(1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 7, 11, 12, 13),
      amount: mostly(fixed('1', '2', '5', '20'), '-1', '-5', '0', null, largest, `-${largest}`),
      allowance: mostly(fixed('0', '0', '5', null), largest, '-1'),
      flags: fc.oneof(fc.constantFrom(0, 2), fc.nat({ max: 255 })),
      everyUs: fixed(null, null, null, null, null, '1', '1000000'),
      ttlMs: mostly(fixed('1', '60000', '3600000'), null, '-1'),
      hold: fixed(...holds),
      unit: fixed(null, null, null, null, 'second', 'day'),
    })
    .map(({ place, id, kind, unit, hold: held, ...rest }) => {
      const line = { ...place, ...rest, kind, unit, zone: unit === null ? null : 'UTC' }
      if (kind < 4 || kind > 7) return { ...line, id, operationId: `id ${id}`, ref: held }
      if (kind === 7)
        return { ...line, id, operationId: `id ${id}`, ref: id === debit.id ? hold.id : debit.id }
      return { ...endings, ...rest, kind, ref: `${endings.ref?.slice(0, 4)}${held}` }
    })
}

/** Lines of one operation follow each other, have one id and name an account once; see above. */
function together(lines: readonly RawLine[]): RawLine[] {
  const firsts = new Map(lines.toReversed().map((line) => [line.op, line]))
  return lines
    .toSorted((a, b) => (a.op ?? 0) - (b.op ?? 0))
    .map((line) => {
      const { id, operationId, owner } = firsts.get(line.op) as RawLine
      return id === null || line.id === null ? line : { ...line, id, operationId, owner }
    })
    .filter(
      (line, place, all) =>
        all.findIndex((one) => one.op === line.op && one.base === line.base) === place,
    )
}

test('whatever is sent, the books are right', async () => {
  let doneAsASet = 0
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (gen) => {
      const made = await victims(app.pool)
      const call = fc.array(anyLine(made), { minLength: 1, maxLength: 6 })
      for (let round = 0; round < 6; round += 1) {
        const lines = together(gen(() => call))
        await callApply(app.pool, columnsOf(lines)).catch(refusedBy)
        await callApplyOne(app.pool, lines[0] as RawLine).catch(refusedBy)
        const done = await callApplyPlain(
          app.pool,
          gen(() => call),
        ).catch(refusedBy)
        if (typeof done === 'number') doneAsASet += done
      }
      expect(await brokenInvariants(fixture.observer, { scope: made.scope })).toEqual([])
    }),
    { numRuns: Number(process.env['HOLDFAST_RUNS'] ?? 40), endOnFailure: true },
  )
  expect(doneAsASet).toBeGreaterThan(10)
})
