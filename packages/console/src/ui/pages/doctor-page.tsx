import type { HealthFinding } from 'holdfast/health'
import type { JSX } from 'preact'
import { plural } from '../format.ts'
import { useDatabase, useDatabaseInfo } from '../live/context.ts'
import { useResource } from '../live/resource.ts'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/tone.ts'
import { Command, CopyButton } from '../parts/copy-button.tsx'
import { Icon } from '../parts/icon.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { useNow } from '../ticker.ts'

/** What is not as it should be in this database, with the fix. */
export function DoctorPage(): JSX.Element {
  const database = useDatabase()
  const can = useDatabaseInfo()?.features.doctor ?? false
  const report = useResource<{ readonly findings: readonly HealthFinding[] }>(
    can ? 'doctor' : undefined,
    { database },
    60_000,
  )
  const now = useNow()
  const ago = report.at === undefined ? 0 : Math.max(0, Math.floor((now - report.at) / 1000))
  return (
    <>
      <h1 class="page-title">Doctor</h1>
      {can ? (
        <>
          <p class="page-lead">
            Schema, privileges, settings, indexes: what would bite later.{' '}
            <button type="button" class="button button-small" onClick={report.reload}>
              Look again
            </button>{' '}
            {report.at !== undefined && <span class="faint">looked {ago} s ago</span>}
          </p>
          <Loaded of={report}>
            {({ findings }) =>
              findings.length === 0 ? <AllWell /> : <Findings findings={findings} />
            }
          </Loaded>
        </>
      ) : (
        <Empty icon="doctor" title="The doctor is not in, for this database.">
          <p>Whoever mounted the console left it out. In a terminal it is always there:</p>
          <Command text="holdfast doctor" />
        </Empty>
      )}
    </>
  )
}

function AllWell(): JSX.Element {
  return (
    <section class="quiet">
      <span class="quiet-sign">
        <Icon name="check" />
      </span>
      <div>
        <h2 class="headline">All is well.</h2>
        <p>Nothing in this database is other than it should be.</p>
      </div>
    </section>
  )
}

const severities: Readonly<Record<HealthFinding['severity'], readonly [Tone, string]>> = {
  error: ['bad', 'error'],
  warning: ['wait', 'warning'],
  note: ['info', 'note'],
}

function Findings({ findings }: { readonly findings: readonly HealthFinding[] }): JSX.Element {
  const order = Object.keys(severities)
  const sorted = findings.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity))
  return (
    <section aria-labelledby="findings">
      <h2 id="findings" class="headline">
        {plural(findings.length, 'finding')}
      </h2>
      <ul class="findings">
        {sorted.map((finding) => (
          <Finding key={`${finding.code}/${finding.object}`} finding={finding} />
        ))}
      </ul>
    </section>
  )
}

function Finding({ finding }: { readonly finding: HealthFinding }): JSX.Element {
  const [tone, word] = severities[finding.severity]
  // Either SQL to run or a sentence.
  const isSql = finding.fix.trimEnd().endsWith(';')
  return (
    <li class="section finding">
      <h3>
        <Badge tone={tone}>{word}</Badge> <code class="faint">{finding.code}</code>
      </h3>
      <p>
        <b>{finding.object}</b> {finding.what}
      </p>
      <div class="command command-wrap">
        {isSql ? <code class="fix">{finding.fix}</code> : <p class="fix">{finding.fix}</p>}
        <CopyButton text={finding.fix} what={`the fix of ${finding.code}`} />
      </div>
    </li>
  )
}
