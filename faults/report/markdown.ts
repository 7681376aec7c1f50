import { commandFor, outcomes, type RunReport, type Summary } from './run-report.ts'

/** The run as text, for reviews and pull requests. `pictures` are names of files beside it. */
export function markdown(
  run: RunReport,
  summary: Summary,
  pictures: readonly { readonly title: string; readonly file: string }[],
): string {
  const { violations, episodes, operations, recoveredMs } = summary
  const failing = run.episodes.filter((episode) => episode.violations.length > 0)
  return [
    `# Faults, tier ${run.tier}: ${violations === 0 ? 'no violation' : `${violations} violations`} in ${episodes} episodes`,
    '',
    `Seed ${run.seed}, begun ${run.startedAt}. ${operations} operations.`,
    '',
    `- ${statement(summary)}`,
    `- After the faults, every workload made progress again within ${recoveredMs.most} ms (median ${recoveredMs.median} ms, 99 % within ${recoveredMs.p99} ms).`,
    ...run.notes.map((note) => `- ${note}`),
    '',
    ...failing.flatMap((episode) => [
      `## Episode ${episode.number}, seed ${episode.seed}`,
      '',
      `Faults: ${episode.faults.join(', ')}. Again: \`${commandFor(run, episode)}\``,
      '',
      ...episode.violations.map(
        ({ rule, workload, what }) => `- **${rule}** in ${workload}: ${what}`,
      ),
      '',
    ]),
    '| workload | ok | refused | failed | unknown |',
    '| --- | --: | --: | --: | --: |',
    ...summary.workloads.map(
      ({ name, counts }) =>
        `| ${[name, ...outcomes.map((outcome) => counts[outcome])].join(' | ')} |`,
    ),
    '',
    '| fault | struck | violations in those episodes |',
    '| --- | --: | --: |',
    ...summary.faults.map(({ name, struck, violations: of }) => `| ${name} | ${struck} | ${of} |`),
    '',
    ...pictures.flatMap(({ title, file }) => [`![${title}](${file})`, '']),
  ].join('\n')
}

/** What the number of episodes without a violation is worth. */
export function statement({ violations, episodes, rarerThan }: Summary): string {
  if (rarerThan === undefined) return `${violations} violations in ${episodes} episodes.`
  const percent = (rarerThan * 100).toFixed(2)
  return (
    `No violation in ${episodes} ${episodes === 1 ? 'episode' : 'episodes'}: with 95 % confidence, fewer than ${percent} % of such episodes ` +
    'have one. It does not mean that there never is one.'
  )
}
