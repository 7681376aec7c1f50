/** Finds races in code that uses PostgreSQL, on a real server, in every order that can differ. */
export { assertRaceFree, type RaceFreeOptions } from './assert-race-free.ts'
export type * from './core/model.ts'
export { type ExploreOptions, explore } from './explore.ts'
export { type RaceMatchers, raceMatchers } from './matchers.ts'
export {
  type AnomalyName,
  explainRace,
  type Fix,
  type RaceExplanation,
} from './report/explain-race.ts'
export { type JsonRace, type JsonReport, type JsonStep, jsonReport } from './report/json.ts'
export { mermaidReport } from './report/mermaid.ts'
export { htmlReport } from './report/page/html-report.ts'
export { type ProgressLine, type ProgressStream, progressLine } from './report/progress.ts'
export { type FormatOptions, formatReport } from './report/terminal/format-report.ts'
export { instrument, type PgModule } from './run/connection/instrument.ts'
export { RestoreError } from './run/state/restore-error.ts'
export { openPort, type SharedPort } from './run/connection/shared-port.ts'
export type { MomentKind, Transaction } from './report/anomaly/history.ts'
export { type Recording, type RecordedStep, type RecordOptions, record } from './record.ts'
export type {
  DatabaseContext,
  Flow,
  FlowContext,
  InvariantContext,
  Rows,
} from './run/options.ts'
