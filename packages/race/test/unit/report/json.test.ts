import { describe, expect, test, vi } from 'vitest'
import { assertRaceFree } from '../../../src/assert-race-free.ts'
import type { Failure, Report } from '../../../src/core/model.ts'
import { annotationsOf } from '../../../src/report/annotations.ts'
import { type JsonReport, jsonReport } from '../../../src/report/json.ts'
import * as made from '../../support/reports.ts'

/** The report, with a line for each statement: step 1 was sent from line 10. */
function withLines(report: Report, file = `${process.cwd()}/src/upload.ts`): Report {
  const failure = report.failure as Failure
  const steps = failure.run.steps.map((step) => ({
    ...step,
    from: { file, line: step.index + 10 },
  }))
  return { ...report, failure: { ...failure, run: { ...failure.run, steps } } }
}

describe('jsonReport', () => {
  test('says what the text says', () => {
    const data = JSON.parse(jsonReport(withLines(made.quota))) as JsonReport
    expect(data).toMatchObject({ format: 1, verdict: 'race', interleavings: '70' })
    expect(data.race).toMatchObject({
      anomaly: 'check-then-insert',
      found: '101 uploads, the quota is 100',
      token: 'r1.7f3c.a2b4a2',
    })
    expect(data.race?.steps[6]).toEqual({
      number: 7,
      flow: 'alice',
      statement: "INSERT INTO uploads (user_id, name) VALUES (1, 'alice.png')",
      waitedFor: [],
      role: 'stale-write',
      from: { file: `${process.cwd()}/src/upload.ts`, line: 16 },
    })
  })

  test('has no race where there is none', () => {
    const data = JSON.parse(jsonReport(made.greenReport())) as JsonReport
    expect(data.verdict).toBe('race-free')
    expect(data).not.toHaveProperty('race')
  })
})

describe('annotations for GitHub', () => {
  test('stand at the lines of the read, the commit and the write', () => {
    expect(annotationsOf(withLines(made.quota))).toEqual([
      "::notice file=src/upload.ts,line=11,title=check-then-insert in upload within the quota::alice's SELECT (2): what is read here is no longer so when it is relied on.",
      "::notice file=src/upload.ts,line=15,title=check-then-insert in upload within the quota::bob's COMMIT (6): this makes it untrue.",
      "::error file=src/upload.ts,line=16,title=check-then-insert in upload within the quota::alice's INSERT (7): relies on what was read before, which is no longer so.",
    ])
  })

  test('nothing of a name or a path ends the command early', () => {
    const odd = { ...withLines(made.quota, '/a,b:c%/x\n.ts'), name: 'one::two,\nthree' }
    for (const line of annotationsOf(odd)) {
      expect(line).not.toContain('\n')
      expect(line.split('::')).toHaveLength(3)
    }
    expect(annotationsOf(odd)[0]).toContain('file=/a%2Cb%3Ac%25/x%0A.ts,line=11,')
  })

  test('are printed in GitHub Actions by an assertion that fails, and only there', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    try {
      vi.stubEnv('GITHUB_ACTIONS', '')
      expect(() => assertRaceFree(made.quota)).toThrow(/race in/)
      expect(write).not.toHaveBeenCalled()
      vi.stubEnv('GITHUB_ACTIONS', 'true')
      assertRaceFree(made.greenReport())
      expect(write).not.toHaveBeenCalled()
      expect(() => assertRaceFree(made.quota)).toThrow(/race in/)
      expect(write).toHaveBeenCalledWith(expect.stringMatching(/^::error /))
    } finally {
      vi.unstubAllEnvs()
      write.mockRestore()
    }
  })
})
