/** Writes the committed API reports again. Run: npm run api:report */
import { writeFileSync } from 'node:fs'
import { apiReport, reportFile } from './package/api-report.ts'

for (const name of ['holdfast', 'race', 'console'] as const) {
  writeFileSync(reportFile(name), apiReport(name))
}
