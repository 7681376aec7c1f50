/** The public API, as it was last looked at: whoever changes it changes the report too, where a reviewer sees it. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { apiReport, reportFile } from '../../../../scripts/package/api-report.ts'

describe('the committed API report', () => {
  test.each(['holdfast', 'race', 'console'] as const)(
    'of %s is that of the sources; if not: npm run api:report',
    { timeout: 120_000 },
    (name) => {
      const report = apiReport(name)
      expect(report).toContain('## Declarations')
      expect(readFileSync(reportFile(name), 'utf8') === report).toBe(true)
    },
  )
})
