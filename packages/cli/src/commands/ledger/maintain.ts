import { createHoldfast } from 'holdfast'
import type { Maintained, MaintainOptions } from 'holdfast/ledger'
import type { Command } from '../../command.ts'
import { numberOf } from '../../number-flag.ts'
import { done } from '../../failure.ts'

export const maintain: Command = {
  name: 'maintain',
  about: 'Make partitions for the months to come; drop and forget what is old, if told to',
  needsDatabase: true,
  flags: {
    'months-ahead': {
      type: 'string',
      value: '<n>',
      about: 'For how many months to come; default: 12',
    },
    'keep-months': {
      type: 'string',
      value: '<n>',
      about: 'Drop movements older than so many whole months before this one',
    },
    'operation-horizon': {
      type: 'string',
      value: '<time>',
      about: "Forget operation ids older than this: '90 days'",
    },
  },
  async run({ flags, schema, database, print, tell }) {
    const monthsAhead = numberOf(flags['months-ahead'], 'months-ahead')
    const keepMonths = numberOf(flags['keep-months'], 'keep-months')
    const horizon = flags['operation-horizon']
    const options: MaintainOptions = {
      ...(monthsAhead === undefined ? {} : { monthsAhead }),
      ...(keepMonths === undefined ? {} : { keepMonths }),
      ...(typeof horizon === 'string'
        ? { operationHorizon: horizon as NonNullable<MaintainOptions['operationHorizon']> }
        : {}),
      onProgress: tell,
    }
    const result = await database((driver) =>
      createHoldfast(driver, schema === undefined ? {} : { ledger: { schema } }).ledger.maintain(
        options,
      ),
    )
    print(result, report(result))
    return done
  },
}

function report(result: Maintained): string {
  const dropped =
    result.monthsDropped.length === 0
      ? 'none'
      : result.monthsDropped.map((month) => month.slice(0, 7)).join(', ')
  return [
    `Months made: ${result.monthsMade}; ready ahead: ${result.monthsAhead}`,
    `Months dropped: ${dropped}`,
    `Operation ids forgotten: ${result.operationsForgotten}`,
    `Windows and idle accounts forgotten: ${result.windowsForgotten}`,
    `Grants forgotten: ${result.grantsForgotten}`,
    '',
  ].join('\n')
}
