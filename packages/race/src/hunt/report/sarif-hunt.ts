/** A hunt in SARIF 2.1.0, as code scanning of GitHub, GitLab and others reads it. */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Place } from '../../core/model.ts'
import { packageVersion } from '../../core/package-files.ts'
import { remarksOf } from '../../report/annotations.ts'
import { fileText } from '../../report/words.ts'
import type { HuntReport } from '../model.ts'
import { type Race, racesOf } from './races.ts'

/**
 * The proven races as SARIF text. Each result stands at the line of the write that should not have been made, and leads to
 * the line of the check. Files are named from `root`:
 * by default the checkout of a GitHub job, else where the process was started.
 */
export function sarifHunt(
  report: HuntReport,
  root: string = process.env['GITHUB_WORKSPACE'] ?? process.cwd(),
): string {
  const races = racesOf(report)
  const rules = new Map(races.map(({ explanation }) => [explanation.anomaly, explanation.title]))
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'holdfast-race',
            version: packageVersion(),
            rules: [...rules].map(([anomaly, title]) => ({
              id: ruleOf(anomaly),
              shortDescription: { text: title },
              defaultConfiguration: { level: 'error' },
            })),
          },
        },
        results: races.map((race) => resultOf(race, root)),
      },
    ],
  }
  return `${JSON.stringify(log, null, 2)}\n`
}

function ruleOf(anomaly: string): string {
  return anomaly.replaceAll(' ', '-')
}

function resultOf({ pair, explanation }: Race, root: string) {
  const { anomaly, why, fixes } = explanation
  const [fix] = fixes
  const remarks = remarksOf(explanation).flatMap(({ place, ...remark }) =>
    place === undefined ? [] : [{ ...remark, place }],
  )
  const main = remarks.find(({ isMain }) => isMain) ?? remarks[0]
  const others = remarks.filter(({ place }) => main !== undefined && !isSame(place, main.place))
  const message = [pair.sentence, why, fix && `Fix: ${fix.text}`, fix?.code]
    .filter((part) => part !== undefined)
    .join('\n\n')
  const name = { logicalLocations: [{ fullyQualifiedName: pair.name, kind: 'function' }] }
  return {
    ruleId: ruleOf(anomaly),
    level: 'error',
    message: { text: message },
    locations: [main === undefined ? name : { ...locationOf(main.place, root), ...name }],
    ...(others.length > 0 && {
      relatedLocations: others.map((remark, at) => ({
        id: at + 1,
        message: { text: remark.message },
        ...locationOf(remark.place, root),
      })),
    }),
    // Whatever moves in the file, the same race of the same pair is the same result.
    partialFingerprints: { 'holdfastRace/v1': `${pair.name}: ${anomaly}` },
    properties: { replay: pair.token, from: pair.from },
  }
}

function isSame(one: Place, other: Place): boolean {
  return one.file === other.file && one.line === other.line
}

function locationOf({ file, line }: Place, root: string) {
  const inside = fileText(file, root)
  const uri = isAbsolute(inside)
    ? { uri: pathToFileURL(inside).href }
    : {
        uri: inside.split(/[/\\]/).map(encodeURIComponent).join('/'),
        uriBaseId: '%SRCROOT%',
      }
  return { physicalLocation: { artifactLocation: uri, region: { startLine: line } } }
}
