export { examine, type HealthLimits, type HealthOptions } from './examine.ts'
export type { HealthCode, HealthFinding, HealthGroup, Severity } from './finding.ts'
