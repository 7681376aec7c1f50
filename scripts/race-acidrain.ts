/**
 * Hunts in 22 flows that are written after the attacks of the ACIDRain paper, and prints the table of
 * docs/race/acidrain.md.
 * Run: npm run race:acidrain [-- --without-edges]
 */
import { parseArgs } from 'node:util'
import { startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { instrument } from '../packages/race/src/hunt.ts'
import { attacks, huntAttacks, pairOf } from './acidrain/hunt-attacks.ts'

instrument(pg)
const { values } = parseArgs({ options: { 'without-edges': { type: 'boolean', default: false } } })
await using server = await startPostgres()
const report = await huntAttacks(await server.createDatabase(), {
  ...(values['without-edges'] && { parts: { edges: async () => [] } }),
  onProgress: ({ phase, done, of }) => process.stderr.write(`\r${phase} ${done} of ${of}   `),
})
process.stderr.write('\n')
console.log(
  '| | what the code does | calls | verdict | what is wrong |\n| --- | --- | --- | --- | --- |',
)
for (const attack of attacks) {
  const found = pairOf(report, attack)
  if (found?.verdict !== 'proven') process.exitCode = 1
  const [, said = found?.because ?? ''] = /: (.*?)(;|$)/.exec(found?.sentence ?? '') ?? []
  const name = found?.name ?? attack.pair.join(' × ')
  const verdict = found === undefined ? 'not proposed' : `**${found.verdict}**`
  console.log(`| ${attack.kind} | ${attack.does} | ${name} | ${verdict} | ${said} |`)
}
const others = report.pairs.filter((pair) => attacks.every((each) => pairOf(report, each) !== pair))
console.log(
  `\nPairs beside these: ${others.map(({ name, verdict }) => `${name} ${verdict}`).join(', ')}`,
)
console.log(`${report.apart} pairs have nothing in common; ${report.milliseconds} ms`)
